// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/tolerance_checker.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/sim/trainer.h"

namespace gradplane::sim {

void ToleranceTotals::add(const ToleranceTotals& other) {
  for (std::size_t r = 0; r < closes.size(); ++r) closes[r] += other.closes[r];
  partial_blocks += other.partial_blocks;
  missing_blocks += other.missing_blocks;
  carried_elements += other.carried_elements;
  partial_after_change += other.partial_after_change;
}

ToleranceChecker::ToleranceChecker(const Scenario& scenario, std::uint32_t world)
    : scenario_(scenario),
      world_(world),
      all_((1U << world) - 1),
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
    codings_.emplace_back(bounds.type, world, scenario.tolerance.compensation, ledgers_[b].uses);
    ledgers_[b].kept.assign(std::size_t{world} * bounds.elements, 0);
    ledgers_[b].missing.resize(bounds.tensors.size());
    ledgers_[b].counted.resize(bounds.tensors.size());
    ledgers_[b].excluded.resize(bounds.tensors.size());
    for (const api::BoundedTensor& tensor : bounds.tensors) {
      ledgers_[b].bounds.push_back({{Instant(), tensor.bound}});
    }
  }
  for (const api::Member& member : scenario.plan.members) {
    RankSet ranks = 0;
    for (const std::uint16_t rank : member.ranks) ranks |= 1U << rank;
    ranks_of_member_.push_back(ranks);
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
  return ledgers_[plan_of(round).bucket - 1u].kept[rank * bounds_of(round).elements + element];
}

/// What a rank's digit is if it is in the sum of this round.
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
  return coding_of(round).digit(round, rank, element) * coding_of(round).worth(rank);
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
  const std::size_t width = element_bytes(g.type);
  for (std::uint32_t block = 0; block < g.blocks; ++block) {
    std::uint32_t first = block * g.block_elements;
    while (poison_at(round, first) != nullptr) ++first;
    const double sum = load(g.type, slot.data() + first * width);
    const std::optional<RankSet> set = set_of(round, first, sum);
    if (!set) return "I2: no set of ranks has this sum; " + describe(round, first, sum);
    result.sets.push_back(*set);
    const auto count = static_cast<std::uint32_t>(std::popcount(*set));
    result.contributors = std::min(result.contributors, count);
    result.partial_blocks += *set == all_ ? 0 : 1;
  }
  totals_.partial_blocks += result.partial_blocks;
  result.bytes.assign(slot.begin(), slot.end());
  return {};
}

/// A host carries from one round of a bucket to the next; where rounds overlap, a later one may
/// close before an earlier one.
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

std::optional<ToleranceChecker::RankSet> ToleranceChecker::set_of(std::uint32_t round,
                                                                  std::uint32_t element,
                                                                  double sum) const {
  const Coding& coding = coding_of(round);
  if (!(sum >= 0) || sum >= coding.limit(world_) * world_) return std::nullopt;
  if (scenario_.tolerance.compensation == Compensation::kRescale) {
    return scaled_set_of(round, element, sum);
  }
  if (sum != std::floor(sum) || sum >= coding.limit(world_)) return std::nullopt;
  RankSet set = 0;
  for (std::uint32_t r = 0; r < world_; ++r) set |= (coding.digit_of(sum, r) != 0 ? 1U : 0U) << r;
  return set;
}

/// Tries how many contributions the sum was scaled up from.
std::optional<ToleranceChecker::RankSet> ToleranceChecker::scaled_set_of(std::uint32_t round,
                                                                         std::uint32_t element,
                                                                         double sum) const {
  if (sum == 0) return 0;
  const Coding& coding = coding_of(round);
  for (std::uint32_t count = world_; count > 0; --count) {
    const double scale = static_cast<double>(world_) / count;
    const double unscaled = std::round(sum / scale);
    if (std::abs(sum - unscaled * scale) > coding.rounding() * sum) continue;
    RankSet set = 0;
    bool fits = unscaled < coding.limit(world_);
    for (std::uint32_t r = 0; r < world_ && fits; ++r) {
      const std::uint64_t digit = coding.digit_of(unscaled, r);
      fits = digit == 0 || digit == coding.digit(round, r, element);
      set |= (digit != 0 ? 1U : 0U) << r;
    }
    if (fits && static_cast<std::uint32_t>(std::popcount(set)) == count) return set;
  }
  return std::nullopt;
}

