// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Which blocks each tree carries, for every operation, over all small plans.
#include <algorithm>
#include <functional>

#include "dataplane/aggregate/partition.h"
#include "tests/support/catch.h"

using namespace gradplane;
using aggregate::Host;
using aggregate::HostTable;
using aggregate::Partition;

namespace {

constexpr std::size_t kNone = HostTable::kNone;
constexpr std::size_t kBlockBytes = kMinBlockBytes;
constexpr std::uint32_t kBlockElements = kBlockBytes / 4;

struct Case {
  HostTable hosts;
  std::vector<Partition::TreePart> trees;
};

Case make(const std::vector<std::uint16_t>& host_of_rank, std::size_t hosts,
          const std::vector<std::pair<std::uint64_t, std::size_t>>& weights_and_roots) {
  std::vector<Host> table(hosts);
  for (const std::uint16_t host : host_of_rank) ++table[host].ranks;
  Case c{.hosts = HostTable(table, host_of_rank), .trees = {}};
  std::uint64_t begin = 0;
  for (const auto& [weight, root] : weights_and_roots) {
    c.trees.push_back({.share = {begin, weight},
                       .root_host = root,
                       .root_children = root == kNone ? hosts : hosts - 1});
    begin += weight;
  }
  return c;
}

Geometry geometry(Operation operation, std::uint32_t elements, std::size_t ranks,
                  std::uint16_t source = 0) {
  const Statement said{.elements = elements, .operation = operation, .source = source};
  return Geometry::of(said, kBlockBytes, static_cast<std::uint16_t>(ranks));
}

/// Whether each block belongs to exactly one tree, and each tree has room for its blocks.
bool covers(const Partition& p, std::uint32_t round, const Geometry& g) {
  std::vector<int> covered(g.blocks);
  for (std::size_t t = 0; t < p.trees(); ++t) {
    const BlockRange range = p.range_of(t, round, g);
    if (range.begin > range.end || range.end > g.blocks || range.size() > p.capacity(t)) {
      return false;
    }
    for (std::uint32_t b = range.begin; b < range.end; ++b) ++covered[b];
  }
  return std::all_of(covered.begin(), covered.end(), [](int times) { return times == 1; });
}

/// Whether each byte of the slot lies in exactly one block, and each block in the shard of its
/// rank.
bool places_all(const Partition& p, const Geometry& g) {
  std::vector<int> bytes(std::size_t{g.elements} * 4);
  const std::size_t shard_bytes = bytes.size() / g.shards;
  for (std::uint32_t b = 0; b < g.blocks; ++b) {
    const std::size_t at = p.offset_bytes(g, b);
    const std::size_t size = g.bytes_in(b);
    if (size == 0 || size > kBlockBytes || at + size > bytes.size()) return false;
    const bool is_in_shard =
        at / shard_bytes == p.rank_of(g, b) && (at + size - 1) / shard_bytes == p.rank_of(g, b);
    if (g.shards > 1 && !is_in_shard) return false;
    for (std::size_t i = 0; i < size; ++i) ++bytes[at + i];
  }
  return std::all_of(bytes.begin(), bytes.end(), [](int times) { return times == 1; });
}

/// Whether each shard is in a tree with the shard's host as the root, if there is such a tree.
bool prefers_roots(const Case& c, const Partition& p, const Geometry& g) {
  for (std::size_t t = 0; t < p.trees(); ++t) {
    const BlockRange range = p.range_of(t, 0, g);
    for (std::uint32_t b = range.begin; b < range.end; ++b) {
      const std::size_t host = p.host_of(g, b);
      const bool has_own = std::any_of(c.trees.begin(), c.trees.end(),
                                       [&](const auto& tree) { return tree.root_host == host; });
      if (has_own && c.trees[t].root_host != host) return false;
    }
  }
  return true;
}

/// Whether rounds without shards are divided well, for all numbers of blocks.
bool divides_slots(const Partition& p, std::size_t ranks, std::size_t max_blocks) {
  for (std::uint32_t round = 0; round < 4; ++round) {
    for (std::uint32_t blocks = 1; blocks <= max_blocks; ++blocks) {
      const std::uint32_t elements = blocks * kBlockElements - round;
      if (!covers(p, round, geometry(Operation::kAllReduce, elements, ranks))) return false;
      for (std::uint16_t r = 0; r < ranks; ++r) {
        if (!covers(p, round, geometry(Operation::kBroadcast, elements, ranks, r))) return false;
      }
    }
  }
  return true;
}

bool divides_shards(const Case& c, const Partition& p, std::size_t ranks) {
  for (const Operation operation : {Operation::kReduceScatter, Operation::kAllGather}) {
    for (const std::uint32_t shard : {1U, kBlockElements, kBlockElements + 1}) {
      const Geometry g = geometry(operation, static_cast<std::uint32_t>(shard * ranks), ranks);
      if (!g.is_sound(static_cast<std::uint16_t>(ranks))) return false;
      if (!covers(p, 0, g) || !covers(p, 1, g) || !prefers_roots(c, p, g)) return false;
      if (operation == Operation::kAllGather && !places_all(p, g)) return false;
    }
  }
  return true;
}

void check(const Case& c) {
  const std::size_t ranks = c.hosts.rank_count();
  // A slot has room for two blocks of each shard and one more.
  const std::size_t max_blocks = 2 * ranks + 1;
  const Partition p(c.hosts, c.trees, max_blocks);
  const bool slots = divides_slots(p, ranks, max_blocks);
  const bool shards = divides_shards(c, p, ranks);
  if (slots && shards) return;
  FAIL(c.hosts.size() << " hosts, " << ranks << " ranks, " << c.trees.size()
                      << " trees: " << (slots ? "shards" : "slots without shards"));
}

/// Calls `use` with all lists of `length` numbers below `end`.
void for_all(std::size_t length, std::size_t end,
             const std::function<void(const std::vector<std::size_t>&)>& use) {
  std::vector<std::size_t> list(length);
  for (;;) {
    use(list);
    std::size_t i = 0;
    while (i < length && ++list[i] == end) list[i++] = 0;
    if (i == length) return;
  }
}

}  // namespace

