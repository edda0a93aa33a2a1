// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/core/counters.h"
#include "dataplane/core/job.h"

namespace gradplane::core {

/// All jobs at one node, and the node's own link. Pure, like Job; does not own the jobs.
class Node {
 public:
  /// `link_bits_per_second` 0: the link is not paced.
  explicit Node(std::uint16_t self, std::uint64_t link_bits_per_second);

  /// False when the table is full or the job's id is there already.
  [[nodiscard]] bool add(Job* job);
  void remove(const Job* job);
  std::span<Job* const> jobs() const { return {jobs_.data(), job_count_}; }

  /// A datagram from `node` (by its address). Control packets are given back to the caller, unread.
  std::optional<wire::Packet> handle(std::uint16_t node, std::span<const std::byte> datagram,
                                     bool congestion_experienced, Instant now);

  /// The next packet to send: acks first, then blocks of the jobs in turn.
  struct Outgoing {
    std::uint16_t node = 0;
    std::uint32_t length_bytes = 0;
    bool data = false;
  };
  std::optional<Outgoing> poll_transmit(std::span<std::byte> out, Instant now);

  bool sum_local(std::size_t max_blocks);
  void tick(Instant now);
  /// When to call tick() or poll_transmit() again, if no packet comes before; in the past: at once.
  Instant next_deadline() const;

  /// Drops that belong to no job.
  const Counters& counters() const { return counters_; }
  Counters& counters() { return counters_; }

 private:
  std::uint16_t self_;
  Pacer link_;
  std::array<Job*, kMaxJobs> jobs_{};
  std::size_t job_count_ = 0;
  std::size_t next_job_ = 0;
  Counters counters_;
};

}  // namespace gradplane::core
