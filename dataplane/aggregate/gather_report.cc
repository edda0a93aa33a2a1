// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The report of a gathering about the round that was closed last.
#include <array>

#include "dataplane/aggregate/gather.h"

namespace gradplane::aggregate {
namespace {

/// Inserts an entry into the first `count` of `worst`, which are sorted by missing blocks. If there
/// is no room, the last one is dropped.
template <typename Entry, std::size_t kRoom>
void insert_worst(std::array<Entry, kRoom>& worst, std::size_t count, const Entry& entry) {
  std::size_t at = count;
  if (count >= kRoom) {
    at = kRoom - 1;
    if (entry.missing_blocks <= worst[at].missing_blocks) return;
  }
  for (; at > 0 && worst[at - 1].missing_blocks < entry.missing_blocks; --at) {
    worst[at] = worst[at - 1];
  }
  worst[at] = entry;
}

}  // namespace

RoundReport Gather::last_round(CloseReason reason, Instant closed_at) const {
  RoundReport report;
  report.reason = reason;
  report.duration = closed_at - first_arrival_;
  report.blocks = range_.size();
  report.source_count = static_cast<std::uint32_t>(hosts_taking_part_);
  report.missing_blocks = missing_blocks_;
  if (missing_blocks_ == 0) return report;
  name_sources(report);
  name_tensors(report);
  return report;
}

void Gather::name_sources(RoundReport& report) const {
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    if (missing_of(h) == 0) continue;
    insert_worst(report.sources, report.lacking_sources++, {totals_[h].node, missing_of(h)});
  }
}

void Gather::name_tensors(RoundReport& report) const {
  RoundReport::Tensor lacking;
  const auto name = [&] {
    if (lacking.missing_blocks == 0) return;
    lacking.expected_blocks = map_.blocks_in(lacking.index, range_) * report.source_count;
    insert_worst(report.tensors, report.lacking_tensors++, lacking);
    report.other_tensors_missing_blocks += lacking.missing_blocks;
  };
  for (std::uint32_t b = range_.begin; b < range_.end; ++b) {
    if (lacking_[b] == 0) continue;
    // Tensors come in the order of their numbers. The last one of a block may continue in the next
    // block.
    map_.for_each_in(b, [&](std::size_t t) {
      if (lacking.index != t) {
        name();
        lacking = {.index = static_cast<std::uint32_t>(t)};
      }
      lacking.missing_blocks += lacking_[b];
    });
  }
  name();
  for (const RoundReport::Tensor& named : report.tensors) {
    report.other_tensors_missing_blocks -= named.missing_blocks;
  }
}

SourceReport Gather::report(std::size_t host) const {
  const Totals& totals = totals_[host];
  return {.node = totals.node,
          .missing_blocks = totals.missing.load(std::memory_order_relaxed),
          .expected_blocks = totals.expected.load(std::memory_order_relaxed),
          .threshold_ns = totals.threshold_ns.load(std::memory_order_relaxed)};
}

}  // namespace gradplane::aggregate
