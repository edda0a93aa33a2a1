// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// A root's report on each round under bounds: its close reason, and the missing blocks of each
// rank.
#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "dataplane/aggregate/gather.h"
#include "tests/support/bounded_star.h"
#include "tests/support/catch.h"
#include "tests/support/hosts.h"

using namespace gradplane;
using namespace gradplane::testing;
using aggregate::Gather;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr std::uint32_t kBlocks = BoundedStar::kBlocks;

Loses loses_of_last(std::initializer_list<std::uint32_t> blocks) {
  return [blocks = std::vector(blocks)](std::uint16_t from, const Sent& packet) {
    const SeenPacket h = packet.seen();
    return from == 2 && h.type == wire::PacketType::kPush &&
           std::find(blocks.begin(), blocks.end(), h.block) != blocks.end();
  };
}

/// Returns the report of round 1. Nodes 1 and 2 contributed, and the network lost the packets that
/// `loses` names.
RoundReport close_one(BoundedStar& star, const Loses& loses) {
  star.learn();
  REQUIRE(star.submit(1, 1, 3) == job::SubmitResult::kAccepted);
  REQUIRE(star.submit(2, 1, 5) == job::SubmitResult::kAccepted);
  star.pass(Duration::ms(200), loses);
  const std::vector<RoundReport> reports = star.reports();
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].number == 2);
  CHECK(reports[0].round == 1);
  CHECK(reports[0].bucket == BoundedStar::kBucket);
  CHECK(reports[0].tree == 0);
  CHECK(reports[0].epoch == 1);
  CHECK(reports[0].blocks == kBlocks);
  CHECK(reports[0].source_count == 2);
  if (reports[0].reason != CloseReason::kFull) CHECK(reports[0].duration > Duration::ms(1));
  CHECK(reports[0].missing_blocks == star.node(0).job().counters().blocks_missing);
  return reports[0];
}

/// A gathering of `sources` sources and `tensors` tensors of ten blocks each. Every tensor has a
/// bound above 0.
struct Rig {
  Rig(std::size_t sources, std::uint32_t tensors)
      : blocks(10 * tensors), map(geometry(blocks), table(tensors)), bounds(tensors) {
    for (std::atomic<float>& bound : bounds) bound = 0.5F;
    std::vector<std::uint16_t> nodes;
    for (std::size_t s = 0; s < sources; ++s) nodes.push_back(static_cast<std::uint16_t>(100 + s));
    gather.emplace(testing::hosts_as_sources(nodes), map, bounds,
                   aggregate::CloseLimits{.strict_rounds = 0});
    gather->open({0, blocks});
  }
  static Geometry geometry(std::uint32_t blocks) {
    return Geometry::of(ElementType::kFloat32, blocks * 128, 512, 1);
  }
  static std::vector<aggregate::TensorBound> table(std::uint32_t tensors) {
    std::vector<aggregate::TensorBound> out;
    for (std::uint32_t t = 0; t < tensors; ++t) out.push_back({t * 1280, 1280, 0.5F});
    return out;
  }
  /// Lets all blocks of a source arrive at `at`, except for the first `missing` ones of each
  /// tensor.
  void arrive(std::size_t source, const std::vector<std::uint32_t>& missing, Duration at = {}) {
    for (std::uint32_t b = 0; b < blocks; ++b) {
      if (b % 10 < missing[b / 10]) continue;
      gather->on_block(source, {.block = b, .last = false, .bounded = true, .rtt = {}},
                       kStart + at);
    }
  }
  RoundReport close(CloseReason reason, Duration after) {
    gather->close(reason, kStart + after);
    return gather->last_round(reason, kStart + after);
  }

  std::uint32_t blocks;
  aggregate::TensorMap map;
  std::vector<std::atomic<float>> bounds;
  std::optional<Gather> gather;
};

}  // namespace

TEST_CASE("a full round is reported, with nothing missing") {
  BoundedStar star({});
  const RoundReport report = close_one(star, nothing);
  CHECK(report.reason == CloseReason::kFull);
  CHECK(report.missing_blocks == 0);
  CHECK(report.lacking_sources == 0);
  CHECK(report.lacking_tensors == 0);
}

TEST_CASE("a round that closed early names who lacked what") {
  BoundedStar star({});
  const RoundReport report = close_one(star, loses_of_last({12, 15}));
  CHECK(report.reason == CloseReason::kEarly);
  CHECK(report.missing_blocks == 2);
  REQUIRE(report.lacking_sources == 1);
  CHECK(report.sources[0].node == 2);
  CHECK(report.sources[0].missing_blocks == 2);
  REQUIRE(report.lacking_tensors == 1);
  CHECK(report.tensors[0].index == 1);
  CHECK(report.tensors[0].missing_blocks == 2);
  CHECK(report.tensors[0].expected_blocks == 2 * kBlocks / 2);
  CHECK(report.other_tensors_missing_blocks == 0);
}

TEST_CASE("a round that closed at its deadline says so") {
  BoundedStar star({});
  const RoundReport report = close_one(star, loses_of_last({12, 15, 17}));
  CHECK(report.reason == CloseReason::kDeadline);
  CHECK(report.missing_blocks == 3);
  CHECK(report.sources[0].missing_blocks == 3);
  CHECK(report.tensors[0].missing_blocks == 3);
  CHECK(report.duration >= Duration::ms(30));
}

