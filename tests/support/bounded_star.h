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

/// Whether the network loses a packet of a node.
using Loses = std::function<bool(std::uint16_t from, const Sent&)>;
inline bool nothing(std::uint16_t, const Sent&) {
  return false;
}
bool is_push_of(const Sent& packet, std::initializer_list<std::uint32_t> blocks);

struct StarOptions {
  Compensation compensation = Compensation::kRescale;
  Duration absent_after = {};
  std::uint16_t ranks_of_last = 1;  // on node 2; the others have one
  bool grants = false;
  WireType wire = WireType::kElements;  // of the second tensor
};

/// One root, two leaves, and a network that loses what a test says. Node 0 is the root without
/// ranks, nodes 1 and 2 are leaves with ranks 0, and 1 and on. Of their one bucket, blocks 0 to 9
/// are an exact tensor, 10 to 19 one that may miss two blocks.
class BoundedStar {
 public:
  static constexpr std::uint32_t kBlocks = 20;
  static constexpr std::uint32_t kElements = kBlocks * 128;
  static constexpr std::uint16_t kBucket = 7;
  static constexpr std::uint16_t kLeaves = 2;

  explicit BoundedStar(const StarOptions& options);

  /// Every element of a rank's contribution is `value`.
  job::SubmitResult submit(std::uint16_t leaf, std::uint32_t round, float value,
                           std::size_t local_rank = 0);
  /// Lets `time` pass in steps of a millisecond; each packet takes one step.
  void pass(Duration time, const Loses& loses = nothing);
  /// A round without loss, from which the root learns its thresholds.
  void learn();

  float result(std::uint16_t leaf, std::uint32_t round, std::uint32_t block,
               std::size_t local_rank = 0);
  bool done(std::uint16_t leaf) const { return done_.contains(leaf); }
  job::Event event(std::uint16_t leaf) { return done_[leaf]; }
  /// What the root has reported since the last call.
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
