// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Checks what may be missing from a round, and why: I3 and I4 of ToleranceChecker.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tests/sim/tolerance_checker.h"

namespace gradplane::sim {
namespace {

bool is_float(ElementType type) {
  return type != ElementType::kInt32 && type != ElementType::kInt64;
}

BlockRange blocks_of(const api::BoundedTensor& tensor, const Geometry& g) {
  return {tensor.offset_elements / g.block_elements,
          (tensor.offset_elements + tensor.elements - 1) / g.block_elements + 1};
}

/// Compensates rounding: a bound times a number of blocks may be slightly less than an integer.
constexpr double kBoundRounding = 1e-4;

std::uint32_t allowance(float bound, BlockRange own) {
  const double blocks = own.size();
  return static_cast<std::uint32_t>(std::floor(bound * blocks + kBoundRounding));
}

BlockRange overlap(BlockRange a, BlockRange b) {
  const std::uint32_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// The share of a tensor's allowance for the blocks in `part`.
std::uint32_t allowance_of_part(float bound, BlockRange own, BlockRange part) {
  const auto whole = static_cast<std::uint64_t>(bound * static_cast<float>(own.size()));
  const BlockRange here = overlap(own, part);
  const auto before = [&](std::uint32_t block) { return whole * (block - own.begin) / own.size(); };
  return here.size() == 0 ? 0 : static_cast<std::uint32_t>(before(here.end) - before(here.begin));
}

/// The critical blocks: no rank may miss a block with exact elements.
std::vector<bool> critical_blocks(const api::BucketBounds& bounds, const Geometry& g) {
  std::vector<std::uint32_t> lossy(g.blocks);  // elements with a loss bound, by block
  for (const api::BoundedTensor& tensor : bounds.tensors) {
    if (tensor.bound <= 0 || !is_float(bounds.type)) continue;
    for (std::uint32_t b = blocks_of(tensor, g).begin; b < blocks_of(tensor, g).end; ++b) {
      const std::uint32_t begin = std::max(b * g.block_elements, tensor.offset_elements);
      const std::uint32_t end = std::min(b * g.block_elements + g.elements_in(b),
                                         tensor.offset_elements + tensor.elements);
      lossy[b] += end - begin;
    }
  }
  std::vector<bool> critical(g.blocks);
  for (std::uint32_t b = 0; b < g.blocks; ++b) critical[b] = lossy[b] < g.elements_in(b);
  return critical;
}

}  // namespace

void ToleranceChecker::on_submit(std::uint32_t round, Instant now) {
  if (!submitted_at_[round]) submitted_at_[round] = now;
}

void ToleranceChecker::on_change(const BoundChange& change, Instant now) {
  ledgers_[change.bucket - 1].bounds[change.tensor].push_back({now, change.bound});
}

std::string ToleranceChecker::on_report(std::uint16_t node, const api::JobRoundReport& heard,
                                        Instant now) {
  const RoundReport& report = heard.report;
  const std::uint32_t round = scenario_.index_of(report.round);
  const std::string who = "I3: node " + std::to_string(node);
  if (round >= scenario_.rounds.size() || plan_of(round).bucket == 0 ||
      plan_of(round).bucket != report.bucket || report.tree >= plan_at(round).trees.size() ||
      plan_at(round).trees[report.tree].root != node) {
    return who + " reports a round that it does not gather";
  }
  if (report.number != ++reports_of_part_[{node, heard.part}]) return who + " has lost a report";
  // A report of a stream is about one sender only, so it does not close a round.
  if (StreamChecker::checks(scenario_, plan_of(round))) return {};
  if (!reports_.emplace(std::pair(round, report.tree), Closed{report, now}).second) {
    return who + " has closed round " + std::to_string(round) + " twice";
  }
  ++totals_.closes[static_cast<std::size_t>(report.reason)];
  return {};
}

const api::Plan& ToleranceChecker::plan_at(std::uint32_t round) const {
  std::size_t p = plans_.size() - 1;
  while (plans_[p].first > round) --p;
  return plans_[p].plan;
}

std::vector<ToleranceChecker::Part> ToleranceChecker::parts_of(std::uint32_t round) const {
  const api::Plan& plan = plan_at(round);
  std::uint64_t total = 0;
  for (const api::Tree& tree : plan.trees) total += tree.weight;
  std::vector<WeightShare> shares;
  std::uint64_t begin = 0;
  for (const api::Tree& tree : plan.trees) {
    shares.push_back({begin, tree.weight});
    begin += tree.weight;
  }
  const std::uint64_t first = shares[scenario_.id_of(round) % shares.size()].begin;
  std::vector<Part> parts;
  for (std::size_t t = 0; t < shares.size(); ++t) {
    Part part;
    part.blocks = blocks_of_tree(shares[t], first, total, geometry_of(round).blocks);
    const auto report = reports_.find({round, static_cast<std::uint8_t>(t)});
    if (report != reports_.end()) {
      part.reason = report->second.report.reason;
      part.closed_at = report->second.at;
    }
    parts.push_back(part);
  }
  return parts;
}

/// Counts missing blocks by source: the ranks of one host come as one sum, or not at all.
std::string ToleranceChecker::count_missing(std::uint32_t round) {
  for (std::uint32_t block = 0; block < decoded_[round].sets.size(); ++block) {
    const RankSet& set = decoded_[round].sets[block];
    if (set == all_) continue;
    for (const auto& [node, ranks] : ranks_of_node_) {
      if ((set & ranks) == ranks) continue;
      if ((set & ranks).any()) {
        return "I2: block " + std::to_string(block) + " lacks some ranks of a host";
      }
      ++totals_.missing_blocks;
      count_tensors(round, block);
    }
  }
  return {};
}

void ToleranceChecker::count_tensors(std::uint32_t round, std::uint32_t block) {
  const std::vector<api::BoundedTensor>& tensors = bounds_of(round).tensors;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const bool here = blocks_of(tensors[t], geometry_of(round)).contains(block);
    ledgers_[plan_of(round).bucket - 1u].missing[t] += here ? 1 : 0;
  }
}

void ToleranceChecker::add_counts(const aggregate::Bucket& bucket) {
  Ledger& ledger = ledgers_[bucket.id() - 1];
  for (std::size_t t = 0; t < bucket.tensor_count(); ++t) {
    ledger.counted[t] += bucket.missing_blocks(t);
    ledger.excluded[t] += bucket.excluded_blocks(t);
  }
}

/// Compares the counts of missing blocks. A source without the bucket's table counts no tensors, so
/// sources may have counted fewer.
std::string ToleranceChecker::check_counts() const {
  for (std::size_t b = 0; b < ledgers_.size(); ++b) {
    const Ledger& ledger = ledgers_[b];
    for (std::size_t t = 0; t < ledger.missing.size(); ++t) {
      const bool all_know =
          scenario_.tolerance.installations.empty() && !scenario_.tolerance.session_brings_tables;
      if (ledger.counted[t] == ledger.missing[t] && ledger.excluded[t] <= ledger.missing[t] &&
          (!all_know || ledger.excluded[t] == ledger.missing[t])) {
        continue;
      }
      return "I4: of " + scenario_.tolerance.buckets[b].tensors[t].name + " the roots count " +
             std::to_string(ledger.counted[t]) + " missing blocks and their sources " +
             std::to_string(ledger.excluded[t]) + ", the sums lack " +
             std::to_string(ledger.missing[t]);
    }
  }
  return {};
}

/// `missing`: the total that the roots have counted.
std::string ToleranceChecker::check_reports(std::uint64_t missing) const {
  std::uint64_t reported = 0;
  for (const auto& [place, closed] : reports_) {
    reported += closed.report.missing_blocks;
    const std::string wrong = check_report(place.first, closed.report);
    if (!wrong.empty()) return "I3: the report of round " + std::to_string(place.first) + wrong;
  }
  if (reported == missing) return {};
  return "I3: the roots report " + std::to_string(reported) + " missing blocks and count " +
         std::to_string(missing);
}

/// Whether a report agrees with the sums about sources and tensors.
std::string ToleranceChecker::check_report(std::uint32_t round, const RoundReport& report) const {
  const BlockRange range = parts_of(round)[report.tree].blocks;
  const std::vector<api::BoundedTensor>& tensors = bounds_of(round).tensors;
  std::map<std::uint16_t, std::uint32_t> of_source;
  std::vector<std::uint32_t> of_tensor(tensors.size());
  for (std::uint32_t b = range.begin; b < range.end; ++b) {
    for (const auto& [node, ranks] : ranks_of_node_) {
      if ((ranks & ~decoded_[round].sets[b]).none()) continue;
      ++of_source[node];
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        of_tensor[t] += blocks_of(tensors[t], geometry_of(round)).contains(b) ? 1 : 0;
      }
    }
  }
  const auto lacking = static_cast<std::uint32_t>(of_source.size());
  std::uint32_t left = report.missing_blocks;
  for (const RoundReport::Source& source : report.sources) {
    if (source.missing_blocks == 0) break;
    if (source.missing_blocks != of_source[source.node]) {
      return " is wrong about node " + std::to_string(source.node);
    }
    left -= source.missing_blocks;
    of_source.erase(source.node);
  }
  std::uint32_t unnamed = 0;
  std::uint32_t unnamed_worst = 0;
  for (const auto& [node, blocks] : of_source) {
    unnamed += blocks;
    unnamed_worst = std::max(unnamed_worst, blocks);
  }
  // A report names the sources that lack most, and counts the others.
  const bool names_worst = unnamed_worst <= report.sources.back().missing_blocks;
  if (left != unnamed || !names_worst || report.lacking_sources != lacking ||
      report.blocks != range.size()) {
    return " does not name all sources that lack something";
  }
  std::uint32_t others = std::accumulate(of_tensor.begin(), of_tensor.end(), 0U);
  for (const RoundReport::Tensor& tensor : report.tensors) {
    if (tensor.missing_blocks == 0) break;
    if (tensor.missing_blocks != of_tensor[tensor.index]) {
      return " is wrong about " + tensors[tensor.index].name;
    }
    others -= tensor.missing_blocks;
  }
  if (others != report.other_tensors_missing_blocks) return " does not count all tensors";
  return {};
}

