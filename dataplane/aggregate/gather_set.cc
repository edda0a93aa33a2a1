// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/aggregate/gather_set.h"

#include <algorithm>

namespace gradplane::aggregate {

GatherSet::GatherSet(std::uint32_t epoch, const std::vector<GatheredTree>& trees,
                     const TensorMap& map, const std::vector<std::atomic<float>>& bounds,
                     const std::vector<bool>& is_learned, const CloseLimits& limits)
    : epoch_(epoch) {
  for (const GatheredTree& tree : trees) {
    has_streams_ = has_streams_ || tree.is_stream;
    trees_.push_back(tree.tree);
    is_root_.push_back(tree.is_root);
    // A relay cannot learn bounds, because it must decide before it sees a result. It must not miss
    // more than the root allows, so tensors with learned bounds are exact here.
    gathers_.push_back(std::make_unique<Gather>(tree.sources, map, bounds, limits, tree.share,
                                                tree.is_root ? nullptr : &is_learned));
  }
  if (has_streams_) done_.received.resize(gathers_.size());
}

Gather* GatherSet::gather(std::size_t tree) {
  if (has_streams_) return nullptr;
  const auto at = std::find(trees_.begin(), trees_.end(), tree);
  if (at == trees_.end()) return nullptr;
  return gathers_[static_cast<std::size_t>(at - trees_.begin())].get();
}

bool GatherSet::any_open() const {
  return std::any_of(gathers_.begin(), gathers_.end(),
                     [](const auto& gather) { return gather->is_open(); });
}

void GatherSet::begin_after(const GatherSet& before) {
  has_begun_ = true;
  if (before.gathers_.empty()) return;
  Gather::Memory memory;
  for (const auto& gather : before.gathers_) gather->add_to(memory);
  for (const auto& gather : gathers_) gather->learn_from(memory);
}

void GatherSet::add_counts(const GatherSet& other) {
  if (gathers_.empty()) return;
  // With streams each gathering has one child, so all of them are visited. Otherwise the first one
  // takes all counts.
  for (const auto& own : gathers_) {
    for (const auto& before : other.gathers_) own->add_counts(*before);
    if (!has_streams_) return;
  }
}

std::size_t GatherSet::source_count() const {
  std::size_t count = 0;
  for (std::size_t g = 0; g < gathers_.size(); ++g) {
    if (is_root_[g]) count += gathers_[g]->host_count();
  }
  return count;
}

SourceReport GatherSet::source(std::size_t index) const {
  for (std::size_t g = 0; g < gathers_.size(); ++g) {
    if (!is_root_[g]) continue;
    if (index < gathers_[g]->host_count()) return gathers_[g]->report(index);
    index -= gathers_[g]->host_count();
  }
  return {};
}

}  // namespace gradplane::aggregate
