// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/congestion/mltcp.h"

#include <utility>

namespace gradplane::congestion {

Mltcp::Mltcp(std::unique_ptr<Controller> base, MltcpFunction function)
    : base_(std::move(base)), function_(function) {
  set_gain(function_.at(0));  // every iteration begins with nothing done
}

}  // namespace gradplane::congestion
