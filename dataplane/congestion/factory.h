// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>

#include "dataplane/congestion/controller.h"
#include "dataplane/congestion/path.h"
#include "dataplane/model/congestion_settings.h"

namespace gradplane::congestion {

/// Makes the controller that `settings` name, for one flow over `path`. Allocates, so it is not for
/// the poll loop's hot path.
std::unique_ptr<Controller> make_controller(const CongestionSettings& settings, const Path& path);

}  // namespace gradplane::congestion