double ToleranceChecker::expected(std::uint32_t round, std::uint32_t element, RankSet set) {
  double sum = 0;
  for (std::uint32_t r = 0; r < world_; ++r) {
    if ((set >> r & 1) != 0) sum += pending(round, r, element) * coding_of(round).worth(r);
  }
  const bool scaled = scenario_.tolerance.compensation == Compensation::kRescale && set != 0;
  return scaled ? sum * world_ / std::popcount(set) : sum;
}

std::string ToleranceChecker::check_block(std::uint32_t round, std::uint32_t block, RankSet set,
                                          std::span<const std::byte> slot) {
  const Geometry g = geometry_of(round);
  const bool scaled = scenario_.tolerance.compensation == Compensation::kRescale && set != all_;
  const std::uint32_t first = block * g.block_elements;
  for (std::uint32_t e = first; e < first + g.elements_in(block); ++e) {
    const double sum = load(g.type, slot.data() + e * element_bytes(g.type));
    const Poison* poison = poison_at(round, e);
    if (poison != nullptr && (set >> poison->rank & 1) != 0) continue;
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

/// What did not enter is kept for later, and what entered is kept no more. A host whose block is no
/// finite number keeps nothing of it.
void ToleranceChecker::settle(std::uint32_t round, std::uint32_t block, RankSet set) {
  const Geometry g = geometry_of(round);
  const std::uint32_t first = block * g.block_elements;
  RankSet kept_by = all_ & ~set;
  for (const Poison& p : scenario_.tolerance.poison) {
    const bool here = p.element >= first && p.element < first + g.elements_in(block);
    if (p.round != round || !here) continue;
    for (const RankSet ranks : ranks_of_member_) {
      if ((ranks >> p.rank & 1) != 0) kept_by &= ~ranks;
    }
  }
  for (std::uint32_t e = first; e < first + g.elements_in(block); ++e) {
    for (std::uint32_t r = 0; r < world_; ++r) {
      std::int64_t& waiting = kept(round, r, e);
      if ((set >> r & 1) != 0 && waiting > 0) ++totals_.carried_elements;
      waiting = (kept_by >> r & 1) != 0 ? pending(round, r, e) : 0;
    }
  }
}

std::string ToleranceChecker::describe(std::uint32_t round, std::uint32_t element, double sum) {
  const Coding& coding = coding_of(round);
  std::string text = "bucket " + std::to_string(plan_of(round).bucket) + ", element " +
                     std::to_string(element) + " is " + std::to_string(sum) + "; by rank, in it/";
  text += "submitted/kept:";
  const bool readable = sum >= 0 && sum < coding.limit(world_);
  for (std::uint32_t r = 0; r < world_; ++r) {
    text.append(" ").append(readable ? std::to_string(coding.digit_of(sum, r)) : "?");
    text.append("/").append(std::to_string(coding.digit(round, r, element)));
    text.append("/").append(std::to_string(kept(round, r, element)));
  }
  return text;
}

/// Whether the last round of a bucket was closed because a host had been silent for too long. One
/// whose controller spaces its blocks by more than that is absent with no loss at all, and its
/// contribution is still kept for a round that does not come.
bool ToleranceChecker::closed_without_absent(std::uint16_t bucket) const {
  auto round = static_cast<std::uint32_t>(scenario_.rounds.size());
  while (round > 0 && plan_of(--round).bucket != bucket) {
  }
  const std::vector<Part> parts = parts_of(round);
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part& p) { return p.reason == CloseReason::kAbsent; });
}

std::string ToleranceChecker::conclude(const hop::Counters& all_nodes) const {
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
    const std::uint32_t elements = scenario_.tolerance.buckets[b].elements;
    return "I5: bucket " + std::to_string(b + 1) + ", element " + std::to_string(at % elements) +
           " of rank " + std::to_string(at / elements) + ": delivered and submitted differ by " +
           std::to_string(*left);
  }
  return {};
}

}  // namespace gradplane::sim
