// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/base/time.h"
#include "dataplane/job/job.h"
#include "dataplane/job/node.h"
#include "tests/support/seen_packet.h"

namespace gradplane::testing {

/// A packet that a node sent.
struct Sent {
  std::uint16_t to = 0;
  std::vector<std::byte> bytes;
  std::optional<GroupName> group = std::nullopt;  // whom it is for instead
  SeenPacket seen() const { return see(bytes).value_or(SeenPacket{}); }
};

/// What rank `rank` adds to element `element`: small whole numbers, so that fp32 sums are exact.
inline float contribution(std::uint32_t round, std::uint32_t rank, std::uint32_t element) {
  return static_cast<float>((round * 5 + rank * 3 + element * 7) % 16);
}

/// One job on one node, with the arenas of its local ranks, and no network: packets go in and come
/// out as bytes. Every packet that the job sends is checked to be one that can be read.
class CoreNode {
 public:
  /// config.local_ranks names the ranks; their arenas are made here.
  explicit CoreNode(job::JobConfig config, const job::Node::Link& link = {});

  /// Writes rank `local_rank`'s contribution to a round of `elements` fp32 and submits it.
  job::SubmitResult submit(std::size_t local_rank, std::uint32_t round, std::uint32_t elements);
  /// `marked`: with congestion experienced.
  void deliver(std::uint16_t from, std::span<const std::byte> bytes, Instant now,
               bool marked = false);
  /// Everything that may leave now. Sums local contributions first.
  std::vector<Sent> drain(Instant now);
  /// Events since the last call.
  std::vector<job::Event> events();

  /// The number at `element` of a local rank's slot.
  float element(std::size_t local_rank, std::uint32_t round, std::uint32_t index) const;
  /// Its place, to write.
  float* at(std::size_t local_rank, std::uint32_t round, std::uint32_t index);
  /// Whether the slot holds the sum over ranks 0..world_size-1.
  bool holds_sum(std::size_t local_rank, std::uint32_t round, std::uint32_t elements) const;
  bool holds_sum_of(std::span<const std::uint16_t> ranks, std::size_t local_rank,
                    std::uint32_t round, std::uint32_t elements) const;

  job::Job& job() { return *job_; }
  const job::Job& job() const { return *job_; }
  job::Node& node() { return node_; }
  std::uint64_t drops(hop::Drop reason) const;

 private:
  const std::byte* slot(std::size_t local_rank, std::uint32_t round) const;

  std::vector<std::unique_ptr<std::byte[]>> arenas_;
  std::unique_ptr<job::Job> job_;
  job::Node node_;
};

}  // namespace gradplane::testing
