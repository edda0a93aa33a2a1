// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/tolerance_checker.h"

#include <algorithm>
#include <cmath>

#include "tests/sim/trainer.h"

namespace gradplane::sim {
namespace {

/// So many numbers of each lane must show the same set of ranks.
constexpr std::uint32_t kWitnesses = 8;

}  // namespace

void ToleranceTotals::add(const ToleranceTotals& other) {
  for (std::size_t r = 0; r < closes.size(); ++r) closes[r] += other.closes[r];
  partial_blocks += other.partial_blocks;
  missing_blocks += other.missing_blocks;
  carried_elements += other.carried_elements;
  partial_after_change += other.partial_after_change;
}

ToleranceChecker::ToleranceChecker(const Scenario& scenario, std::uint32_t world)
    : scenario_(scenario),
      plans_{{0, engine::split_trees(scenario.plan, scenario.cores)}},
      streams_(scenario, world),
      rounding_(scenario, world),
      world_(world),
      all_(~RankSet() >> (kMaxRanksInSets - world)),
      ledgers_(scenario.tolerance.buckets.size()),
      decoded_(scenario.rounds.size()),
      use_of_round_(scenario.rounds.size()),
      submitted_at_(scenario.rounds.size()) {
  for (std::size_t r = 0; r < scenario.rounds.size(); ++r) {
    if (scenario.rounds[r].bucket == 0) continue;
    use_of_round_[r] = ledgers_[scenario.rounds[r].bucket - 1u].uses++;
  }
  for (std::size_t b = 0; b < ledgers_.size(); ++b) {
    const api::BucketBounds& bounds = scenario.tolerance.buckets[b];
    codings_.emplace_back(scenario.tolerance.coded_as(bounds.type), world,
                          scenario.tolerance.compensation, ledgers_[b].uses,
                          scenario.tolerance.layout);
    ledgers_[b].kept.assign(std::size_t{codings_[b].per_lane()} * bounds.elements, 0);
    ledgers_[b].missing.resize(bounds.tensors.size());
    ledgers_[b].counted.resize(bounds.tensors.size());
    ledgers_[b].excluded.resize(bounds.tensors.size());
    for (const api::BoundedTensor& tensor : bounds.tensors) {
      ledgers_[b].bounds.push_back({{Instant(), tensor.bound}});
    }
  }
  if (ledgers_.empty()) return;  // exact rounds need no sets of ranks
  for (const api::Member& member : scenario.plan.members) {
    if (member.ranks.empty()) continue;
    RankSet& ranks = ranks_of_node_[member.node];
    for (const std::uint16_t rank : member.ranks) ranks.set(rank);
  }
}

const api::BucketBounds& ToleranceChecker::bounds_of(std::uint32_t round) const {
  return scenario_.tolerance.bucket(plan_of(round).bucket);
}

const Coding& ToleranceChecker::coding_of(std::uint32_t round) const {
  return codings_[plan_of(round).bucket - 1u];
}

Geometry ToleranceChecker::geometry_of(std::uint32_t round) const {
  return Geometry::of(plan_of(round).type, plan_of(round).elements, scenario_.block_bytes);
}

std::int64_t& ToleranceChecker::kept(std::uint32_t round, std::uint32_t rank,
                                     std::uint32_t element) {
  const std::size_t per_lane = coding_of(round).per_lane();
  return ledgers_[plan_of(round).bucket - 1u].kept[element * per_lane + rank % per_lane];
}

/// The value of a rank's digit if the rank is in this round's sum.
std::uint32_t ToleranceChecker::pending(std::uint32_t round, std::uint32_t rank,
                                        std::uint32_t element) {
  const std::int64_t waiting = kept(round, rank, element);
  return static_cast<std::uint32_t>(waiting + coding_of(round).digit(round, rank, element));
}

const Poison* ToleranceChecker::poison_at(std::uint32_t round, std::uint32_t element) const {
  for (const Poison& p : scenario_.tolerance.poison) {
    if (p.round == round && p.element == element) return &p;
  }
  return nullptr;
}

double ToleranceChecker::contribution(std::uint32_t round, std::uint32_t rank,
                                      std::uint32_t element) const {
  const Poison* poison = poison_at(round, element);
  if (poison != nullptr && poison->rank == rank) return poison->value;
  const Coding& coding = coding_of(round);
  return coding.carries(element, rank) ? coding.digit(round, rank, element) * coding.worth(rank)
                                       : 0;
}

std::string ToleranceChecker::on_result(std::uint32_t rank, const ipc::Completion& completion,
                                        std::span<const std::byte> slot) {
  const std::uint32_t round = scenario_.index_of(completion.round);
  Decoded& result = decoded_[round];
  if (!result.done) {
    result.done = true;
    std::string wrong = decode(round, slot);
    if (wrong.empty()) wrong = count_missing(round);
    if (wrong.empty()) wrong = check_bounds(round);
    if (wrong.empty()) wrong = check_in_order(plan_of(round).bucket);
    if (!wrong.empty()) return wrong;
  }
  if (completion.contributors != result.contributors ||
      completion.partial_blocks != result.partial_blocks) {
    return "I2: rank " + std::to_string(rank) + " is told of " +
           std::to_string(completion.contributors) + " contributors and " +
           std::to_string(completion.partial_blocks) + " partial blocks, the sums hold " +
           std::to_string(result.contributors) + " and " + std::to_string(result.partial_blocks);
  }
  return {};
}

std::string ToleranceChecker::decode(std::uint32_t round, std::span<const std::byte> slot) {
  const Geometry g = geometry_of(round);
  Decoded& result = decoded_[round];
  result.contributors = world_;
  for (std::uint32_t block = 0; block < g.blocks; ++block) {
    const std::vector<Sample> lanes = sample(round, block, slot);
    const std::optional<RankSet> set = set_of(round, lanes);
    if (!set) {
      return "I2: no set of ranks has this sum; " + describe(round, lanes[0].element, lanes[0].sum);
    }
    result.sets.push_back(*set);
    const auto count = static_cast<std::uint32_t>(set->count());
    result.contributors = std::min(result.contributors, count);
    result.partial_blocks += *set == all_ ? 0 : 1;
  }
  totals_.partial_blocks += result.partial_blocks;
  result.bytes.assign(slot.begin(), slot.end());
  return {};
}

/// Checks rounds of a bucket in order, because hosts carry residuals from one to the next. A later
/// round may close before an earlier one.
std::string ToleranceChecker::check_in_order(std::uint16_t bucket) {
  for (std::uint32_t& r = ledgers_[bucket - 1u].checked; r < decoded_.size(); ++r) {
    if (plan_of(r).bucket != bucket) continue;
    if (!decoded_[r].done) break;
    for (std::uint32_t b = 0; b < decoded_[r].sets.size(); ++b) {
      const std::string wrong = check_block(r, b, decoded_[r].sets[b], decoded_[r].bytes);
      if (!wrong.empty()) return wrong;
    }
    decoded_[r].bytes = {};
  }
  return {};
}

/// Takes one number of each lane. A scaled sum may fit several sets of ranks. So it then takes more
/// numbers of each lane, in which the same set must be found.
std::vector<ToleranceChecker::Sample> ToleranceChecker::sample(
    std::uint32_t round, std::uint32_t block, std::span<const std::byte> slot) const {
  const Geometry g = geometry_of(round);
  const std::uint32_t lanes = coding_of(round).lanes();
  const bool scaled = scenario_.tolerance.compensation == Compensation::kRescale;
  const std::uint32_t first = block * g.block_elements;
  const std::uint32_t end = first + g.elements_in(block);
  const auto at = [&](std::uint32_t e) {
    return Sample{e, load(g.type, slot.data() + e * element_bytes(g.type))};
  };
  std::vector<Sample> samples(lanes);
  for (std::uint32_t e = first; e < first + lanes; ++e) {
    std::uint32_t element = e;
    while (poison_at(round, element) != nullptr) element += lanes;
    samples[coding_of(round).lane_of_element(e)] = at(element);
  }
  const std::uint32_t witnesses = scaled ? std::min(end, first + lanes * kWitnesses) : first;
  for (std::uint32_t e = first + lanes; e < witnesses; ++e) {
    if (poison_at(round, e) == nullptr) samples.push_back(at(e));
  }
  return samples;
}

std::optional<ToleranceChecker::RankSet> ToleranceChecker::set_of(
    std::uint32_t round, std::span<const Sample> lanes) const {
  const Coding& coding = coding_of(round);
  if (scenario_.tolerance.compensation == Compensation::kRescale) {
    return scaled_set_of(round, lanes);
  }
  RankSet set;
  for (std::uint32_t lane = 0; lane < lanes.size(); ++lane) {
    const double sum = lanes[lane].sum;
    if (!(sum >= 0) || sum != std::floor(sum) || sum >= coding.limit()) return std::nullopt;
    for (std::uint32_t r = coding.first_rank(lane); r < coding.end_rank(lane); ++r) {
      set[r] = coding.digit_of(sum, r) != 0;
    }
  }
  return set;
}

/// Finds the set of a scaled sum by trying each number of contributions.
std::optional<ToleranceChecker::RankSet> ToleranceChecker::scaled_set_of(
    std::uint32_t round, std::span<const Sample> lanes) const {
  if (std::all_of(lanes.begin(), lanes.end(), [](const Sample& s) { return s.sum == 0; })) {
    return RankSet();
  }
  for (std::uint32_t count = world_; count > 0; --count) {
    const double scale = static_cast<double>(world_) / count;
    RankSet set;
    const std::size_t first_ones = coding_of(round).lanes();
    bool fits = true;
    for (std::size_t n = 0; n < lanes.size() && fits; ++n) {
      RankSet with = set;
      fits = add_scaled(round, lanes[n], scale, with) && (n < first_ones || with == set);
      set = with;
    }
    if (fits && set.count() == count) return set;
  }
  return std::nullopt;
}

/// Adds the ranks of a lane whose contributions add up to its sum. Returns false if there are none.
bool ToleranceChecker::add_scaled(std::uint32_t round, Sample lane, double scale,
                                  RankSet& set) const {
  const Coding& coding = coding_of(round);
  if (!(lane.sum >= 0) || lane.sum >= coding.limit() * world_) return false;
  const double unscaled = std::round(lane.sum / scale);
  if (std::abs(lane.sum - unscaled * scale) > coding.rounding() * lane.sum) return false;
  if (unscaled >= coding.limit()) return false;
  const std::uint32_t number = coding.lane_of_element(lane.element);
  for (std::uint32_t r = coding.first_rank(number); r < coding.end_rank(number); ++r) {
    const std::uint64_t digit = coding.digit_of(unscaled, r);
    if (digit != 0 && digit != coding.digit(round, r, lane.element)) return false;
    set[r] = digit != 0;
  }
  return true;
}

double ToleranceChecker::expected(std::uint32_t round, std::uint32_t element, const RankSet& set) {
  const Coding& coding = coding_of(round);
  const std::uint32_t lane = coding.lane_of_element(element);
  double sum = 0;
  for (std::uint32_t r = coding.first_rank(lane); r < coding.end_rank(lane); ++r) {
    if (set[r]) sum += pending(round, r, element) * coding.worth(r);
  }
  const bool scaled =
      scenario_.tolerance.compensation == Compensation::kRescale && set.any() && set != all_;
  return scaled ? sum * world_ / static_cast<double>(set.count()) : sum;
}

std::string ToleranceChecker::check_block(std::uint32_t round, std::uint32_t block,
                                          const RankSet& set, std::span<const std::byte> slot) {
  const Geometry g = geometry_of(round);
  const bool scaled = scenario_.tolerance.compensation == Compensation::kRescale && set != all_;
  const std::uint32_t first = block * g.block_elements;
  for (std::uint32_t e = first; e < first + g.elements_in(block); ++e) {
    const double sum = load(g.type, slot.data() + e * element_bytes(g.type));
    const Poison* poison = poison_at(round, e);
    if (poison != nullptr && set[poison->rank]) continue;
    const double awaited = expected(round, e, set);
    const double error = std::abs(sum - awaited);
    const double tolerated = scaled ? coding_of(round).rounding() * awaited : 0;
    if (!(error <= tolerated)) {
      return "I2, I5: " + describe(round, e, sum) + ", awaited " + std::to_string(awaited);
    }
  }
  if (scenario_.tolerance.compensation == Compensation::kCarry) settle(round, block, set);
  return {};
}

/// Keeps contributions that did not enter, and removes those that did. A host whose block has a
/// value that is not finite keeps nothing of it.
void ToleranceChecker::settle(std::uint32_t round, std::uint32_t block, const RankSet& set) {
  const Coding& coding = coding_of(round);
  const Geometry g = geometry_of(round);
  const std::uint32_t first = block * g.block_elements;
  RankSet kept_by = all_ & ~set;
  for (const Poison& p : scenario_.tolerance.poison) {
    const bool here = p.element >= first && p.element < first + g.elements_in(block);
    if (p.round != round || !here) continue;
    for (const auto& [node, ranks] : ranks_of_node_) {
      if (ranks[p.rank]) kept_by &= ~ranks;
    }
  }
  for (std::uint32_t e = first; e < first + g.elements_in(block); ++e) {
    const std::uint32_t lane = coding.lane_of_element(e);
    for (std::uint32_t r = coding.first_rank(lane); r < coding.end_rank(lane); ++r) {
      std::int64_t& waiting = kept(round, r, e);
      if (set[r] && waiting > 0) ++totals_.carried_elements;
      waiting = kept_by[r] ? pending(round, r, e) : 0;
    }
  }
}

std::string ToleranceChecker::describe(std::uint32_t round, std::uint32_t element, double sum) {
  const Coding& coding = coding_of(round);
  std::string text = "bucket " + std::to_string(plan_of(round).bucket) + ", element " +
                     std::to_string(element) + " is " + std::to_string(sum) + "; by rank, in it/";
  text += "submitted/kept:";
  const bool readable = sum >= 0 && sum < coding.limit();
  const std::uint32_t lane = coding.lane_of_element(element);
  if (coding.lanes() > 1) text += " (from rank " + std::to_string(coding.first_rank(lane)) + ")";
  for (std::uint32_t r = coding.first_rank(lane); r < coding.end_rank(lane); ++r) {
    text.append(" ").append(readable ? std::to_string(coding.digit_of(sum, r)) : "?");
    text.append("/").append(std::to_string(coding.digit(round, r, element)));
    text.append("/").append(std::to_string(kept(round, r, element)));
  }
  return text;
}

/// Whether the last round of a bucket closed because a host was absent. That may happen without
/// loss, if a controller spaces blocks by more than absent_after. The host's contribution is then
/// kept for a round that does not come.
bool ToleranceChecker::closed_without_absent(std::uint16_t bucket) const {
  auto round = static_cast<std::uint32_t>(scenario_.rounds.size());
  while (round > 0 && plan_of(--round).bucket != bucket) {
  }
  const std::vector<Part> parts = parts_of(round);
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part& p) { return p.reason == CloseReason::kAbsent; });
}

