// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/aggregate/bucket.h"

#include <algorithm>
#include <cmath>

#include "dataplane/base/assert.h"

namespace gradplane::aggregate {
namespace {

/// How fast old measurements of a gradient's noise lose weight, per sampled block.
constexpr double kEnergyDecay = 0.98;

}  // namespace

Bucket::Bucket(const BucketConfig& config)
    : geometry_(config.geometry),
      map_(config.geometry, config.tensors),
      bounds_(config.tensors.size()),
      critical_(config.geometry.blocks),
      totals_(std::make_unique<BlockTotals[]>(config.geometry.blocks)),
      noise_(std::make_unique<Noise[]>(config.tensors.size())),
      parts_(config.geometry.blocks) {
  GP_ASSERT(geometry_.bucket > 0 && geometry_.bucket <= kMaxBuckets);
  // A relay learns nothing, because it sees no result before it has to decide. It must not miss
  // more than the root allows, so what the root learns is exact here.
  const bool relays = std::any_of(config.gathered.begin(), config.gathered.end(),
                                  [](const GatheredTree& tree) { return !tree.is_root; });
  critical_.reset(geometry_.blocks);
  for (std::uint32_t b = 0; b < geometry_.blocks; ++b) {
    if (map_.is_always_critical(b)) critical_.set(b);
  }
  for (std::size_t t = 0; t < config.tensors.size(); ++t) {
    const float bound = config.tensors[t].bound;
    GP_ASSERT(bound >= 0 && bound <= kMaxBound);
    fixed_.push_back(relays && config.tensors[t].is_learned);
    bounds_[t] = fixed_[t] ? 0 : bound;
    const float largest = config.tensors[t].is_learned ? kMaxBound : bound;
    if (map_.allowance(t, largest) > 0) continue;
    for (std::uint32_t b = map_.blocks(t).begin; b < map_.blocks(t).end; ++b) critical_.set(b);
  }
  for (const GatheredTree& tree : config.gathered) {
    trees_.push_back(tree.tree);
    is_root_.push_back(tree.is_root);
    gathers_.push_back(std::make_unique<Gather>(tree.sources, map_, bounds_, config.limits,
                                                tree.share, tree.is_root));
  }
  if (config.keeps_residual) residual_.emplace(geometry_);
}

Gather* Bucket::gather(std::size_t tree) {
  const auto at = std::find(trees_.begin(), trees_.end(), tree);
  if (at == trees_.end()) return nullptr;
  return gathers_[static_cast<std::size_t>(at - trees_.begin())].get();
}

void Bucket::set_bound(std::size_t tensor, float bound) {
  if (fixed_[tensor]) return;
  bounds_[tensor].store(std::clamp(bound, 0.0F, kMaxBound), std::memory_order_relaxed);
}

void Bucket::count_close(CloseReason reason, const Gather& gather) {
  for (std::uint32_t b = gather.range().begin; b < gather.range().end; ++b) {
    count_up(totals_[b].missing, gather.hosts_lacking(b));
    count_up(totals_[b].expected, gather.host_count());
  }
  count_up(closes_[static_cast<std::size_t>(reason)], 1);
}

void Bucket::count_excluded(std::uint32_t block) {
  count_up(totals_[block].excluded, 1);
}

std::uint64_t Bucket::sum_of(std::size_t tensor, SharedCount BlockTotals::*count) const {
  std::uint64_t sum = 0;
  const BlockRange own = map_.blocks(tensor);
  for (std::uint32_t b = own.begin; b < own.end; ++b) sum += read(totals_[b].*count);
  return sum;
}

void Bucket::reset_parts(BlockRange range) {
  std::fill(parts_.begin() + range.begin, parts_.begin() + range.end, 0.0);
}

void Bucket::end_parts(std::uint32_t block, double sum_energy) {
  map_.for_each_wide_in(block, [&](std::size_t w) {
    const std::size_t t = map_.tensor_of_wide(w);
    const BlockRange own = map_.blocks(t);
    const bool inside = block > own.begin && block + 1 < own.end;
    if (!inside) return;  // a block that two tensors share tells of neither
    if (!std::isfinite(parts_[block]) || !std::isfinite(sum_energy)) return;
    Noise& noise = noise_[t];
    noise.part_energy.store(noise.part_energy * kEnergyDecay + parts_[block],
                            std::memory_order_relaxed);
    noise.sum_energy.store(noise.sum_energy * kEnergyDecay + sum_energy, std::memory_order_relaxed);
  });
}

std::size_t Bucket::source_count() const {
  std::size_t count = 0;
  for (std::size_t g = 0; g < gathers_.size(); ++g) {
    if (is_root_[g]) count += gathers_[g]->host_count();
  }
  return count;
}

SourceReport Bucket::source(std::size_t index) const {
  for (std::size_t g = 0; g < gathers_.size(); ++g) {
    if (!is_root_[g]) continue;
    if (index < gathers_[g]->host_count()) return gathers_[g]->report(index);
    index -= gathers_[g]->host_count();
  }
  return {};
}

}  // namespace gradplane::aggregate
