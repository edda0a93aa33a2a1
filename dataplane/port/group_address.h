// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/model/group_name.h"
#include "dataplane/model/group_range.h"
#include "dataplane/port/destination.h"

namespace gradplane::port {

/// The group of that name: the same at every node, without a word between them. Two names may get
/// one address. Then the members of both receive the packets of both, and drop what is not theirs.
/// `range` is valid, `udp_port` is not 0.
Group group_of(const GroupName& name, const GroupRange& range, std::uint16_t udp_port) noexcept;

}  // namespace gradplane::port
