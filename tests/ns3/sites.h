// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// ns-3 3.37 is C++17: module headers such as core-module.h do not compile as C++20, but these do.
#include <ns3/node-container.h>
#include <ns3/queue-disc-container.h>

#include <cstddef>
#include <cstdint>

#include "control/plan/network.h"
#include "dataplane/base/endpoint.h"

namespace gradplane::ns3_wan {

/// The sites and links of a planner's network in ns-3. Each site is a router with a host, whose
/// link to the router is never the bottleneck. Each direction of a link has its rate, half of the
/// round trip as its delay, its loss, and a drop-tail queue. ns-3 routes over the fewest links. A
/// direction with rate 0 drops everything.
class Sites {
 public:
  /// `network` has one node at each site, with the same number, and no limits of accesses.
  Sites(const plan::Network& network, std::size_t queue_bytes);

  ns3::Ptr<ns3::Node> host(std::size_t site) const {
    return hosts_.Get(static_cast<std::uint32_t>(site));
  }
  static Ipv4 address_of(std::size_t site);

  /// Drops by the queues before the links between sites.
  std::uint64_t drops() const;

 private:
  void connect_host(std::size_t site);
  void connect(const plan::Link& there, const plan::Link& back, std::size_t queue_bytes);

  ns3::NodeContainer hosts_;
  ns3::NodeContainer routers_;
  ns3::QueueDiscContainer queues_;
  std::uint32_t links_ = 0;
};

}  // namespace gradplane::ns3_wan