TEST_CASE("every operation has each block in one tree, over all small plans") {
  std::size_t cases = 0;
  for (std::size_t hosts = 1; hosts <= 3; ++hosts) {
    for (std::size_t ranks = hosts; ranks <= 4; ++ranks) {
      for_all(ranks, hosts, [&](const std::vector<std::size_t>& at) {
        const std::vector<std::uint16_t> host_of_rank(at.begin(), at.end());
        for (std::size_t trees = 1; trees <= 3; ++trees) {
          // A root is one of the hosts or has no ranks. A weight is 1 or 3.
          for_all(trees, (hosts + 1) * 2, [&](const std::vector<std::size_t>& drawn) {
            std::vector<std::pair<std::uint64_t, std::size_t>> shapes;
            for (const std::size_t d : drawn) {
              shapes.emplace_back(d % 2 == 0 ? 1 : 3, d / 2 < hosts ? d / 2 : kNone);
            }
            check(make(host_of_rank, hosts, shapes));
            ++cases;
          });
        }
      });
    }
  }
  CHECK(cases > 50'000);
}

TEST_CASE("shards without a root of their own are dealt by the weights of the trees") {
  // There are eight hosts of one rank each. The roots have no ranks.
  const Case c = make({0, 1, 2, 3, 4, 5, 6, 7}, 8, {{1, kNone}, {3, kNone}});
  const Partition p(c.hosts, c.trees, 64);
  const Geometry g = geometry(Operation::kReduceScatter, 8, 8);
  CHECK(p.range_of(0, 0, g).size() == 2);
  CHECK(p.range_of(1, 0, g).size() == 6);
  CHECK(p.range_of(1, 5, g).size() == 6);
}

TEST_CASE("a host with two trees divides its ranks' shards between them") {
  const Case c = make({0, 0, 0, 0, 1}, 2, {{1, 0}, {1, 0}, {1, 1}});
  const Partition p(c.hosts, c.trees, 64);
  const Geometry g = geometry(Operation::kAllGather, 5, 5);
  for (std::size_t t = 0; t < 3; ++t) CHECK(p.range_of(t, 0, g).size() == (t < 2 ? 2 : 1));
}

TEST_CASE("a short broadcast is whole in the tree of its source, and a long one is in the others") {
  const Case c = make({0, 1, 2, 3}, 4, {{1, 1}, {1, 0}, {1, 3}});
  const Partition p(c.hosts, c.trees, 40);
  const auto blocks_of = [&](std::size_t tree, std::uint32_t round, std::uint16_t source,
                             std::uint32_t blocks) {
    return p
        .range_of(tree, round, geometry(Operation::kBroadcast, blocks * kBlockElements, 4, source))
        .size();
  };
  for (std::size_t t = 0; t < 3; ++t) CHECK(p.capacity(t) == 21);  // half, and one
  for (std::uint32_t round = 0; round < 3; ++round) {
    CHECK(blocks_of(1, round, 0, 15) == 15);
    CHECK(blocks_of(0, round, 1, 15) == 15);
    CHECK(blocks_of(round, round, 2, 15) == 15);  // no tree has this root, so trees take turns
    for (std::size_t t = 0; t < 3; ++t) {
      CHECK(blocks_of(t, round, 0, 40) == (t == 1 ? 0 : 20));
      CHECK(blocks_of(t, round, 1, 16) == (t == 0 ? 0 : 8));
      CHECK(blocks_of(t, round, 2, 18) == 6);
    }
  }
}

TEST_CASE("a long broadcast uses all trees where it would not be faster without the source's") {
  constexpr std::uint32_t kBlocks = 40;
  const auto blocks_of = [](const Case& c, std::uint16_t source) {
    const Partition p(c.hosts, c.trees, kBlocks);
    std::vector<std::uint32_t> blocks;
    for (std::size_t t = 0; t < c.trees.size(); ++t) {
      const Geometry g =
          geometry(Operation::kBroadcast, kBlocks * kBlockElements, c.hosts.rank_count(), source);
      blocks.push_back(p.range_of(t, 0, g).size());
    }
    return blocks;
  };
  using Blocks = std::vector<std::uint32_t>;
  // Of two hosts, each block leaves the source once anyway.
  CHECK(blocks_of(make({0, 1}, 2, {{1, 0}, {1, 1}}), 0) == Blocks{20, 20});
  // All trees are the source's.
  CHECK(blocks_of(make({0, 1, 2}, 3, {{1, 0}, {3, 0}}), 0) == Blocks{10, 30});
  // The other root would send everything to all hosts.
  CHECK(blocks_of(make({0, 1, 2, 3}, 4, {{1, 2}, {1, 1}}), 2) == Blocks{20, 20});
  // The others would need much more memory.
  CHECK(blocks_of(make({0, 1, 2}, 3, {{8, 2}, {1, 0}, {1, 1}}), 2) == Blocks{32, 4, 4});
  // Each root passes a block on once.
  Case chains = make({0, 1, 2, 3}, 4, {{1, 2}, {1, 0}, {1, 1}, {1, 3}});
  CHECK(blocks_of(chains, 2) != Blocks{10, 10, 10, 10});
  for (auto& tree : chains.trees) tree.root_children = 1;
  CHECK(blocks_of(chains, 2) == Blocks{10, 10, 10, 10});
  // Large weights do not overflow.
  const std::uint64_t most = UINT32_MAX;
  CHECK(blocks_of(make({0, 1, 2}, 3, {{most, 2}, {most, 0}, {most, 1}}), 2) == Blocks{0, 20, 20});
}

TEST_CASE("what a rank says of a round must fit") {
  constexpr std::uint16_t kRanks = 4;
  const auto sound = [](const Statement& said) {
    return Geometry::of(said, kBlockBytes, kRanks).is_sound(kRanks);
  };
  CHECK(sound({.elements = 5, .bucket = 1}));
  CHECK_FALSE(sound({.elements = 0}));
  CHECK_FALSE(sound({.elements = 5, .source = 1}));
  CHECK(sound({.elements = 5, .operation = Operation::kBroadcast, .source = kRanks - 1}));
  CHECK_FALSE(sound({.elements = 5, .operation = Operation::kBroadcast, .source = kRanks}));
  CHECK_FALSE(sound({.elements = 5, .bucket = 1, .operation = Operation::kBroadcast}));
  for (const Operation operation : {Operation::kReduceScatter, Operation::kAllGather}) {
    CHECK(sound({.elements = 8, .operation = operation}));
    CHECK_FALSE(sound({.elements = 7, .operation = operation}));
    CHECK_FALSE(sound({.elements = 8, .bucket = 1, .operation = operation}));
    CHECK_FALSE(sound({.elements = 8, .operation = operation, .source = 1}));
  }
}
