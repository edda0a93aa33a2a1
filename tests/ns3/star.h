// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// ns-3 3.37 is C++17: module headers such as core-module.h do not compile as C++20, but these do.
#include <ns3/node-container.h>
#include <ns3/queue-disc-container.h>
#include <ns3/queue-disc.h>

#include <cstddef>
#include <cstdint>

#include "dataplane/base/endpoint.h"
#include "tests/ns3/links.h"
#include "tests/ns3/scenario.h"

namespace gradplane::ns3_incast {

using ns3_host::kFrameBytes;
using ns3_host::now;
using ns3_host::time_of;

/// Hosts around one switch in ns-3. Host 0 is the receiver. The queue under test is in the switch
/// before the receiver's link. No other queue may lose packets.
class Star {
 public:
  explicit Star(const Scenario& scenario);
  Star(const Star&) = delete;
  Star& operator=(const Star&) = delete;

  ns3::Ptr<ns3::Node> host(std::size_t index) const {
    return hosts_.Get(static_cast<std::uint32_t>(index));
  }
  static Ipv4 address_of(std::size_t host);
  /// The host with this address, which is one of address_of().
  static std::size_t host_of(Ipv4 address);

  /// Writes the queues' counters into the outcome.
  void report(Outcome& outcome) const;

 private:
  void connect(std::size_t host, const Scenario& scenario);
  void note_depth(std::uint32_t before, std::uint32_t now);

  ns3::NodeContainer hosts_;
  ns3::Ptr<ns3::Node> switch_;
  ns3::Ptr<ns3::QueueDisc> queue_;  // before the receiver's link
  ns3::QueueDiscContainer others_;
  std::uint32_t deepest_bytes_ = 0;
};

}  // namespace gradplane::ns3_incast
