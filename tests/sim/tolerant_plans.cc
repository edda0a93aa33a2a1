// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <array>

#include "tests/sim/cluster.h"
#include "tests/sim/coding.h"
#include "tests/sim/dice.h"
#include "tests/sim/large_plans.h"
#include "tests/sim/tolerant_draws.h"

namespace gradplane::sim {

RoundPlan round_of(const api::BucketBounds& bucket) {
  return {bucket.type, bucket.elements, static_cast<std::uint16_t>(bucket.bucket)};
}

namespace {

constexpr std::uint16_t kMaxPlanRanks = 6;
/// One of so many seeds mixes other operations with its exact rounds. This is not drawn, so that
/// other seeds keep their rounds, which documents and tests refer to.
constexpr std::uint64_t kMixedSeeds = 8;
constexpr std::uint32_t kMaxUses = 11;  // rounds of a bucket; Coding must represent so many
constexpr std::uint32_t kMaxBlocks = 90;
constexpr std::array kBounds = {0.0F, 0.05F, 0.1F, 0.2F, 0.2F, 0.35F, 0.5F};

std::uint16_t ranks_in(const api::Plan& plan) {
  std::size_t ranks = 0;
  for (const api::Member& member : plan.members) ranks += member.ranks.size();
  return static_cast<std::uint16_t>(ranks);
}

/// Puts two ranks on some hosts, with at most kMaxPlanRanks in all.
void crowd(Dice& dice, api::Plan& plan) {
  std::uint16_t rank = 0;
  auto spare = kMaxPlanRanks - ranks_in(plan);
  for (api::Member& member : plan.members) {
    if (member.ranks.empty()) continue;
    member.ranks.assign(1, rank++);
    if (spare == 0 || dice.below(3) != 0) continue;
    member.ranks.push_back(rank++);
    --spare;
  }
}

/// A random tree. Members without ranks are in it only if they have children, as validate()
/// requires.
api::Tree draw_tree(Dice& dice, const api::Plan& plan) {
  const std::size_t nodes = plan.members.size();
  std::vector<api::NodeId> order(nodes);
  for (std::uint16_t n = 0; n < nodes; ++n) order[n] = n;
  for (std::size_t n = nodes - 1; n > 0; --n) std::swap(order[n], order[dice.below(n + 1)]);
  api::Tree tree{.weight = static_cast<std::uint32_t>(1 + dice.below(3)),
                 .root = order[0],
                 .parent = std::vector<api::NodeId>(nodes, api::kNoNode)};
  for (std::size_t n = 1; n < nodes; ++n) tree.parent[order[n]] = order[dice.below(n)];
  for (std::size_t n = nodes - 1; n > 0; --n) {
    const api::NodeId node = order[n];
    const bool is_leaf =
        std::find(tree.parent.begin(), tree.parent.end(), node) == tree.parent.end();
    if (is_leaf && plan.members[node].ranks.empty()) tree.parent[node] = api::kNoNode;
  }
  return tree;
}

/// Trees of random shape over the same members. Most of them have relays, some of which have ranks.
api::Plan draw_forest(Dice& dice) {
  const auto nodes = static_cast<std::uint16_t>(3 + dice.below(7));
  api::Plan plan{.epoch = 11, .activation_round = 0, .members = {}, .trees = {}};
  std::uint16_t rank = 0;
  for (std::uint16_t n = 0; n < nodes; ++n) {
    api::Member member{.node = n, .ranks = {}};
    const bool hosts = rank < kMaxPlanRanks && (dice.below(3) != 0 || nodes - n <= 2 - rank);
    if (hosts) member.ranks.push_back(rank++);
    plan.members.push_back(member);
  }
  for (std::uint64_t t = 1 + dice.below(2); t > 0; --t) plan.trees.push_back(draw_tree(dice, plan));
  return plan;
}

/// A tree in which all hosts are children of the root.
api::Tree flat_tree(const api::Plan& plan, api::NodeId root) {
  api::Tree tree{.weight = 1, .root = root, .parent = {}};
  for (const api::Member& member : plan.members) {
    const bool sends = member.node != root && !member.ranks.empty();
    tree.parent.push_back(sends ? root : api::kNoNode);
  }
  return tree;
}

/// Another plan over the same members: a star, one tree for each host as root, or trees with
/// relays.
api::Plan draw_further_plan(Dice& dice, const api::Plan& first, std::uint32_t number) {
  api::Plan plan = first;
  plan.epoch += number;
  plan.trees.clear();
  switch (dice.below(3)) {
    case 0:
      plan.trees.push_back(
          flat_tree(plan, static_cast<api::NodeId>(dice.below(plan.members.size()))));
      break;
    case 1:
      for (const api::Member& member : plan.members) {
        if (!member.ranks.empty()) plan.trees.push_back(flat_tree(plan, member.node));
      }
      break;
    default:
      for (std::uint64_t t = 1 + dice.below(2); t > 0; --t) {
        plan.trees.push_back(draw_tree(dice, plan));
      }
  }
  return plan;
}

/// Mostly trees whose root may close with something missing, because all hosts are its children.
api::Plan draw_plan(Dice& dice) {
  api::Plan plan;
  const auto hosts = static_cast<std::uint16_t>(2 + dice.below(kMaxPlanRanks - 1));
  switch (dice.below(8)) {
    case 0:
      plan = draw_forest(dice);
      break;
    case 1:
    case 2:
    case 3:
      plan = sharded(hosts);
      break;
    default:
      plan = star(hosts);
  }
  if (dice.below(3) == 0) crowd(dice, plan);
  if (dice.below(4) == 0) plan.activation_round = 0U - static_cast<std::uint32_t>(dice.below(20));
  return plan;
}

void draw_faults(Dice& dice, Scenario& s) {
  const std::size_t hosts = s.plan.members.size();
  s.link.loss = dice.coin() ? 0.05 : dice.maybe(0.2);
  s.link.duplication = dice.maybe(0.05);
  s.link.corruption = dice.maybe(0.005);
  if (dice.below(3) == 0) s.link.bursts = Bursts{.enter = 0.01, .leave = 0.1, .loss = 0.8};
  if (dice.below(3) == 0) {
    HostFault fault;
    fault.host = static_cast<std::uint16_t>(dice.below(hosts));
    fault.loss_sent = dice.maybe(0.5);
    fault.loss_received = dice.maybe(0.3);
    s.link.host_faults.push_back(fault);
  }
  if (dice.below(4) == 0) {
    HostFault cut;
    cut.host = static_cast<std::uint16_t>(dice.below(hosts));
    cut.cut_from = Instant() + dice.between(Duration::ms(5), Duration::ms(200));
    cut.cut_until = cut.cut_from + dice.between(Duration::ms(5), Duration::ms(300));
    s.link.host_faults.push_back(cut);
  }
  Instant at;
  for (std::uint64_t jumps = dice.below(3); jumps > 0; --jumps) {
    at = at + dice.between(Duration::ms(10), Duration::ms(200));
    s.link.delay_jumps.push_back({at, dice.between(Duration::us(50), Duration::ms(8))});
  }
}

void draw_network(Dice& dice, Scenario& s) {
  s.link.bits_per_second = dice.coin() ? 0 : 50'000'000 * (1 + dice.below(20));
  s.link.queue_bytes = 16'000 + dice.below(1 << 18);
  s.link.delay = dice.between(Duration::us(20), Duration::ms(4));
  s.link.jitter = dice.coin() ? Duration{} : dice.between(Duration::us(1), Duration::us(800));
  s.paced = dice.coin();
  draw_faults(dice, s);
}

/// Cuts a bucket into tensors with some gaps between them. Some tensors are exact.
std::vector<api::BoundedTensor> draw_tensors(Dice& dice, std::uint32_t elements) {
  const std::uint64_t pieces = dice.coin() ? 1 + dice.below(2) : 1 + dice.below(12);
  std::vector<api::BoundedTensor> tensors;
  std::uint32_t at = 0;
  while (at < elements) {
    const auto most = static_cast<std::uint32_t>(2 * elements / pieces + 1);
    const auto size = std::min(static_cast<std::uint32_t>(1 + dice.below(most)), elements - at);
    api::BoundedTensor tensor;
    tensor.name = "tensor" + std::to_string(tensors.size());
    tensor.offset_elements = at;
    tensor.elements = size;
    tensor.bound = kBounds[dice.below(kBounds.size())];
    tensor.why = tensor.bound > 0 ? api::BoundReason::kPattern : api::BoundReason::kExact;
    if (dice.below(12) != 0) tensors.push_back(tensor);
    at += size;
  }
  return tensors;
}

constexpr DrawSize kSmallSize = {.uses = kMaxUses,
                                 .most_blocks = kMaxBlocks,
                                 .fewest_steps = 4,
                                 .most_steps = kMaxUses - 1,
                                 .exact_elements = 2000};
constexpr DrawSize kLargeSize = {
    .uses = kMaxUses, .most_blocks = 20, .fewest_steps = 4, .most_steps = 7, .exact_elements = 150};

/// A plan is prepared up to kMaxActivationMarginRounds before it begins.
constexpr DrawSize kReplannedSize = {
    .uses = 61, .most_blocks = 12, .fewest_steps = 40, .most_steps = 60, .exact_elements = 600};
constexpr std::uint32_t kRoundsOfAPlan = kMaxActivationMarginRounds + 1;

Coding coding_of(const Scenario& s, ElementType type, const DrawSize& size) {
  return {s.tolerance.coded_as(type), ranks_in(s.plan), s.tolerance.compensation, size.uses,
          s.tolerance.layout};
}

std::uint32_t draw_elements(Dice& dice, const Scenario& s, ElementType type, const DrawSize& size) {
  const auto block = static_cast<std::uint32_t>(s.block_bytes / element_bytes(type));
  const std::uint32_t blocks = dice.below(6) == 0 ? 1 : size.most_blocks;
  const std::uint64_t most =
      std::min<std::uint64_t>(std::uint64_t{blocks} * block, s.round_bytes / element_bytes(type));
  if (s.tolerance.layout == Coding::Layout::kEveryElement) {
    return static_cast<std::uint32_t>(1 + dice.below(most));
  }
  // Makes the last block long enough to show all ranks.
  const std::uint32_t lanes = coding_of(s, type, size).lanes();
  const auto last = static_cast<std::uint32_t>(lanes + dice.below(block - lanes + 1));
  return static_cast<std::uint32_t>(dice.below(most / block)) * block + last;
}

/// Draws wire types that represent the sums exactly, so that they can be decoded.
void draw_wire_types(Dice& dice, api::BucketBounds& bucket) {
  constexpr std::array kExactWireTypes = {WireType::kElements, WireType::kFloat16,
                                          WireType::kBfloat16, WireType::kBfloat16};
  for (api::BoundedTensor& tensor : bucket.tensors) {
    tensor.wire = kExactWireTypes[dice.below(kExactWireTypes.size())];
  }
}

api::BucketBounds draw_bucket(Dice& dice, const Scenario& s, std::uint32_t id,
                              const DrawSize& size) {
  api::BucketBounds bucket;
  bucket.bucket = id;
  bucket.type = dice.below(3) != 0 ? ElementType::kFloat32 : ElementType::kFloat64;
  if (dice.below(4) == 0) bucket.type = kElementTypes[dice.below(kElementTypes.size())];
  if (!coding_of(s, bucket.type, size).fits()) bucket.type = ElementType::kFloat64;
  bucket.elements = draw_elements(dice, s, bucket.type, size);
  bucket.tensors = draw_tensors(dice, bucket.elements);
  if (s.tolerance.narrow && bucket.type == ElementType::kFloat32) draw_wire_types(dice, bucket);
  return bucket;
}

/// bf16 does not represent sums over many ranks exactly.
ElementType draw_exact_type(Dice& dice, const Scenario& s) {
  const ElementType type = kElementTypes[dice.below(kElementTypes.size())];
  const bool many = s.tolerance.layout == Coding::Layout::kSpread;
  return many && type == ElementType::kBfloat16 ? ElementType::kFloat32 : type;
}

}  // namespace

void draw_rounds(Dice& dice, Scenario& s, const DrawSize& size) {
  const std::uint64_t steps =
      size.fewest_steps + dice.below(size.most_steps - size.fewest_steps + 1);
  for (std::uint64_t step = 0; step < steps; ++step) {
    for (const api::BucketBounds& bucket : s.tolerance.buckets) {
      if (dice.below(8) != 0) s.rounds.push_back(round_of(bucket));
      if (dice.below(10) != 0) continue;
      const auto elements = static_cast<std::uint32_t>(1 + dice.below(size.exact_elements));
      s.rounds.push_back({draw_exact_type(dice, s), elements, 0});
    }
  }
  for (const api::BucketBounds& bucket : s.tolerance.buckets) s.rounds.push_back(round_of(bucket));
  s.tolerance.closing_rounds = s.tolerance.buckets.size();
}

void draw_buckets(Dice& dice, Scenario& s, const DrawSize& size) {
  s.tolerance.compensation = static_cast<Compensation>(dice.below(3));
  s.tolerance.floor = std::array{0.5F, 0.5F, 0.8F, 0.95F}[dice.below(4)];
  s.tolerance.strict_rounds = static_cast<std::uint32_t>(dice.below(4));
  if (dice.coin()) s.tolerance.slack = dice.between(Duration::us(100), Duration::ms(15));
  s.tolerance.overlap = dice.below(6) == 0;
  for (std::uint64_t n = 1 + dice.below(3); n > 0; --n) {
    const auto id = static_cast<std::uint32_t>(s.tolerance.buckets.size() + 1);
    s.tolerance.buckets.push_back(draw_bucket(dice, s, id, size));
  }
}

namespace {

void draw_slow_ranks(Dice& dice, Scenario& s) {
  s.compute_max = dice.between(Duration{}, Duration::ms(3));
  if (dice.below(3) != 0) return;
  s.tolerance.absent_after = dice.between(Duration::ms(5), Duration::ms(30));
  s.compute_max_of_rank.assign(ranks_in(s.plan), s.compute_max);
  s.compute_max_of_rank[dice.below(s.compute_max_of_rank.size())] = Duration::ms(90);
}

void draw_installations(Dice& dice, Scenario& s) {
  if (dice.coin()) return;
  for (std::size_t m = 0; m < s.plan.members.size(); ++m) {
    for (const api::BucketBounds& bucket : s.tolerance.buckets) {
      const Duration after = dice.between(Duration{}, Duration::ms(40));
      s.tolerance.installations.push_back({m, bucket.bucket, after});
    }
  }
  if (dice.below(6) != 0) return;
  s.tolerance.installations[dice.below(s.tolerance.installations.size())].after = Duration::max();
}

/// Draws bounds that change while the job runs.
void draw_changes(Dice& dice, Scenario& s) {
  if (dice.below(3) != 0) return;
  Duration after;
  for (std::uint64_t n = 1 + dice.below(6); n > 0; --n) {
    after = after + dice.between(Duration::ms(1), Duration::ms(40));
    api::BucketBounds& bucket = s.tolerance.buckets[dice.below(s.tolerance.buckets.size())];
    if (bucket.tensors.empty()) continue;
    const std::size_t tensor = dice.below(bucket.tensors.size());
    bucket.tensors[tensor].why = api::BoundReason::kLearned;
    s.tolerance.changes.push_back(
        {after, bucket.bucket, tensor, kBounds[dice.below(kBounds.size())]});
  }
}

/// The share of blocks to or from the worst host that arrive and whose acks arrive. The others wait
/// for a probe.
double answered_share(const LinkModel& link) {
  double both_ways = 1 - link.loss;
  if (link.bursts) {
    both_ways *=
        1 - link.bursts->loss * link.bursts->enter / (link.bursts->enter + link.bursts->leave);
  }
  double worst = 1;
  for (const HostFault& fault : link.host_faults) {
    worst = std::min(worst, (1 - fault.loss_sent) * (1 - fault.loss_received));
  }
  return both_ways * both_ways * worst;
}

void draw_tolerance(Dice& dice, Scenario& s, const DrawSize& size) {
  s.block_bytes = kBlockAlignBytes * (8 + dice.below(16));
  draw_buckets(dice, s, size);
  draw_slow_ranks(dice, s);
  draw_installations(dice, s);
  draw_rounds(dice, s, size);
  s.in_flight = 1 + dice.below(kMaxInFlightRounds);
  s.authenticate = s.link.corruption > 0 || dice.coin();
  draw_changes(dice, s);
  s.congestion = dice.congestion();
  s.grants = dice.coin();
  s.buffer_known = dice.coin();
  s.forward_order = dice.coin();
  s.limit = Duration::ns(
      static_cast<std::int64_t>(static_cast<double>(s.limit.count_ns()) / answered_share(s.link)));
}

}  // namespace

Scenario random_tolerant_scenario(std::uint64_t seed, bool narrow) {
  Dice dice(seed);
  Scenario s;
  s.seed = seed;
  s.plan = draw_plan(dice);
  s.tolerance.narrow = narrow;
  if (narrow) s.tolerance.layout = Coding::Layout::kSpread;
  draw_network(dice, s);
  draw_tolerance(dice, s, kSmallSize);
  if (seed % kMixedSeeds == 0) mix_operations(s, seed);
  return s;
}

Scenario random_replanned_scenario(std::uint64_t seed) {
  Dice dice(seed);
  Scenario s;
  s.seed = seed;
  s.plan = draw_plan(dice);
  s.tolerance.layout = Coding::Layout::kSpread;
  draw_network(dice, s);
  draw_tolerance(dice, s, kReplannedSize);
  s.limit = s.limit * 4;
  s.flip_every = kRoundsOfAPlan;
  for (std::uint32_t n = 1; n * s.flip_every < s.rounds.size(); ++n) {
    s.flips.push_back(draw_further_plan(dice, s.plan, n));
  }
  return s;
}

Scenario random_large_scenario(std::uint64_t seed) {
  Dice dice(seed);
  Scenario s;
  s.seed = seed;
  s.plan = draw_large_plan(dice);
  s.round_bytes = 32 << 10;
  s.tolerance.layout = Coding::Layout::kSpread;
  draw_network(dice, s);
  draw_tolerance(dice, s, kLargeSize);
  return s;
}

}  // namespace gradplane::sim
