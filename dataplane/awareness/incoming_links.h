// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/awareness/link_estimate.h"
#include "dataplane/base/assert.h"

namespace gradplane::awareness {

/// What a node knows of the links from all other nodes. An estimate begins with the first packet of
/// its sender and is kept for good, so it outlives plans and jobs; samples are forgotten by their
/// age. The constructor makes room for every node of a cluster, so a new sender causes no
/// allocation, and memory is touched only for senders that were heard.
class IncomingLinks {
 public:
  /// Nodes have ids below `nodes`.
  explicit IncomingLinks(std::size_t nodes);

  /// Must be called in the order of polls.
  void on_packet(std::uint16_t node, const Packet& packet, const Arrival& arrival,
                 const Told& told) {
    GP_ASSERT(node < link_of_node_.size());
    if (link_of_node_[node] == kUnheard) begin(node);
    LinkEstimate& estimate = links_[link_of_node_[node]].estimate;
    if (estimate.on_packet(packet, arrival) && estimate.is_changing()) changed_at_ = arrival.at;
    estimate.on_loss(arrival.at, told.loss);
    if (told.round_trip > Duration{}) estimate.on_round_trip(arrival.at, told.round_trip);
  }

  struct Link {
    std::uint16_t node = 0;  // the sender
    LinkEstimate estimate;
  };
  /// The senders that were ever heard, in the order in which they were first heard.
  std::size_t size() const { return links_.size(); }
  const Link& operator[](std::size_t index) const { return links_[index]; }
  /// Whether some link has changed a short time ago.
  bool alarm(Instant now) const { return now - changed_at_ < kAlarm; }
  /// Whether this node wants a train from `node`.
  bool wants_train(std::uint16_t node, Instant now) const {
    const LinkEstimate* link = find(node);
    return link != nullptr && link->wants_train(now, alarm(now));
  }
  /// Whether a short train from `node` is enough.
  bool is_slow(std::uint16_t node, Instant now) const {
    const LinkEstimate* link = find(node);
    return link != nullptr && link->is_slow(now);
  }
  /// nullptr if nothing has come from `node`.
  const LinkEstimate* find(std::uint16_t node) const;

 private:
  static constexpr std::uint16_t kUnheard = UINT16_MAX;

  void begin(std::uint16_t node);

  Instant changed_at_ = Instant::from_ns(INT64_MIN / 4);
  std::vector<Link> links_;
  std::vector<std::uint16_t> link_of_node_;
};

}  // namespace gradplane::awareness
