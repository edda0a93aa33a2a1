// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Checks aggregate::Gather against a model. Gather counts in tables that are never cleared, and
// looks at few sources at a time. The model counts every block of every source and tensor again
// each time. Both must always decide the same.
#include <algorithm>
#include <atomic>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "dataplane/aggregate/gather.h"
#include "tests/support/catch.h"
#include "tests/support/hosts.h"

using namespace gradplane;
using aggregate::CloseLimits;
using aggregate::Gather;
using aggregate::TensorBound;
using aggregate::TensorMap;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr Duration kThreshold = Duration::ms(50);
constexpr Duration kSlack = Duration::ms(30);
constexpr Duration kAbsentAfter = Duration::ms(60);
constexpr std::uint32_t kBlockElements = 128;

struct Random {
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(engine()) % limit; }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  std::mt19937 engine;
};

/// Tensors of one element to several blocks, some with gaps before them.
std::vector<TensorBound> draw_table(Random& random, std::uint32_t elements) {
  std::vector<TensorBound> table;
  for (std::uint32_t at = 0; at < elements;) {
    at += random.one_in(6) ? random.below(200) : 0;
    const std::uint32_t longest = random.one_in(3) ? 20 * kBlockElements : 40;
    const std::uint32_t length = 1 + random.below(longest);
    if (at + length > elements) break;
    table.push_back(
        {at, length, random.one_in(4) ? 0 : static_cast<float>(random.below(51)) / 100});
    at += length;
  }
  if (table.empty()) table.push_back({0, elements, 0.5F});
  return table;
}

/// The rules of docs/loss-tolerance.md, computed from the set of blocks that have arrived.
struct Model {
  struct Source {
    std::set<std::uint32_t> blocks;
    std::optional<Duration> first_at;
    Duration latest_at;
    bool sent_all = false;
    Duration threshold;
  };

  bool holds_critical(const Source& source) const {
    for (std::uint32_t b = range.begin; b < range.end; ++b) {
      if (source.blocks.contains(b)) continue;
      std::uint32_t covered = 0;
      for (const TensorBound& t : table) {
        const std::uint32_t begin = std::max(t.offset_elements, b * kBlockElements);
        const std::uint32_t end =
            std::min(t.offset_elements + t.elements, (b + 1) * kBlockElements);
        if (begin >= end) continue;
        covered += end - begin;
        if (allowance(t) == 0) return false;
      }
      if (covered < geometry.elements_in(b)) return false;
    }
    return true;
  }
  static BlockRange blocks_of(const TensorBound& t) {
    return {t.offset_elements / kBlockElements,
            (t.offset_elements + t.elements - 1) / kBlockElements + 1};
  }
  static std::uint32_t allowance(const TensorBound& t) {
    return static_cast<std::uint32_t>(t.bound * static_cast<float>(blocks_of(t).size()));
  }
  std::uint32_t missing_of(const Source& source, const TensorBound& t) const {
    std::uint32_t missing = 0;
    for (std::uint32_t b = std::max(blocks_of(t).begin, range.begin);
         b < std::min(blocks_of(t).end, range.end); ++b) {
      missing += source.blocks.contains(b) ? 0 : 1;
    }
    return missing;
  }
  bool in_bounds(const Source& source) const {
    for (std::size_t t = 0; t < table.size(); ++t) {
      if (missing_of(source, table[t]) > map->allowance_in(t, table[t].bound, range)) return false;
    }
    return true;
  }

  std::optional<CloseReason> may_close(Duration now) const {
    bool absent = false;
    bool early = true;
    bool deadline = true;
    std::optional<Duration> first;
    Duration largest;
    for (const Source& s : sources) {
      largest = std::max(largest, s.threshold);
      if (s.first_at) first = std::min(first.value_or(*s.first_at), *s.first_at);
    }
    for (const Source& s : sources) {
      if (s.blocks.size() == range.size()) continue;
      if (!s.first_at && !first) return std::nullopt;
      if (may_be_absent && now - (s.first_at ? s.latest_at : *first) >= kAbsentAfter) {
        absent = true;
        continue;
      }
      if (!s.first_at) return std::nullopt;
      const Duration age = now - *s.first_at;
      const bool floor = 2 * s.blocks.size() >= range.size();
      early = early && holds_critical(s) && in_bounds(s) && floor && age >= s.threshold &&
              (s.sent_all || age >= s.threshold + kSlack);
      deadline = deadline && holds_critical(s) && floor && age >= largest + kSlack;
    }
    if (!early && !deadline) return std::nullopt;
    if (absent) return CloseReason::kAbsent;
    return early ? CloseReason::kEarly : CloseReason::kDeadline;
  }

  bool may_be_absent = false;
  Geometry geometry;
  std::vector<TensorBound> table;
  const TensorMap* map = nullptr;
  BlockRange range;
  std::vector<Source> sources;
};

