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

/// Stands for the workers of one job that sum over a star: it pushes their blocks as fast as the
/// aggregator takes them, and acks the results. It computes nothing and repeats nothing, so that
/// one core keeps an aggregator busy. For measuring; one thread.
class Workers {
 public:
  struct Settings {
    std::uint16_t count = 8;  // nodes 1 to count, one rank each
    std::size_t block_bytes = kDefaultBlockBytes;
    std::size_t round_bytes = 256 << 10;
    bool authenticate = false;
    Ipv4 aggregator;  // node 0
    std::uint16_t aggregator_udp_port = 0;
    std::uint16_t first_udp_port = 0;  // see FanIn
  };
  Workers(port::PortQueue& queue, const Settings& settings);

  /// Takes what has come, and sends a burst.
  void turn(Instant now);
  bool correct() const { return correct_; }
  std::uint64_t rounds() const { return oldest_; }

 private:
  /// Rounds that a worker submits ahead. Few of them, so that their sums stay in cache.
  static constexpr std::uint32_t kAhead = 4;

  struct Worker {
    std::uint64_t number = 0;  // of its last packet
    std::uint32_t sent_blocks = 0;
    std::uint32_t completed = 0;  // rounds whose results have all come, in order
    Instant acked_at;
    std::array<bool, kAhead> ack_again{};      // the ring had no room for an ack
    std::vector<hop::BlockReceiver> results;   // by round % kAhead
    std::vector<std::uint32_t> result_rounds;  // that these are of
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
  std::vector<Worker> workers_;  // by node; 0 is none
  Cursor next_;
  std::uint32_t oldest_ = 0;  // round that some worker has not completed
  wire::BlockPacket packet_;
  bool correct_ = true;
};

}  // namespace gradplane::testing
