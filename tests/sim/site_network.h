// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "control/plan/network.h"
#include "control/plan/routes.h"
#include "tests/lab/link.h"

namespace gradplane::sim {

/// The network from `at` on. Planners get the same description.
struct SitesAt {
  Instant at;
  plan::Network network;
};

/// Sites, the links between them, and their accesses, in virtual time. Each direction of a link or
/// an access is a pipe with a rate, a delay, random loss and a drop-tail queue. Packets take the
/// routes that planners assume (plan::Routes). When the network changes, packets that are sent
/// afterwards take the new routes, and packets on their way keep the old ones.
class SiteNetwork {
 public:
  using Pipe = std::uint32_t;
  using Path = std::vector<Pipe>;
  struct Queues {
    std::size_t least_bytes = 0;  // the shortest queue; other pipes have one round trip's bytes
    std::size_t mark_bytes = 0;   // length from which a queue marks; 0: no marks
  };

  /// `networks` has at least one entry and is in the order of times. The first is in force from the
  /// beginning. All have the same sites, nodes and links, but may differ in their properties.
  SiteNetwork(std::vector<SitesAt> networks, Queues queues);
  SiteNetwork(const SiteNetwork&) = delete;
  SiteNetwork& operator=(const SiteNetwork&) = delete;

  /// The pipes between two nodes, in order, without those that have no effect on a packet. Null if
  /// there is no route.
  std::shared_ptr<const Path> path(std::uint16_t from, std::uint16_t to, Instant now);
  /// The result for a datagram that enters a pipe. The datagram may be lost.
  struct Passage {
    Instant arrival;
    bool marked = false;
  };
  std::optional<Passage> pass(Pipe pipe, std::size_t payload_bytes, Instant now, lab::Rng& random);

  /// Ends all losses, also by full queues. Rates and delays stay.
  void heal();

  /// The network in force.
  const plan::Network& network() const { return networks_[in_force_].network; }
  /// What a pipe has carried and lost so far. The pipe of a link has the link's index.
  const lab::LinkCounters& counters(Pipe pipe) const { return pipes_[pipe].link.counters(); }

 private:
  struct State {
    lab::Link link{lab::LinkSettings{}};
    bool is_dead = false;
    bool does_nothing = false;
  };

  void advance(Instant now);
  void adopt();
  void set(Pipe pipe, const plan::Access& access, bool up);
  void set(Pipe pipe, std::uint64_t bits_per_s, Duration rtt, std::uint32_t loss_ppm);
  Pipe site_up(plan::SiteId site) const;
  Pipe node_up(std::uint16_t node) const;
  std::shared_ptr<const Path> find_path(std::uint16_t from, std::uint16_t to);

  std::vector<SitesAt> networks_;
  Queues queues_;
  bool is_healed_ = false;
  std::size_t in_force_ = 0;
  std::optional<plan::Routes> routes_;
  /// The links' pipes, then two for each site, then two for each node.
  std::vector<State> pipes_;
  std::unordered_map<std::uint32_t, std::shared_ptr<const Path>> paths_;
};

}  // namespace gradplane::sim
