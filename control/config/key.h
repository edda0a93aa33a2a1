// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <optional>
#include <string_view>

#include "control/config/config.h"

namespace gradplane::config {

/// 32 hex digits as a key; empty for everything else.
std::optional<ClusterKey> parse_key(std::string_view text);

}  // namespace gradplane::config
