// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/engine/engine_options.h"
#include "dataplane/job/node.h"
#include "dataplane/port/destination.h"

namespace gradplane::engine {

/// The address fields in the headers of a packet.
struct Way {
  port::Destination destination;
  std::uint16_t source_udp_port = 0;
};

/// The addresses of a packet to a node or a group. All packets to one receiver have the same source
/// port, so they stay on one path; packets to different receivers spread over equal-cost paths.
Way way_of(const job::Node::Outgoing& packet, const EngineOptions& options) noexcept;

}  // namespace gradplane::engine
