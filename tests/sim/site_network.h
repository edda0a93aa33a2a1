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

/// From `at` on, the network is this one. Planners get the same description.
struct SitesAt {
  Instant at;
  plan::Network network;
};

/// Sites, the links between them and the accesses to them, in virtual time. Each direction of each
/// of these is a pipe with a rate, a delay, random loss and a drop-tail queue. Packets take the
/// ways that planners count on (plan::Routes). When the network changes, what is sent from then on
/// takes the new ways, and what is under way keeps its old one.
class SiteNetwork {
 public:
  using Pipe = std::uint32_t;
  using Path = std::vector<Pipe>;
  struct Queues {
    std::size_t least_bytes = 0;  // a pipe with a longer round trip holds what its rate fills
    std::size_t mark_bytes = 0;   // 0: none marks
  };

  /// `networks` in the order of their times, at least one; the first is in force from the
  /// beginning. All have the same sites, nodes and links, and only what these are like differs.
  SiteNetwork(std::vector<SitesAt> networks, Queues queues);
  SiteNetwork(const SiteNetwork&) = delete;
  SiteNetwork& operator=(const SiteNetwork&) = delete;

  /// The pipes between two nodes, in their order, without those that do nothing to a packet; null
  /// without a way.
  std::shared_ptr<const Path> path(std::uint16_t from, std::uint16_t to, Instant now);
  /// A datagram enters a pipe. It may be lost.
  struct Passage {
    Instant arrival;
    bool marked = false;
  };
  std::optional<Passage> pass(Pipe pipe, std::size_t payload_bytes, Instant now, lab::Rng& random);

  /// From now on no pipe loses anything. Rates and delays stay.
  void heal();

  /// What is in force.
  const plan::Network& network() const { return networks_[in_force_].network; }
  /// What a pipe has carried so far. The pipe of a link has the index of the link.
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
  /// Links, then each site's two directions, then each node's.
  std::vector<State> pipes_;
  std::unordered_map<std::uint32_t, std::shared_ptr<const Path>> paths_;
};

}  // namespace gradplane::sim