std::string ToleranceChecker::check_bounds(std::uint32_t round) {
  const std::vector<Part> parts = parts_of(round);
  for (const Part& part : parts) {
    const std::string wrong = check_part(round, part);
    if (!wrong.empty()) return wrong;
    totals_.partial_after_change += lacks_after_change(round, part) ? 1 : 0;
  }
  return check_tensors(round, parts);
}

/// The bounds that a round may have at a root. The root takes them when the round begins there:
/// after the first rank has submitted it, and before it closes.
std::vector<float> ToleranceChecker::bounds_in(std::uint32_t round, const Part& part,
                                               std::size_t tensor) const {
  const std::vector<BoundSince>& all = ledgers_[plan_of(round).bucket - 1u].bounds[tensor];
  std::vector<float> bounds;
  for (std::size_t b = 0; b < all.size(); ++b) {
    const bool over = b + 1 < all.size() && all[b + 1].since < *submitted_at_[round];
    if (!over && all[b].since <= part.closed_at) bounds.push_back(all[b].bound);
  }
  return bounds;
}

/// The table that has for each tensor the largest bound with which the round may have begun.
api::BucketBounds ToleranceChecker::loosest(std::uint32_t round, const Part& part) const {
  api::BucketBounds table = bounds_of(round);
  for (std::size_t t = 0; t < table.tensors.size() && part.reason; ++t) {
    const std::vector<float> bounds = bounds_in(round, part, t);
    table.tensors[t].bound = *std::max_element(bounds.begin(), bounds.end());
  }
  return table;
}

