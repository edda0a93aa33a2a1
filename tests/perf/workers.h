// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <vector>

#include "dataplane/hop/block_receiver.h"
#include "dataplane/model/geometry.h"
#include "dataplane/port/port.h"
#include "dataplane/wire/block.h"
#include "dataplane/wire/gmac.h"

namespace gradplane::testing {

/// Acts as the workers of one job that sums over a star: pushes their blocks as fast as the
/// aggregator takes them, and acks the results. It computes and retransmits nothing, so one core
/// keeps an aggregator busy. For measurements; not thread-safe.
class Workers {
 public:
  struct Settings {
    std::uint16_t count = 8;  // nodes 1 to count, with one rank each
    std::size_t block_bytes = kDefaultBlockBytes;
    std::size_t round_bytes = 256 << 10;
    bool authenticate = false;
    Ipv4 aggregator;  // node 0
    std::uint16_t aggregator_udp_port = 0;
    std::uint16_t first_udp_port = 0;  // see FanIn
  };
  Workers(port::PortQueue& queue, const Settings& settings);

  /// Takes arrived datagrams, and sends a burst.
  void turn(Instant now);
  bool correct() const { return correct_; }
  std::uint64_t rounds() const { return oldest_; }

 private:
  /// How many rounds a worker has in flight. They are few, so that their sums stay in cache.
  static constexpr std::uint32_t kAhead = 4;

  struct Worker {
    std::uint64_t number = 0;  // packet number of its last packet
    std::uint32_t sent_blocks = 0;
    std::uint32_t completed = 0;  // rounds of which all results have come, in order
    Instant acked_at;
    // An ack is still to be sent, because the ring had no room.
    std::array<bool, kAhead> ack_again{};
    std::vector<hop::BlockReceiver> results;   // by round % kAhead
    std::vector<std::uint32_t> result_rounds;  // the rounds of these results
  };
  struct Cursor {
    std::uint32_t round = 0;
    std::uint32_t block = 0;
    std::uint16_t worker = 1;
  };

  bool receive(Instant now);
  void take(const port::RxDatagram& datagram, Instant now);
  void take_result(Worker& worker, std::uint16_t node, const wire::BlockPacket& packet,
                   Instant now);
  void ack(Worker& worker, std::uint16_t node, std::uint32_t round, hop::BlockReceiver& results,
           Instant now);
  void ack_what_is_due(Instant now);
  void send(Instant now);
  std::uint32_t write_push(std::span<std::byte> out, const Cursor& at, Instant now);
  void finish(port::TxDatagram& datagram, std::uint16_t node, std::uint32_t bytes);
  Cursor after(Cursor at) const;

  port::PortQueue& queue_;
  Settings settings_;
  Geometry geometry_;
  wire::Gmac key_;
  std::vector<std::byte> payload_;
  std::vector<Worker> workers_;  // by node; entry 0 is unused
  Cursor next_;
  std::uint32_t oldest_ = 0;  // the oldest round that some worker has not completed
  wire::BlockPacket packet_;
  bool correct_ = true;
};

}  // namespace gradplane::testing
