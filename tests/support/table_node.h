// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "tests/support/core_node.h"
#include "tests/support/packet.h"

namespace gradplane::testing {

/// Node 1 of a job with five ranks, in every role at once, for tables of packets.
///
///   tree 0:  0 (rank 0)              tree 1:  1 (rank 1)
///            +- 1 (rank 1)                    +- 2, with ranks 0, 2, 3 and 4 below
///               +- 2 (rank 2)
///               +- 3 (ranks 3, 4)
///
/// It relays packets from node 3 to node 2, and node 2 may send to it through node 3.
///
/// Round 99 has ended. Round 100 has 16 blocks: tree 0 carries 0-7 and tree 1 carries 8-15. The
/// local rank has submitted it. Blocks 0-3 are summed and on their way to node 0: 0 and 1 left at
/// first_sent_us(), and 2 and 3 two milliseconds later. The results of 8-11 are on their way to
/// node 2. Blocks 4-7 and 12-15 of all other nodes are still to come.
class TableNode {
 public:
  static constexpr std::uint32_t kRound = 100;
  static constexpr std::uint32_t kElements = 2048;
  static constexpr std::uint32_t kTreeBlocks = 8;
  static constexpr std::uint16_t kWorld = 5;
  static constexpr std::uint16_t kSelf = 1;
  static constexpr wire::Key kKey{std::byte{1}, std::byte{2}, std::byte{3}};

  TableNode();

  // Packets as correct nodes send them in round `kRound`, or in another one.
  PacketBuilder push(std::uint16_t from, std::uint8_t tree, std::uint32_t block,
                     std::uint32_t round = kRound) const;
  PacketBuilder result(std::uint32_t block, std::uint32_t round = kRound) const;
  PacketBuilder push_ack() const;    // from node 0 in tree 0, naming no block
  PacketBuilder result_ack() const;  // from node 2 in tree 1, naming no block

  /// Delivers a packet from the node that it names, or from node `via`. A packet without a key, a
  /// receiver or a number gets this job's key, this node, and the next number.
  void deliver(const PacketBuilder& packet, int via = -1);
  /// Behaves as all other nodes until `round` is done here. Returns whether it ended with the right
  /// sum.
  bool finish(std::uint32_t round);

  void pass(Duration time) { now_ = now_ + time; }
  Instant now() const { return now_; }
  std::uint32_t first_sent_us() const { return first_sent_us_; }
  std::uint32_t in_flight() const;
  /// The ack that leaves now, without a delay, if there is one.
  std::optional<SeenPacket> urgent_ack();
  CoreNode& core() { return *node_; }

 private:
  PacketBuilder::Round round_of(std::uint32_t round) const;
  PacketBuilder data(wire::PacketType type, std::uint32_t block, std::uint32_t round,
                     std::initializer_list<std::uint16_t> ranks) const;
  void gather(std::initializer_list<std::uint32_t> blocks);
  void answer(const Sent& packet, std::uint32_t round);
  bool done(std::uint32_t round);

  std::unique_ptr<CoreNode> node_;
  Instant now_ = Instant::from_ns(5'000'000'000);
  std::uint32_t first_sent_us_ = 0;
  std::uint64_t last_number_ = 0;  // the highest number that any sender has used
};

}  // namespace gradplane::testing