TEST_CASE("a round without an absent rank lacks all of it, exact tensors too") {
  BoundedStar star({.absent_after = Duration::ms(50)});
  const auto silent = [](std::uint16_t from, const Sent&) { return from == 2; };
  const RoundReport report = close_one(star, silent);
  CHECK(report.reason == CloseReason::kAbsent);
  CHECK(report.missing_blocks == kBlocks);
  REQUIRE(report.lacking_sources == 1);
  CHECK(report.sources[0].node == 2);
  CHECK(report.sources[0].missing_blocks == kBlocks);
  REQUIRE(report.lacking_tensors == 2);
  for (std::uint32_t t = 0; t < 2; ++t) {
    CHECK(report.tensors[t].index == t);
    CHECK(report.tensors[t].missing_blocks == kBlocks / 2);
  }
}

TEST_CASE("rounds without bounds are not reported") {
  BoundedStar star({});
  star.learn();
  for (std::uint16_t leaf = 1; leaf <= 2; ++leaf) {
    CHECK(star.node(leaf).submit(0, 1, BoundedStar::kElements) == job::SubmitResult::kAccepted);
  }
  star.pass(Duration::ms(100));
  CHECK(star.done(1));
  CHECK(star.reports().empty());
}

TEST_CASE("reports that nobody takes are lost, and the numbers say how many") {
  BoundedStar star({});
  star.learn();
  const std::uint32_t rounds = kRoundSlots + 4;
  for (std::uint32_t round = 1; round <= rounds + 1; ++round) {
    for (std::uint16_t leaf = 1; leaf <= 2; ++leaf) {
      REQUIRE(star.submit(leaf, round, 1) == job::SubmitResult::kAccepted);
    }
    star.pass(Duration::ms(20));
    if (round != rounds) continue;
    const std::vector<RoundReport> reports = star.reports();
    REQUIRE(reports.size() == kRoundSlots);
    CHECK(reports.back().number == 1 + kRoundSlots);
  }
  const std::vector<RoundReport> next = star.reports();
  REQUIRE(next.size() == 1);
  CHECK(next[0].number == rounds + 2);
}

TEST_CASE("a report counts each source and each tensor, the worst first") {
  Rig rig(3, 3);
  rig.arrive(0, {0, 0, 0});
  rig.arrive(1, {1, 0, 3}, Duration::ms(2));
  rig.arrive(2, {0, 0, 2}, Duration::ms(5));
  const RoundReport report = rig.close(CloseReason::kDeadline, Duration::ms(7));
  CHECK(report.reason == CloseReason::kDeadline);
  CHECK(report.duration == Duration::ms(7));
  CHECK(report.blocks == 30);
  CHECK(report.source_count == 3);
  CHECK(report.missing_blocks == 6);
  REQUIRE(report.lacking_sources == 2);
  CHECK(report.sources[0].node == 101);
  CHECK(report.sources[0].missing_blocks == 4);
  CHECK(report.sources[1].node == 102);
  CHECK(report.sources[1].missing_blocks == 2);
  REQUIRE(report.lacking_tensors == 2);
  CHECK(report.tensors[0].index == 2);
  CHECK(report.tensors[0].missing_blocks == 5);
  CHECK(report.tensors[0].expected_blocks == 30);
  CHECK(report.tensors[1].index == 0);
  CHECK(report.tensors[1].missing_blocks == 1);
}

TEST_CASE("tensors that a report does not name are counted together") {
  constexpr std::uint32_t kTensors = kReportedTensors + 2;
  Rig rig(1, kTensors);
  std::vector<std::uint32_t> missing(kTensors, 3);
  missing[0] = 1;
  missing[4] = 2;
  missing[kTensors - 1] = 7;
  rig.arrive(0, missing);
  const RoundReport report = rig.close(CloseReason::kEarly, Duration::ms(1));
  CHECK(report.lacking_tensors == kTensors);
  CHECK(report.tensors[0].index == kTensors - 1);
  CHECK(report.tensors[0].missing_blocks == 7);
  CHECK(report.tensors[1].index == 1);
  CHECK(report.tensors[kReportedTensors - 1].missing_blocks == 3);
  CHECK(report.other_tensors_missing_blocks == 3);
}

TEST_CASE("sources that a report does not name are counted") {
  constexpr std::size_t kSources = kReportedSources + 3;
  Rig rig(kSources, 1);
  for (std::size_t s = 0; s < kSources; ++s) rig.arrive(s, {s == kSources - 1 ? 5U : 1U});
  const RoundReport report = rig.close(CloseReason::kEarly, Duration::ms(1));
  CHECK(report.lacking_sources == kSources);
  CHECK(report.missing_blocks == kSources + 4);
  CHECK(report.sources[0].node == 100 + kSources - 1);
  CHECK(report.sources[0].missing_blocks == 5);
  CHECK(report.sources[1].node == 100);
  CHECK(report.sources[kReportedSources - 1].missing_blocks == 1);
}
