// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <optional>
#include <string_view>

#include "control/config/config.h"

namespace gradplane::config {

/// The key in 32 hex digits; nothing for any other text.
std::optional<ClusterKey> parse_key(std::string_view text);

}  // namespace gradplane::config
