// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/base/fixed_queue.h"
#include "dataplane/hop/path.h"
#include "dataplane/job/job_config.h"
#include "dataplane/wire/block.h"

namespace gradplane::job {

/// Where a node stands on a route.
struct RoutePlace {
  std::uint16_t from = 0;  // the node before it
  std::uint8_t next = 0;   // its own index in the route
  bool is_end = false;     // it is the receiver
};

/// What a routed packet says of its way when it has come to `self` from the node `from`: it names
/// both where they are, and it is no circle and not too long. Nothing where it does not.
std::optional<RoutePlace> place_on_route(const wire::BlockPacket& packet, std::uint16_t self,
                                         std::uint16_t from);

/// The auxiliary routes of one plan that have to do with this node. Control thread makes it.
class RouteTable {
 public:
  RouteTable(const PlanConfig& plan, std::uint16_t self);

  /// The path of a sender that this route is to its end; nothing where the plan does not have it.
  std::optional<std::uint8_t> path_of(std::uint16_t sender,
                                      const wire::Numbers<std::uint16_t>& route) const;
  /// Those from this node to `to`, in the order of their paths.
  std::vector<hop::Route> routes_to(std::uint16_t to) const;
  /// The one from this node to `to` with this number, from 0 on; nullptr where there is none.
  const hop::Route* route_to(std::uint16_t to, std::size_t number) const;
  /// The nodes before and after this one on some route, each once.
  std::span<const std::uint16_t> neighbours() const { return neighbours_; }
  /// Whether this node relays on some route.
  bool relays() const { return relays_; }

 private:
  using Key = std::uint64_t;
  static constexpr int kNodeBits = 16;
  static_assert((kMaxRelays + 2) * kNodeBits <= 64, "a key has the sender and the whole route");
  struct Entry {
    Key key = 0;
    std::uint8_t path = 0;
  };
  struct Own {
    std::uint16_t to = 0;
    hop::Route route;
  };
  void note_neighbours(const RouteConfig& route, std::uint16_t self);

  std::vector<Entry> entries_;  // by key
  std::vector<Own> own_;
  std::vector<std::uint16_t> neighbours_;
  bool relays_ = false;
};

/// Packets of other nodes that wait at a relay until its link lets them go. A few: who sends them
/// learns from those that are dropped.
class RelayQueue {
 public:
  static constexpr std::size_t kSlots = 64;

  /// Packets have at most `packet_bytes`; 0: there is nothing to relay.
  explicit RelayQueue(std::size_t packet_bytes);

  struct Waiting {
    wire::Envelope envelope;
    std::uint16_t to = 0;   // the next node
    std::uint8_t next = 0;  // its index in the route
    std::uint32_t slot = 0;
    std::uint32_t length_bytes = 0;
  };
  /// False when it is full, or the packet too long.
  [[nodiscard]] bool push(const wire::Envelope& envelope, std::span<const std::byte> packet,
                          std::uint16_t to, std::uint8_t next);
  bool empty() const { return waiting_.empty(); }
  const Waiting& front() const { return waiting_.front(); }
  std::span<const std::byte> bytes_of(const Waiting& waiting) const {
    return {bytes_.data() + waiting.slot * packet_bytes_, waiting.length_bytes};
  }
  void pop() { waiting_.pop(); }

 private:
  std::size_t packet_bytes_;
  std::vector<std::byte> bytes_;
  FixedQueue<Waiting> waiting_;
  std::uint32_t next_slot_ = 0;
};

}  // namespace gradplane::job
