// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/aggregate/gather.h"
#include "tests/support/hosts.h"

namespace gradplane::testing {

inline constexpr std::uint32_t kBlocks = 100;
inline constexpr Instant kStart = Instant::from_ns(1'000'000'000);
inline constexpr Duration kRtt = Duration::ms(2);

/// A gathering. Blocks 0..9 belong to an exact tensor, 10..99 to one that may miss a tenth: nine
/// blocks.
struct GatherRig {
  explicit GatherRig(aggregate::CloseLimits limits = {.strict_rounds = 0,
                                                      .slack = Duration::ms(30)},
                     std::size_t sources = 2, float bound = 0.1F)
      : map(geometry(), {{0, 1280, 0}, {1280, 11520, bound}}), bounds(2) {
    bounds[1] = bound;
    std::vector<std::uint16_t> nodes;
    for (std::size_t s = 0; s < sources; ++s) nodes.push_back(static_cast<std::uint16_t>(s + 1));
    gather.emplace(hosts_as_sources(nodes), map, bounds, limits);
  }
  static Geometry geometry() { return Geometry::of(ElementType::kFloat32, kBlocks * 128, 512, 1); }

  /// Lets blocks [from, to) of a source arrive, all at `at` after the start.
  void arrive(std::size_t source, std::uint32_t from, std::uint32_t to, Duration at,
              bool last = false, bool bounded = true) {
    for (std::uint32_t b = from; b < to; ++b) {
      gather->on_block(source,
                       {.block = b, .last = last && b + 1 == to, .bounded = bounded, .rtt = kRtt},
                       kStart + at);
    }
  }
  std::optional<CloseReason> at(Duration time) { return gather->may_close(kStart + time); }

  /// Passes a round in which every source is complete after `duration`. This is the threshold from
  /// then on.
  void learn(Duration duration) {
    gather->open({0, kBlocks});
    for (std::size_t s = 0; s < gather->host_count(); ++s) {
      arrive(s, 0, 1, Duration{});
      arrive(s, 1, kBlocks, duration, true);
    }
    gather->close(CloseReason::kFull, kStart + duration);
  }

  aggregate::TensorMap map;
  std::vector<std::atomic<float>> bounds;
  std::optional<aggregate::Gather> gather;
};

}  // namespace gradplane::testing
