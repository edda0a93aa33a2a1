// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/core/gather.h"

#include <algorithm>

#include "dataplane/base/assert.h"

namespace gradplane::core {
namespace {

/// Round trips, in halves, that a lost block needs to be missed, sent again and to arrive: what
/// LTP's first threshold grants beside the transfer itself.
constexpr std::int64_t kRepairHalfRoundTrips = 3;
/// A source that had not even sent everything when its time was over was given too little of it.
constexpr std::int64_t kOverdueGrowth = 2;

/// Puts an entry where it belongs among the first `count` of `worst`, which lack most; the last
/// makes room.
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

Gather::Gather(std::vector<std::uint16_t> nodes, const TensorMap& map,
               const std::vector<std::atomic<float>>& bounds, const CloseLimits& limits)
    : map_(map),
      bounds_(bounds),
      limits_(limits),
      sources_(nodes.size()),
      totals_(std::make_unique<Totals[]>(nodes.size())),
      critical_(map.block_count()),
      allowance_(map.size()),
      missing_(nodes.size() * map.size()) {
  for (std::size_t s = 0; s < nodes.size(); ++s) totals_[s].node = nodes[s];
}

void Gather::open(BlockRange range) {
  GP_ASSERT(!open_);
  open_ = true;
  if (rounds_ <= limits_.strict_rounds) ++rounds_;
  range_ = range;
  missing_blocks_ = range.size() * static_cast<std::uint32_t>(sources_.size());
  first_arrival_ = Instant::never();
  first_tensor_ = map_.first_in(range);
  end_tensor_ = map_.end_in(range);
  std::uint32_t over_bound = 0;
  for (std::size_t t = first_tensor_; t < end_tensor_; ++t) {
    const float bound = bounds_[t].load(std::memory_order_relaxed);
    allowance_[t] = map_.allowance_in(t, bound, range);
    const std::uint32_t blocks = map_.blocks_in(t, range);
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      missing_[s * map_.size() + t] = static_cast<std::uint16_t>(blocks);
    }
    over_bound += blocks > allowance_[t] ? 1 : 0;
  }
  const std::uint32_t critical = find_critical();
  for (Source& source : sources_) {
    source.started = source.bounded = false;
    source.sent_all.reset();
    source.arrived = 0;
    source.critical_missing = critical;
    source.over_bound = over_bound;
  }
}

/// Marks the blocks of the round that nobody may miss; how many they are.
std::uint32_t Gather::find_critical() {
  critical_.reset(map_.block_count());
  for (std::uint32_t b = range_.begin; b < range_.end; ++b) {
    if (!map_.is_covered(b)) critical_.set(b);
  }
  for (std::size_t t = first_tensor_; t < end_tensor_; ++t) {
    if (map_.allowance(t, bounds_[t].load(std::memory_order_relaxed)) > 0) continue;
    const BlockRange own = map_.blocks(t);
    for (std::uint32_t b = std::max(own.begin, range_.begin); b < std::min(own.end, range_.end);
         ++b) {
      critical_.set(b);
    }
  }
  return static_cast<std::uint32_t>(critical_.count());
}

void Gather::on_block(std::size_t index, const Arrival& arrival, Instant now) {
  GP_ASSERT(open_ && range_.contains(arrival.block));
  Source& source = sources_[index];
  if (!source.started) {
    source.started = true;
    source.first_at = now;
    first_arrival_ = std::min(first_arrival_, now);
  }
  last_arrival_ = source.latest_at = now;
  source.bounded = source.bounded || arrival.bounded;
  source.knows_bounds = source.knows_bounds || arrival.bounded;
  source.rtt = arrival.rtt;
  if (arrival.last && !source.sent_all) source.sent_all = now - source.first_at;
  ++source.arrived;
  --missing_blocks_;
  if (critical_.test(arrival.block)) --source.critical_missing;
  map_.for_each_in(arrival.block, [&](std::size_t t) {
    const std::uint16_t missing = missing_[index * map_.size() + t]--;
    if (missing == allowance_[t] + 1) --source.over_bound;
  });
}

bool Gather::is_absent(const Source& source, Instant now) const {
  return !source.started && source.knows_bounds && limits_.absent_after > Duration{} &&
         first_arrival_ <= now && now - first_arrival_ >= limits_.absent_after;
}

/// Early Close, for one source that is not complete.
bool Gather::may_miss(const Source& source, Instant now) const {
  if (source.critical_missing > 0 || source.over_bound > 0) return false;
  if (!is_above_floor(source)) return false;
  const std::optional<Duration> threshold = source.threshold.value();
  if (!threshold) return false;
  const Duration age = now - source.first_at;
  // What is still on its way for the first time is late, not lost: it is waited for a little more.
  return age >= *threshold && (source.sent_all || age >= *threshold + slack());
}

std::optional<CloseReason> Gather::may_close(Instant now) const {
  if (!open_ || rounds_ <= limits_.strict_rounds) return std::nullopt;
  bool any_absent = false;
  bool early = true;
  bool deadline = true;
  const std::optional<Duration> limit = deadline_age();
  for (const Source& source : sources_) {
    if (complete(source)) continue;
    if (!source.started) {
      if (!is_absent(source, now)) return std::nullopt;
      any_absent = true;
      continue;
    }
    if (!source.bounded) return std::nullopt;
    early = early && may_miss(source, now);
    deadline = deadline && source.critical_missing == 0 && is_above_floor(source) && limit &&
               now - source.first_at >= *limit;
  }
  if (!early && !deadline) return std::nullopt;
  if (any_absent) return CloseReason::kAbsent;
  return early ? CloseReason::kEarly : CloseReason::kDeadline;
}

std::optional<Duration> Gather::largest_threshold() const {
  std::optional<Duration> largest;
  for (const Source& source : sources_) {
    const std::optional<Duration> threshold = source.threshold.value();
    if (threshold && (!largest || *threshold > *largest)) largest = threshold;
  }
  return largest;
}

/// The age at which a round stops waiting for its bounds. Whoever is over a bound must have had the
/// time for the repair that the bound asks for.
std::optional<Duration> Gather::deadline_age() const {
  const std::optional<Duration> largest = largest_threshold();
  if (!largest) return std::nullopt;
  Duration repair;
  for (const Source& source : sources_) repair = std::max(repair, source.rtt);
  return *largest + std::max(slack(), repair * kRepairHalfRoundTrips / 2);
}

/// How long the source would have taken had it lost only what is worth a repair.
Duration Gather::completion_of(const Source& source, bool complete, Instant now) {
  if (source.sent_all) {
    const Duration repair = source.rtt * kRepairHalfRoundTrips / 2;
    const Duration with_repair =
        *source.sent_all + std::min(repair, *source.sent_all / kRepairShare);
    return complete ? std::min(source.latest_at - source.first_at, with_repair) : with_repair;
  }
  if (complete) return source.latest_at - source.first_at;
  return (now - source.first_at) * kOverdueGrowth;
}

void Gather::close(CloseReason reason, Instant now) {
  GP_ASSERT(open_);
  open_ = false;
  const std::optional<Duration> largest = largest_threshold();
  Duration longest;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    Source& source = sources_[s];
    count_up(totals_[s].expected, range_.size());
    count_up(totals_[s].missing, range_.size() - source.arrived);
    if (!source.started) continue;
    longest = std::max(longest, now - source.first_at);
    // Cut off while it was still sending: the path is slower than it was.
    if (!complete(source) && !source.sent_all) source.threshold = {};
    const Duration completion = completion_of(source, complete(source), now);
    longest = std::max(longest, completion);
    source.threshold.add(completion);
    totals_[s].threshold_ns.store(source.threshold.value().value_or(Duration{}).count_ns(),
                                  std::memory_order_relaxed);
  }
  if (largest && reason != CloseReason::kAbsent) learned_slack_.add(longest - *largest);
}