bool ToleranceChecker::lacks_after_change(std::uint32_t round, const Part& part) const {
  if (part.reason != CloseReason::kEarly) return false;
  for (std::size_t t = 0; t < bounds_of(round).tensors.size(); ++t) {
    const float first = bounds_of(round).tensors[t].bound;
    const std::vector<float> bounds = bounds_in(round, part, t);
    if (std::find(bounds.begin(), bounds.end(), first) == bounds.end()) return true;
  }
  return false;
}

/// Checks what may be missing at one root, over all tensors.
std::string ToleranceChecker::check_part(std::uint32_t round, const Part& part) const {
  const Geometry g = geometry_of(round);
  const Tolerance& tolerance = scenario_.tolerance;
  const std::vector<bool> critical = critical_blocks(loosest(round, part), g);
  std::vector<std::uint32_t> arrived(world_);
  for (std::uint32_t b = part.blocks.begin; b < part.blocks.end; ++b) {
    const RankSet& set = decoded_[round].sets[b];
    for (std::uint32_t r = 0; r < world_; ++r) arrived[r] += set[r] ? 1 : 0;
    if (set == all_) continue;
    const std::string block = "block " + std::to_string(b);
    if (!part.reason || *part.reason == CloseReason::kFull) {
      return "I3: " + block + " lacks a rank, and " +
             (part.reason ? "the root says that it is full" : "nobody said why");
    }
    if (!is_float(g.type)) return "I4: " + block + " of an exact round lacks a rank";
    if (use_of_round_[round] < tolerance.strict_rounds)
      return "I4: " + block + " of a strict round lacks a rank";
    if (critical[b] && *part.reason != CloseReason::kAbsent) {
      return "I4: critical " + block + " lacks a rank";
    }
  }
  if (!part.reason || *part.reason != CloseReason::kEarly) return {};
  for (std::uint32_t r = 0; r < world_; ++r) {
    if (arrived[r] + kBoundRounding >= static_cast<double>(tolerance.floor) * part.blocks.size())
      continue;
    return "I4: closed early with " + std::to_string(arrived[r]) + " of " +
           std::to_string(part.blocks.size()) + " blocks of rank " + std::to_string(r);
  }
  return {};
}

