// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/engine/engine_options.h"
#include "dataplane/job/node.h"
#include "dataplane/port/destination.h"

namespace gradplane::engine {

/// What the headers of a packet say of its way.
struct Way {
  port::Destination destination;
  std::uint16_t source_udp_port = 0;
};

/// Of a packet to a node or to a group. All packets to one of them have the same source port, so
/// that they stay on one path; others spread over equal-cost paths.
Way way_of(const job::Node::Outgoing& packet, const EngineOptions& options) noexcept;

}  // namespace gradplane::engine