struct Case {
  explicit Case(std::uint32_t seed) : random{std::mt19937(seed)} {
    blocks = 1 + random.below(120);
    const std::uint32_t elements = blocks * kBlockElements - random.below(kBlockElements);
    model.geometry = Geometry::of(ElementType::kFloat32, elements, kBlockElements * 4, 1);
    model.table = draw_table(random, elements);
    model.may_be_absent = seed % 2 == 0;
    map.emplace(model.geometry, model.table);
    model.map = &*map;
    bounds = std::vector<std::atomic<float>>(model.table.size());
    for (std::size_t t = 0; t < bounds.size(); ++t) bounds[t] = model.table[t].bound;
    const std::size_t sources = 1 + random.below(5);
    model.sources.resize(sources);
    std::vector<std::uint16_t> nodes;
    for (std::size_t s = 0; s < sources; ++s) nodes.push_back(static_cast<std::uint16_t>(s + 1));
    gather.emplace(testing::hosts_as_sources(nodes), *map, bounds,
                   CloseLimits{.strict_rounds = 0,
                               .slack = kSlack,
                               .absent_after = model.may_be_absent ? kAbsentAfter : Duration{}});
    learn();
  }

  /// Runs a round from which every source's threshold is learned.
  void learn() {
    gather->open({0, blocks});
    for (std::size_t s = 0; s < model.sources.size(); ++s) {
      for (std::uint32_t b = 0; b < blocks; ++b) {
        const Duration at = b == 0 ? Duration{} : kThreshold;
        gather->on_block(s, {.block = b, .last = false, .bounded = true, .rtt = {}}, kStart + at);
      }
    }
    gather->close(CloseReason::kFull, kStart + kThreshold);
  }

  void change_a_bound() {
    const std::size_t t = random.below(static_cast<std::uint32_t>(bounds.size()));
    bounds[t] = model.table[t].bound = static_cast<float>(random.below(51)) / 100;
  }

  void open() {
    const std::uint32_t begin = random.below(blocks);
    model.range = {begin, begin + 1 + random.below(blocks - begin)};
    for (std::size_t s = 0; s < model.sources.size(); ++s) {
      const std::int64_t learned_ns = gather->report(s).threshold_ns;
      model.sources[s] = {
          .blocks = {}, .first_at = {}, .latest_at = {}, .threshold = Duration::ns(learned_ns)};
    }
    gather->open(model.range);
  }

  /// Delivers some blocks of each source, in a different order for each, and compares with the
  /// model in between.
  void play() {
    for (std::uint32_t step = 0; step < 4; ++step) {
      const Duration now = Duration::ms(30) * std::int64_t{step};
      for (std::size_t s = 0; s < model.sources.size(); ++s) {
        if (!random.one_in(5)) arrive(s, now);
      }
      for (const Duration later : {Duration{}, Duration::ms(20), Duration::ms(29)}) {
        const Duration at = now + later;
        REQUIRE(gather->may_close(kStart + at) == model.may_close(at));
      }
    }
  }

  void arrive(std::size_t s, Duration now) {
    Model::Source& source = model.sources[s];
    const std::uint32_t most = random.one_in(2) ? 2 : 20;
    for (std::uint32_t b = model.range.begin; b < model.range.end; ++b) {
      if (source.blocks.contains(b) || random.one_in(most)) continue;
      const bool last = random.one_in(50);
      if (!source.first_at) source.first_at = now;
      source.latest_at = now;
      source.sent_all = source.sent_all || last;
      source.blocks.insert(b);
      gather->on_block(s, {.block = b, .last = last, .bounded = true, .rtt = {}}, kStart + now);
    }
  }

  void close_and_compare() {
    std::uint32_t missing = 0;
    for (const Model::Source& s : model.sources) {
      missing += model.range.size() - static_cast<std::uint32_t>(s.blocks.size());
    }
    CHECK(gather->missing_blocks() == missing);
    gather->close(CloseReason::kEarly, kStart + Duration::ms(120));
    const RoundReport report = gather->last_round(CloseReason::kEarly, kStart);
    std::uint32_t lacking = 0;
    for (const TensorBound& t : model.table) {
      std::uint32_t of_tensor = 0;
      for (const Model::Source& s : model.sources) of_tensor += model.missing_of(s, t);
      lacking += of_tensor > 0 ? 1 : 0;
    }
    CHECK(report.missing_blocks == missing);
    CHECK(report.lacking_tensors == lacking);
    for (std::size_t n = 0; n < std::min<std::size_t>(lacking, kReportedTensors); ++n) {
      const RoundReport::Tensor& named = report.tensors[n];
      std::uint32_t of_tensor = 0;
      for (const Model::Source& s : model.sources) {
        of_tensor += model.missing_of(s, model.table[named.index]);
      }
      CHECK(named.missing_blocks == of_tensor);
    }
  }

  Random random;
  std::uint32_t blocks = 0;
  Model model;
  std::optional<TensorMap> map;
  std::vector<std::atomic<float>> bounds;
  std::optional<Gather> gather;
};

}  // namespace

TEST_CASE("a gathering closes when a count of every block of every tensor and source says so") {
  std::size_t closed = 0;
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    Case one(seed);
    // Rounds follow each other, because each one uses the tables of the one before.
    for (int round = 0; round < 4; ++round) {
      one.change_a_bound();
      one.open();
      one.play();
      closed += one.gather->may_close(kStart + Duration::seconds(10)) ? 1 : 0;
      one.close_and_compare();
    }
  }
  CHECK(closed > 500);
  CHECK(closed < 3500);
}