std::string ToleranceChecker::check_tensors(std::uint32_t round,
                                            const std::vector<Part>& parts) const {
  std::vector<Part> bounded;
  for (const Part& part : parts) {
    const bool gave_up = part.reason && *part.reason > CloseReason::kEarly;
    if (part.reason && !gave_up) bounded.push_back(part);
  }
  for (std::size_t t = 0; t < bounds_of(round).tensors.size(); ++t) {
    const std::string wrong = check_tensor(round, t, bounded);
    if (!wrong.empty()) return "I4: " + bounds_of(round).tensors[t].name + wrong;
  }
  return {};
}

/// Checks what may be missing of a tensor at all roots together, if none closed without an absent
/// host. If the tensor's bound has just changed, it checks each root by itself.
std::string ToleranceChecker::check_tensor(std::uint32_t round, std::size_t tensor,
                                           const std::vector<Part>& parts) const {
  const BlockRange own = blocks_of(bounds_of(round).tensors[tensor], geometry_of(round));
  std::vector<std::uint32_t> missing(world_);
  std::vector<float> all;
  for (const Part& part : parts) {
    const BlockRange here = overlap(own, part.blocks);
    std::vector<std::uint32_t> missing_here(world_);
    for (std::uint32_t b = here.begin; b < here.end; ++b) {
      for (std::uint32_t r = 0; r < world_; ++r) {
        missing_here[r] += decoded_[round].sets[b][r] ? 0 : 1;
      }
    }
    std::uint32_t most = 0;
    for (const float bound : bounds_in(round, part, tensor)) {
      all.push_back(bound);
      most = std::max(most, allowance_of_part(bound, own, part.blocks));
    }
    for (std::uint32_t r = 0; r < world_; ++r) {
      missing[r] += missing_here[r];
      if (missing_here[r] > most) return " lacks more than a root may miss of a rank";
    }
  }
  const std::uint32_t worst = *std::max_element(missing.begin(), missing.end());
  const bool one_bound =
      std::adjacent_find(all.begin(), all.end(), std::not_equal_to{}) == all.end();
  if (worst == 0 || !one_bound || worst <= allowance(all[0], own)) return {};
  return " lacks " + std::to_string(worst) + " blocks of a rank, " +
         std::to_string(allowance(all[0], own)) + " at most may be missing";
}

}  // namespace gradplane::sim