RoundReport Gather::last_round(CloseReason reason, Instant closed_at) const {
  RoundReport report;
  report.reason = reason;
  report.duration = closed_at - first_arrival_;
  report.blocks = range_.size();
  report.source_count = static_cast<std::uint32_t>(sources_.size());
  report.missing_blocks = missing_blocks_;
  if (missing_blocks_ == 0) return report;
  name_sources(report);
  name_tensors(report);
  return report;
}

void Gather::name_sources(RoundReport& report) const {
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    if (complete(sources_[s])) continue;
    insert_worst(report.sources, report.lacking_sources++,
                 {totals_[s].node, range_.size() - sources_[s].arrived});
  }
}

void Gather::name_tensors(RoundReport& report) const {
  for (std::size_t t = first_tensor_; t < end_tensor_; ++t) {
    std::uint32_t missing = 0;
    for (std::size_t s = 0; s < sources_.size(); ++s) missing += missing_of(s, t);
    if (missing == 0) continue;
    const std::uint32_t expected = expected_of(t) * report.source_count;
    insert_worst(report.tensors, report.lacking_tensors++,
                 {static_cast<std::uint32_t>(t), missing, expected});
    report.other_tensors_missing_blocks += missing;
  }
  for (const RoundReport::Tensor& named : report.tensors) {
    report.other_tensors_missing_blocks -= named.missing_blocks;
  }
}

SourceReport Gather::report(std::size_t source) const {
  const Totals& totals = totals_[source];
  return {.node = totals.node,
          .missing_blocks = totals.missing.load(std::memory_order_relaxed),
          .expected_blocks = totals.expected.load(std::memory_order_relaxed),
          .threshold_ns = totals.threshold_ns.load(std::memory_order_relaxed)};
}

}  // namespace gradplane::core
