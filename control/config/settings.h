// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

#include "control/config/draft.h"

namespace gradplane::config {

/// Every option with the value in force and its origin, in the table's order.
std::vector<Setting> make_settings(const Draft& draft, const std::string& self_origin);

}  // namespace gradplane::config