std::string ToleranceChecker::conclude(const hop::Counters& all_nodes) const {
  if (scenario_.tolerance.rounds_off) return rounding_.conclude();
  // The trainers check exchanges, because what they lack differs from rank to rank.
  const auto is_exchange = [](const RoundPlan& r) { return r.operation == Operation::kExchange; };
  if (std::any_of(scenario_.rounds.begin(), scenario_.rounds.end(), is_exchange)) return {};
  const std::uint64_t missing = totals_.missing_blocks;
  if (all_nodes.blocks_missing != missing || all_nodes.blocks_excluded != missing) {
    return "I3: the roots count " + std::to_string(all_nodes.blocks_missing) +
           " missing blocks and their sources " + std::to_string(all_nodes.blocks_excluded) +
           ", the sums lack " + std::to_string(missing);
  }
  std::string wrong = check_counts();
  if (wrong.empty()) wrong = check_reports(all_nodes.blocks_missing);
  if (!wrong.empty()) return wrong;
  if (scenario_.tolerance.closing_rounds == 0) return {};
  for (std::size_t b = 0; b < ledgers_.size(); ++b) {
    const std::vector<std::int64_t>& kept = ledgers_[b].kept;
    const auto left = std::find_if(kept.begin(), kept.end(), [](std::int64_t k) { return k != 0; });
    if (left == kept.end() || closed_without_absent(static_cast<std::uint16_t>(b + 1))) continue;
    const auto at = static_cast<std::size_t>(left - kept.begin());
    const std::uint32_t per_lane = codings_[b].per_lane();
    const auto element = static_cast<std::uint32_t>(at / per_lane);
    const std::size_t rank =
        codings_[b].first_rank(codings_[b].lane_of_element(element)) + at % per_lane;
    return "I5: bucket " + std::to_string(b + 1) + ", element " + std::to_string(element) +
           " of rank " + std::to_string(rank) + ": delivered and submitted differ by " +
           std::to_string(*left);
  }
  return {};
}

}  // namespace gradplane::sim
