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
  std::uint16_t self = 0;             // this node's id
  std::vector<Ipv4> nodes;            // every node's address, by id
  std::uint16_t queue = 0;            // of the port: which of the node's engines this is
  std::uint16_t udp_port = 47000;     // where the engines of this queue listen, at every node
  job::Node::Link link;               // of this node
  SharedLink* shared_link = nullptr;  // null: this engine has all of it, as the only one
  GrantSettings grants = {};          // of this node's downlink
  GroupRange groups = {};             // where groups have their addresses, at every node
  /// The monotonic clock, to measure what a turn takes. Null: nothing is measured.
  Instant (*clock)() = nullptr;
};

}  // namespace gradplane::engine
