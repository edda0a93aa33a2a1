// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/sim/cluster.h"

/// A small simulated job with rounds that may be partial, for tests that script the losses.
namespace gradplane::tolerant_lab {

using sim::Outcome;
using sim::Scenario;

inline constexpr std::uint32_t kBlockElements = kMinBlockBytes / 4;  // elements of fp32 in a block

struct TensorSpec {
  std::uint32_t elements;
  float bound;
};

inline api::BucketBounds bucket_of(std::uint32_t id, const std::vector<TensorSpec>& tensors) {
  api::BucketBounds bucket;
  bucket.bucket = id;
  for (const TensorSpec& spec : tensors) {
    api::BoundedTensor tensor;
    tensor.name = "tensor" + std::to_string(bucket.tensors.size());
    tensor.offset_elements = bucket.elements;
    tensor.elements = spec.elements;
    tensor.bound = spec.bound;
    bucket.tensors.push_back(tensor);
    bucket.elements += spec.elements;
  }
  return bucket;
}

/// A bucket with two exact blocks, and 40 blocks of which a fifth may be missing.
inline api::BucketBounds plain_bucket(std::uint32_t id) {
  return bucket_of(id, {{2 * kBlockElements, 0}, {40 * kBlockElements, 0.2F}});
}
inline constexpr std::uint32_t kFirstLossy = 2;
inline constexpr std::uint32_t kAllowance = 8;

/// Three workers (nodes 1 to 3, ranks 0 to 2) and a root (node 0) on a network without faults. One
/// strict round, in which the root learns how long a round takes, then `rounds` rounds of the first
/// bucket.
inline Scenario lab_scenario(Compensation compensation, std::vector<api::BucketBounds> buckets,
                             std::uint32_t rounds) {
  Scenario s;
  s.plan = sim::star(3);
  s.link.delay = Duration::ms(1);
  s.compute_max = {};
  s.tolerance.compensation = compensation;
  s.tolerance.strict_rounds = 1;
  s.tolerance.slack = Duration::ms(2);
  s.tolerance.buckets = std::move(buckets);
  for (std::uint32_t r = 0; r <= rounds; ++r) {
    s.rounds.push_back(sim::round_of(s.tolerance.buckets[0]));
  }
  return s;
}

/// Adds one round of each bucket without loss, which brings what was kept as a residual.
inline void add_closing_rounds(Scenario& s) {
  for (const api::BucketBounds& bucket : s.tolerance.buckets) {
    s.rounds.push_back(sim::round_of(bucket));
  }
  s.tolerance.closing_rounds = s.tolerance.buckets.size();
}

inline bool is_push(const testing::SeenPacket& h, std::uint32_t round) {
  return h.type == wire::PacketType::kPush && h.round == round;
}

inline std::uint64_t count(const Outcome& outcome, CloseReason reason) {
  return outcome.tolerance.at(reason);
}

}  // namespace gradplane::tolerant_lab
