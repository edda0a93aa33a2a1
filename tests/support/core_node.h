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
  std::optional<GroupName> group = std::nullopt;  // the receivers, if it goes to a group
  SeenPacket seen() const { return see(bytes).value_or(SeenPacket{}); }
};

/// Rank `rank`'s contribution to element `element`. Values are small integers, so that fp32 sums
/// are exact.
inline float contribution(std::uint32_t round, std::uint32_t rank, std::uint32_t element) {
  return static_cast<float>((round * 5 + rank * 3 + element * 7) % 16);
}

/// One job on one node, with the arenas of its local ranks. There is no network: packets go in and
/// come out as bytes. It checks that every packet that the job sends can be parsed.
class CoreNode {
 public:
  /// config.local_ranks names the ranks; the constructor allocates their arenas.
  explicit CoreNode(job::JobConfig config, const job::Node::Link& link = {});

  /// Writes rank `local_rank`'s contribution to a round of `elements` fp32 and submits it.
  job::SubmitResult submit(std::size_t local_rank, std::uint32_t round, std::uint32_t elements);
  /// `marked`: the packet has ECN's congestion experienced.
  void deliver(std::uint16_t from, std::span<const std::byte> bytes, Instant now,
               bool marked = false);
  /// Sums local contributions, then returns all packets that may leave now.
  std::vector<Sent> drain(Instant now, std::size_t buffer_bytes = kMaxDatagramBytes);
  /// Events since the last call.
  std::vector<job::Event> events();

  /// The value of element `index` in a local rank's slot.
  float element(std::size_t local_rank, std::uint32_t round, std::uint32_t index) const;
  /// The address of that element, for tests that write to it.
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
