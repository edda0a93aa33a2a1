// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/congestion/factory.h"

#include "dataplane/congestion/bbr.h"
#include "dataplane/congestion/cubic.h"
#include "dataplane/congestion/dcqcn.h"
#include "dataplane/congestion/dctcp.h"
#include "dataplane/congestion/delay.h"
#include "dataplane/congestion/fixed.h"
#include "dataplane/congestion/mltcp.h"
#include "dataplane/congestion/reno.h"
#include "dataplane/congestion/swift.h"

namespace gradplane::congestion {
namespace {

std::unique_ptr<Controller> make_base(const CongestionSettings& settings, const Path& path) {
  switch (settings.controller) {
    case ControllerKind::kReno:
      return std::make_unique<Reno>();
    case ControllerKind::kCubic:
      return std::make_unique<Cubic>();
    case ControllerKind::kDctcp:
      return std::make_unique<Dctcp>();
    case ControllerKind::kDcqcn:
      return std::make_unique<Dcqcn>(path);
    case ControllerKind::kSwift:
      return std::make_unique<Swift>(path);
    case ControllerKind::kBbr:
      return std::make_unique<Bbr>(path);
    case ControllerKind::kFixed:
      return std::make_unique<Fixed>(path, settings.rate_bits_per_second);
    case ControllerKind::kDelay:
      break;
  }
  return std::make_unique<Delay>(path);
}

}  // namespace

std::unique_ptr<Controller> make_controller(const CongestionSettings& settings, const Path& path) {
  std::unique_ptr<Controller> base = make_base(settings, path);
  if (!settings.mltcp) return base;
  return std::make_unique<Mltcp>(std::move(base), *settings.mltcp);
}

}  // namespace gradplane::congestion
