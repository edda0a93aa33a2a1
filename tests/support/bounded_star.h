// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "dataplane/aggregate/bucket.h"
#include "tests/support/core_node.h"

namespace gradplane::testing {

/// Whether the network drops a packet that node `from` sends.
using Loses = std::function<bool(std::uint16_t from, const Sent&)>;
inline bool nothing(std::uint16_t, const Sent&) {
  return false;
}
bool is_push_of(const Sent& packet, std::initializer_list<std::uint32_t> blocks);

struct StarOptions {
  Compensation compensation = Compensation::kRescale;
  Duration absent_after = {};
  std::uint16_t ranks_of_last = 1;  // on node 2; node 1 has one rank
  bool grants = false;
  WireType wire = WireType::kElements;  // of the tensor with a loss bound
};

/// A root, two leaves, and a network that drops the packets that a test names. Node 0 is the root
/// and has no ranks. Node 1 has rank 0; node 2 has the ranks from 1 on. The job has one bucket:
/// blocks 0 to 9 are an exact tensor, and blocks 10 to 19 a tensor of which two blocks may be
/// missing.
class BoundedStar {
 public:
  static constexpr std::uint32_t kBlocks = 20;
  static constexpr std::uint32_t kElements = kBlocks * 128;
  static constexpr std::uint16_t kBucket = 7;
  static constexpr std::uint16_t kLeaves = 2;

  explicit BoundedStar(const StarOptions& options);

  /// Submits a contribution in which every element is `value`.
  job::SubmitResult submit(std::uint16_t leaf, std::uint32_t round, float value,
                           std::size_t local_rank = 0);
  /// Lets `time` pass in steps of a millisecond. Each packet arrives one step after it was sent.
  void pass(Duration time, const Loses& loses = nothing);
  /// Runs a round without loss, from which the root learns its thresholds.
  void learn();

  float result(std::uint16_t leaf, std::uint32_t round, std::uint32_t block,
               std::size_t local_rank = 0);
  bool done(std::uint16_t leaf) const { return done_.contains(leaf); }
  job::Event event(std::uint16_t leaf) { return done_[leaf]; }
  /// The root's round reports since the last call.
  std::vector<RoundReport> reports();
  CoreNode& node(std::uint16_t n) { return *nodes_[n]; }
  aggregate::Bucket& bucket(std::uint16_t n) { return *buckets_[n]; }
  Instant now() const { return now_; }

 private:
  job::JobConfig config_of(std::uint16_t node, const StarOptions& options) const;

  std::vector<std::unique_ptr<aggregate::Bucket>> buckets_;
  std::vector<std::unique_ptr<CoreNode>> nodes_;
  std::map<std::uint16_t, job::Event> done_;
  Instant now_ = Instant::from_ns(1'000'000'000);
};

}  // namespace gradplane::testing
