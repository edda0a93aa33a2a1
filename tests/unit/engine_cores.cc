// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// A job that several engines of each node share. Each engine carries a part of the blocks.
#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "dataplane/engine/local_plan.h"
#include "dataplane/engine/shared_link.h"
#include "tests/support/catch.h"
#include "tests/support/shared_pair.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

/// A plan with one tree for each node, which is its root.
api::Plan sharded_over(std::uint16_t nodes) {
  api::Plan plan = star_of(nodes);
  const api::Tree star = plan.trees[0];
  plan.trees.clear();
  for (std::uint16_t root = 0; root < nodes; ++root) {
    api::Tree& tree = plan.trees.emplace_back(star);
    tree.root = root;
    for (std::uint16_t n = 0; n < nodes; ++n) tree.parent[n] = n == root ? api::kNoNode : root;
  }
  return plan;
}

class Turns {
 public:
  explicit Turns(SharedJob& job) : job_(job) {}
  void run(int turns) {
    for (; turns > 0; --turns) {
      for (std::size_t n = 0; n < job_.nodes(); ++n) {
        for (std::size_t c = 0; c < job_.cores(); ++c) job_.engine(n, c).engine().poll_once(now);
      }
      now = now + Duration::us(1);
    }
  }
  Instant now = Instant::from_ns(1'000'000'000);

 private:
  SharedJob& job_;
};

/// Returns the next completion of each node, or none if the round takes more than 30 ms.
std::vector<std::optional<ipc::Completion>> next_of_all(SharedJob& job, Turns& turns) {
  std::vector<std::optional<ipc::Completion>> found(job.nodes());
  const auto is_missing = [](const auto& completion) { return !completion; };
  for (int ms = 0; ms < 30 && std::ranges::any_of(found, is_missing); ++ms) {
    turns.run(1'000);
    for (std::size_t n = 0; n < found.size(); ++n) {
      if (!found[n]) found[n] = job.take(n);
    }
  }
  return found;
}

std::uint64_t blocks_sent(SharedJob& job, std::size_t node, std::size_t core, Instant now) {
  return job.engine(node, core).snapshot(now)->jobs[0].traffic.blocks_sent;
}

}  // namespace

TEST_CASE("each tree of a plan has one core, and all cores have trees") {
  for (std::uint16_t count = 1; count <= kMaxCores; ++count) {
    for (std::size_t first = 0; first < kMaxTrees; first += count) {
      std::set<std::uint16_t> owners;
      for (std::size_t t = first; t < first + count; ++t) {
        std::uint16_t found = 0;
        for (std::uint16_t index = 0; index < count; ++index) {
          if (!CorePart{index, count}.has_tree(t)) continue;
          owners.insert(index);
          ++found;
        }
        CHECK(found == 1);
      }
      CHECK(owners.size() == count);
    }
  }
}

TEST_CASE("trees are split for the cores as long as a plan has room for them") {
  const api::Plan plan = sharded_over(3);
  CHECK(engine::split_trees(plan, 1).trees == plan.trees);
  const api::Plan split = engine::split_trees(plan, 2);
  REQUIRE(split.trees.size() == 6);
  for (std::size_t t = 0; t < split.trees.size(); ++t) CHECK(split.trees[t] == plan.trees[t / 2]);
  const api::Plan large = sharded_over(33);
  CHECK(engine::split_trees(large, 2).trees.size() == 33);
  // Trees are split into fewer parts than cores, as far as the limit of trees allows.
  CHECK(engine::split_trees(sharded_over(5), 16).trees.size() == 5 * 12);
}

TEST_CASE("the parts of a job never have the same key") {
  const wire::Key key{std::byte{9}};
  CHECK(engine::key_of_part(key, 0) == key);
  std::set<wire::Key> keys;
  for (std::size_t part = 0; part < kMaxCores; ++part) keys.insert(engine::key_of_part(key, part));
  CHECK(keys.size() == kMaxCores);
}

TEST_CASE("the parts of a job share the rates of links, and the first one sounds") {
  api::Plan plan = star_of(3);
  plan.soundings = {{1, 2}};
  const std::vector<std::uint64_t> rates(3, 1'000'000'000);
  const auto whole = engine::local_plan(plan, 1, rates, false);
  const auto first = engine::local_plan(plan, 1, rates, false, false, {0, 2});
  const auto second = engine::local_plan(plan, 1, rates, false, false, {1, 2});
  for (const auto& part : {first, second}) {
    CHECK(part.peers[0].rates.rate_bits_per_second ==
          whole.peers[0].rates.rate_bits_per_second / 2);
    CHECK(part.trees.size() == 2);
  }
  CHECK(first.sounded.size() == 1);
  CHECK(second.sounded.empty());
}

TEST_CASE("parts share the rate of a link only with those that send over it") {
  // Each two nodes share an edge in two trees, and no tree is split.
  const api::Plan plan = sharded_over(33);
  const std::vector<std::uint64_t> rates(33, 1'600'000'000);
  const auto whole = engine::local_plan(plan, 1, rates, false);
  for (std::uint16_t c = 0; c < 16; ++c) {
    const auto part = engine::local_plan(plan, 1, rates, false, false, {c, 16});
    for (std::size_t p = 0; p < part.peers.size(); ++p) {
      const api::NodeId node = part.peers[p].node;
      const CorePart place{c, 16};
      const bool is_same = place.part_of(1) == place.part_of(node);
      CHECK(part.peers[p].rates.rate_bits_per_second ==
            whole.peers[p].rates.rate_bits_per_second / (is_same ? 1 : 2));
    }
  }
}

TEST_CASE("a part sends to the groups of its own trees alone") {
  const std::vector<std::uint64_t> rates(4, 1'000'000'000);
  for (std::uint16_t c = 0; c < 2; ++c) {
    const CorePart part{c, 2};
    const auto plan = engine::local_plan(star_of(4), 0, rates, false, true, part);
    REQUIRE(plan.trees.size() == 2);
    for (std::size_t t = 0; t < 2; ++t) CHECK(plan.trees[t].multicasts_results == part.has_tree(t));
  }
}

TEST_CASE("a round is complete when each core has its part of the sums") {
  const bool sharded = GENERATE(false, true);
  const auto cores = static_cast<std::uint16_t>(GENERATE(2, 3));
  SharedJob job(3, cores, sharded ? sharded_over(3) : star_of(3));
  Turns turns(job);
  // The smallest rounds have fewer blocks than there are cores.
  for (std::uint32_t round = 0; round < 24; ++round) {
    const std::uint32_t elements = round % 4 == 3 ? 1 + round : 700 * (round + 1) % 16'000 + 1;
    const auto value = static_cast<float>(round + 1);
    for (std::size_t n = 0; n < 3; ++n) REQUIRE(job.submit(n, round, elements, value));
    const auto completions = next_of_all(job, turns);
    for (std::size_t n = 0; n < 3; ++n) {
      const auto& completion = completions[n];
      REQUIRE(completion);
      CHECK(completion->round == round);
      CHECK(completion->contributors == 3);
      CHECK(completion->partial_blocks == 0);
      CHECK(job.all_are(n, round, elements, 3 * value));
      CHECK_FALSE(job.take(n));
    }
  }
  for (std::size_t n = 0; n < 3; ++n) {
    for (std::size_t c = 0; c < cores; ++c) CHECK(blocks_sent(job, n, c, turns.now) > 0);
    std::uint64_t rounds = 0;
    for (std::size_t c = 0; c < cores; ++c)
      rounds += job.part(n, c).runtime->job().counters().rounds_completed;
    CHECK(rounds == 24);
  }
}

TEST_CASE("a core that stands still holds up the rounds that it has blocks of") {
  SharedJob job(2, 2, star_of(2));
  for (std::size_t n = 0; n < 2; ++n) REQUIRE(job.submit(n, 0, 5000, 1));
  Instant now = Instant::from_ns(1'000'000'000);
  for (int turn = 0; turn < 3'000; ++turn) {
    for (std::size_t n = 0; n < 2; ++n) job.engine(n, 0).engine().poll_once(now);
    now = now + Duration::us(1);
  }
  CHECK_FALSE(job.take(0));
  CHECK_FALSE(job.take(1));
  CHECK_FALSE(job.all_are(1, 0, 5000, 2));
}

TEST_CASE("engines take leases of their node's link, and who sends gets what the others leave") {
  constexpr std::uint64_t kRate = 1'600'000'000;
  engine::SharedLink link(kRate, 2);
  hop::LinkLease first{};
  hop::LinkLease second{};
  Instant now = Instant::from_ns(1'000'000'000);
  link.want(0, kRate);
  for (int period = 0; period < 5; ++period) {
    link.renew(now);
    link.take(0, first);
    link.take(1, second);
    now = now + hop::kLeasePeriod;
  }
  CHECK(first.bits_per_second + second.bits_per_second <= kRate);
  CHECK(first.bits_per_second > kRate / 10 * 9);
  CHECK(second.bits_per_second >= kRate / hop::kFloorParts / 2);
  // An engine that takes no leases gets no later ones than those that would have ended by then.
  for (int period = 0; period < 50; ++period) {
    link.renew(now);
    now = now + hop::kLeasePeriod;
  }
  REQUIRE(link.take(1, second));
  CHECK(second.until < now);
}

TEST_CASE("an engine wants the whole link once the link alone holds it back") {
  engine::LinkDemand demand(1'000'000'000);
  Instant now = Instant::from_ns(1'000'000'000);
  CHECK(demand.look(now, 0, false));
  CHECK(demand.wanted() == 0);
  now = now + hop::kLeasePeriod / 2;
  CHECK_FALSE(demand.look(now, 1000, false));
  now = now + hop::kLeasePeriod / 2;
  CHECK(demand.look(now, 5000, false));
  CHECK(demand.wanted() == 2 * 5000 * 8 * 200);  // twice the 5000 bytes of 5 ms
  CHECK_FALSE(demand.look(now, 5000, true));
  CHECK(demand.look(now + hop::kLeasePeriod, 5000, false));
  CHECK(demand.wanted() == 1'000'000'000);
}
