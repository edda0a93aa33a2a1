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

/// The place of a node on a route.
struct RoutePlace {
  std::uint8_t next = 0;  // index of this node in the route
  bool is_end = false;    // this node is the receiver
};

/// The place of `self` on the route of a packet that came from the node `from`. Nothing if the
/// route does not name both in this order, if it names a node twice, or if its length is wrong.
std::optional<RoutePlace> place_on_route(const wire::BlockPacket& packet, std::uint16_t self,
                                         std::uint16_t from);

/// The auxiliary routes of one plan on which this node is. The control thread makes it.
class RouteTable {
 public:
  RouteTable(const PlanConfig& plan, std::uint16_t self);

  /// The path number of a route at its sender; nothing if the plan does not have the route.
  std::optional<std::uint8_t> path_of(std::uint16_t sender,
                                      const wire::Numbers<std::uint16_t>& route) const;
  /// The routes from this node to `to`, in the order of their paths.
  std::vector<hop::Route> routes_to(std::uint16_t to) const;
  /// The route from this node to `to` with this number, from 0 on; nullptr if there is none.
  const hop::Route* route_to(std::uint16_t to, std::size_t number) const;
  /// The nodes before and after this one on its routes, each once.
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

/// Packets of other nodes that wait at a relay until its link has room. The queue is short, because
/// senders learn from the packets that it drops.
class RelayQueue {
 public:
  static constexpr std::size_t kSlots = 64;

  /// Packets have at most `packet_bytes`; 0: this node relays nothing.
  explicit RelayQueue(std::size_t packet_bytes);

  struct Waiting {
    wire::Envelope envelope;
    std::uint16_t to = 0;   // the next node
    std::uint8_t next = 0;  // index of `to` in the route
    std::uint32_t slot = 0;
    std::uint32_t length_bytes = 0;
  };
  /// False if the queue is full or the packet too long.
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
