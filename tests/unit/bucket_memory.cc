// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How much memory the buckets of a job may take for residuals.
#include <malloc.h>

#include <numeric>
#include <vector>

#include "dataplane/engine/local_plan.h"
#include "tests/support/catch.h"
#include "tests/support/engine_host.h"
#include "tests/support/hosts.h"

using namespace gradplane;

namespace {

constexpr std::size_t kRoundBytes = 64 << 10;
constexpr std::uint32_t kElements = kRoundBytes / sizeof(float);

/// A job of node 1, which pushes to node 0.
engine::JobRuntime job_with(Compensation compensation, std::size_t residual_bytes,
                            std::uint32_t staleness_steps = 0) {
  job::JobConfig config;
  api::Plan plan = testing::star_of(2);
  if (staleness_steps > 0) plan.selections = {{.receivers = {{1}, {0}}}};
  config.staleness_steps = staleness_steps;
  config.self = 1;
  config.round_bytes = kRoundBytes;
  config.compensation = compensation;
  config.residual_bytes = residual_bytes;
  engine::fill_local_plan(config, plan, 1, {});
  auto channel = ipc::Channel::create({.slot_count = kRoundSlots, .slot_bytes = kRoundBytes});
  REQUIRE(channel.ok());
  return engine::JobRuntime(
      std::move(config), {1},
      {std::make_shared<engine::RankChannel>(engine::RankChannel{std::move(channel.value()), {}})});
}

api::BucketBounds table(std::uint32_t bucket, std::uint32_t elements) {
  api::BucketBounds bounds;
  bounds.bucket = bucket;
  bounds.elements = elements;
  api::BoundedTensor tensor;
  tensor.elements = elements;
  tensor.bound = 0.1F;
  bounds.tensors = {tensor};
  return bounds;
}

}  // namespace

TEST_CASE("a bucket that needs more than is left to keep is exact, a smaller one is not") {
  engine::JobRuntime runtime = job_with(Compensation::kCarry, 2 * kRoundBytes + kRoundBytes / 2);
  CHECK(runtime.make_bucket(table(1, kElements)) != nullptr);
  CHECK(runtime.make_bucket(table(2, kElements)) != nullptr);
  CHECK(runtime.make_bucket(table(3, kElements)) == nullptr);
  CHECK(runtime.make_bucket(table(4, kElements / 2)) != nullptr);
  CHECK(runtime.make_bucket(table(5, 1)) == nullptr);
}

TEST_CASE("who keeps nothing needs no room for it") {
  engine::JobRuntime runtime = job_with(Compensation::kRescale, 0);
  CHECK(runtime.make_bucket(table(1, kElements)) != nullptr);
}

TEST_CASE("updates under bounded staleness are not carried, so nothing is kept for it") {
  engine::JobRuntime runtime = job_with(Compensation::kCarry, 0, 4);
  CHECK(runtime.make_bucket(table(1, kElements)) != nullptr);
}

TEST_CASE("a job may keep what the documentation says") {
  CHECK(job::JobConfig{}.residual_bytes == std::size_t{4} << 30);
}

TEST_CASE("what a gathering counts does not grow with tensors times sources") {
  // The bucket has as many tensors as a tenant may name, with one element each: a round of 64 KiB.
  constexpr std::size_t kTensors = kMaxTensorsPerBucket;
  constexpr std::size_t kSources = 1000;
  const auto geometry = Geometry::of(ElementType::kFloat32, kTensors, kDefaultBlockBytes, 1);
  std::vector<aggregate::TensorBound> tensors;
  for (std::uint32_t t = 0; t < kTensors; ++t) tensors.push_back({t, 1, 0.5F});
  const aggregate::TensorMap map(geometry, tensors);
  const std::vector<std::atomic<float>> bounds(kTensors);
  std::vector<std::uint16_t> nodes(kSources);
  std::iota(nodes.begin(), nodes.end(), std::uint16_t{0});
  // Each round clears these counters, so they must be few. Sanitizers replace malloc, so under them
  // mallinfo2() shows no growth.
  const struct mallinfo2 before = mallinfo2();
  const aggregate::Gather gather(testing::hosts_as_sources(nodes), map, bounds, {});
  const struct mallinfo2 after = mallinfo2();
  constexpr std::size_t kBytesPerSource = 1024;
  CHECK(after.uordblks + after.hblkhd <=
        before.uordblks + before.hblkhd + kSources * kBytesPerSource);
}
