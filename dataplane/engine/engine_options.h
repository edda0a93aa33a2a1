// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/endpoint.h"
#include "dataplane/base/time.h"
#include "dataplane/job/node.h"
#include "dataplane/model/group_range.h"

namespace gradplane::engine {

class SharedLink;

struct EngineOptions {
  std::uint16_t self = 0;          // id of this node
  std::vector<Ipv4> nodes;         // addresses of all nodes, by node id
  std::uint16_t queue = 0;         // index of this engine's queue in the node's port
  std::uint16_t udp_port = 47000;  // UDP port on which all nodes' engines of this queue listen
  job::Node::Link link;            // of this node
  /// Null if this is the node's only engine, which then has the whole link.
  SharedLink* shared_link = nullptr;
  GrantSettings grants = {};  // for the downlink of this node
  GroupRange groups = {};     // the range of group addresses; the same at every node
  /// The monotonic clock that measures the stages of a turn. Null: nothing is measured.
  Instant (*clock)() = nullptr;
};

}  // namespace gradplane::engine
