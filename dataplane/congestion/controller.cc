// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/congestion/controller.h"

namespace gradplane::congestion {

std::string_view reason_name(Reason reason) {
  switch (reason) {
    case Reason::kStart:
      return "start";
    case Reason::kGrowth:
      return "growth";
    case Reason::kLoss:
      return "loss";
    case Reason::kMark:
      return "mark";
    case Reason::kDelay:
      return "delay";
    case Reason::kSilence:
      return "silence";
    case Reason::kIdle:
      return "idle";
    case Reason::kPath:
      return "path";
    case Reason::kRate:
      return "rate";
  }
  return "?";
}

}  // namespace gradplane::congestion
