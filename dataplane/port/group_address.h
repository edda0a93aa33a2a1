// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/model/group_name.h"
#include "dataplane/model/group_range.h"
#include "dataplane/port/destination.h"

namespace gradplane::port {

/// The group of that name. Every node computes the same group, without any exchange. Two names may
/// get the same address; then the members of both receive the packets of both, and drop those of
/// the other. `range` must be valid, and `udp_port` not 0.
Group group_of(const GroupName& name, const GroupRange& range, std::uint16_t udp_port) noexcept;

}  // namespace gradplane::port
