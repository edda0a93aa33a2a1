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
      wire_types_(wire_types_of(config.geometry, config.tensors)),
      limits_(config.limits),
      totals_(std::make_unique<BlockTotals[]>(config.geometry.blocks)),
      noise_(std::make_unique<Noise[]>(config.tensors.size())),
      parts_(config.geometry.blocks) {
  GP_ASSERT(geometry_.bucket > 0 && geometry_.bucket <= kMaxBuckets);
  for (const WireType type : wire_types_) narrowest_ = narrower(narrowest_, type);
  critical_.reset(geometry_.blocks);
  for (std::uint32_t b = 0; b < geometry_.blocks; ++b) {
    if (map_.is_always_critical(b)) critical_.set(b);
  }
  for (std::size_t t = 0; t < config.tensors.size(); ++t) {
    const float bound = config.tensors[t].bound;
    GP_ASSERT(bound >= 0 && bound <= kMaxBound);
    bounds_[t] = bound;
    is_learned_.push_back(config.tensors[t].is_learned);
    const float largest = config.tensors[t].is_learned ? kMaxBound : bound;
    if (map_.allowance(t, largest) > 0) continue;
    for (std::uint32_t b = map_.blocks(t).begin; b < map_.blocks(t).end; ++b) critical_.set(b);
  }
  keep_plan(make_gathers(config.epoch, config.gathered));
  if (config.keeps_residual) residual_ = make_residual();
  if (config.has_inbox) inbox_ = std::make_unique<Inbox>(geometry_);
}

std::unique_ptr<Residual> Bucket::make_residual() {
  residual_is_made_ = true;
  return std::make_unique<Residual>(geometry_);
}

std::unique_ptr<GatherSet> Bucket::make_gathers(std::uint32_t epoch,
                                                const std::vector<GatheredTree>& trees) const {
  return std::make_unique<GatherSet>(epoch, trees, map_, bounds_, is_learned_, limits_);
}

void Bucket::keep_plan(std::unique_ptr<GatherSet> gathers) {
  std::unique_ptr<Residual> none;
  add_plan(*own_sets_.emplace_back(std::move(gathers)), none);
}

void Bucket::add_plan(GatherSet& gathers, std::unique_ptr<Residual>& residual) {
  if (residual_ == nullptr) residual_ = std::move(residual);
  const auto free = std::find(sets_.begin(), sets_.end(), nullptr);
  GP_ASSERT(free != sets_.end());
  free->store(&gathers, std::memory_order_release);
}

void Bucket::remove_plan(std::uint32_t epoch) {
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    const GatherSet* set = sets_[i];
    if (set == nullptr || set->epoch() != epoch) continue;
    for (std::size_t next = i + 1; next < sets_.size(); ++next) {
      GatherSet* newer = sets_[next];
      if (newer != nullptr && !newer->has_begun()) newer->begin_after(*set);
      if (newer != nullptr) newer->add_counts(*set);
      sets_[next - 1].store(newer, std::memory_order_release);
    }
    sets_.back().store(nullptr, std::memory_order_release);
    return;
  }
}

void Bucket::keep_only(std::uint32_t epoch) {
  for (std::size_t i = sets_.size(); i > 0; --i) {
    const GatherSet* set = sets_[i - 1];
    if (set != nullptr && set->epoch() != epoch) remove_plan(set->epoch());
  }
}

Gather* Bucket::gather(std::uint32_t epoch, std::size_t tree) {
  GatherSet* own = nullptr;
  for (GatherSet* set : sets_) {
    if (set == nullptr) break;
    if (set->epoch() == epoch) {
      own = set;
    } else if (set->any_open()) {
      return nullptr;
    }
  }
  if (own == nullptr) return nullptr;
  if (own != sets_[0] && !own->has_begun()) own->begin_after(*sets_[0].load());
  return own->gather(tree);
}

GatherSet* Bucket::part_of(std::uint32_t epoch) {
  for (GatherSet* set : sets_) {
    if (set == nullptr || set->epoch() != epoch) continue;
    if (set != sets_[0] && !set->has_begun()) set->begin_after(*sets_[0].load());
    return set;
  }
  return nullptr;
}

void Bucket::set_bound(std::size_t tensor, float bound) {
  bounds_[tensor].store(std::clamp(bound, 0.0F, kMaxBound), std::memory_order_relaxed);
}

void Bucket::count_close(CloseReason reason, const Gather& gather) {
  for (std::uint32_t b = gather.range().begin; b < gather.range().end; ++b) {
    count_up(totals_[b].missing, gather.hosts_lacking(b));
    count_up(totals_[b].expected, gather.hosts_taking_part());
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
    if (!inside) return;  // a block that two tensors share tells nothing about either
    if (!std::isfinite(parts_[block]) || !std::isfinite(sum_energy)) return;
    Noise& noise = noise_[t];
    noise.part_energy.store(noise.part_energy * kEnergyDecay + parts_[block],
                            std::memory_order_relaxed);
    noise.sum_energy.store(noise.sum_energy * kEnergyDecay + sum_energy, std::memory_order_relaxed);
  });
}

std::size_t Bucket::source_count() const {
  const GatherSet* set = sets_[0].load(std::memory_order_acquire);
  return set == nullptr ? 0 : set->source_count();
}

SourceReport Bucket::source(std::size_t index) const {
  const GatherSet* set = sets_[0].load(std::memory_order_acquire);
  return set == nullptr ? SourceReport{} : set->source(index);
}

}  // namespace gradplane::aggregate
