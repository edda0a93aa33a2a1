// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/aggregate/gather.h"

#include <algorithm>

#include "dataplane/base/assert.h"
#include "dataplane/model/loss_bounds.h"

namespace gradplane::aggregate {
Gather::Gather(std::vector<GatherSource> sources, const TensorMap& map,
               const std::vector<std::atomic<float>>& bounds, const CloseLimits& limits,
               double share, const std::vector<bool>* is_exact)
    : map_(map),
      bounds_(bounds),
      limits_(limits),
      share_(share),
      is_exact_(is_exact),
      allowed_(is_exact == nullptr),
      sources_(sources.size()),
      critical_(map.block_count()),
      lacking_(map.block_count()),
      needed_(map.wide_count()),
      arrived_(sources.size() * map.wide_count()) {
  std::vector<std::uint16_t> nodes;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    sources_[s].first_host = hosts_.size();
    sources_[s].host_count = sources[s].hosts.size();
    for (const GatherSource::Member& member : sources[s].hosts) {
      if (host_at_.size() <= member.host) host_at_.resize(member.host + std::size_t{1});
      host_at_[member.host] = static_cast<std::uint16_t>(hosts_.size());
      hosts_.push_back({.source = s, .number = member.host});
      nodes.push_back(member.node);
    }
  }
  totals_ = std::make_unique<Totals[]>(nodes.size());
  for (std::size_t h = 0; h < nodes.size(); ++h) totals_[h].node = nodes[h];
  const bool relays = std::any_of(sources.begin(), sources.end(),
                                  [](const GatherSource& source) { return source.relays; });
  if (!relays) return;
  worst_.resize(sources.size() * map.wide_count());
  lacked_.resize(hosts_.size() * map.wide_count());
}

void Gather::add_to(Memory& memory) const {
  memory.opened = std::max(memory.opened, opened_);
  memory.slack = learned_slack_;
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    Memory::Node& node = memory.nodes[totals_[h].node];
    node.source = &sources_[hosts_[h].source];
    node.threshold_ns = totals_[h].threshold_ns;
    node.knows_bounds = node.knows_bounds || node.source->knows_bounds;
  }
}

/// A source with several hosts takes the times of its last known host. But it counts as carrying
/// what does not enter only if all its hosts do.
void Gather::learn_from(const Memory& memory) {
  opened_ = std::max(opened_, memory.opened);
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    const Memory::Node& node = memory.nodes[totals_[h].node];
    if (node.source == nullptr) continue;
    Source& source = sources_[hosts_[h].source];
    hosts_[h].knew_bounds = hosts_[h].knew_bounds || node.knows_bounds;
    source.rtt = node.source->rtt;
    source.threshold = node.source->threshold;
    totals_[h].threshold_ns.store(node.threshold_ns, std::memory_order_relaxed);
  }
  learned_slack_ = memory.slack;
  for (Source& source : sources_) source.knows_bounds = source.host_count > 0;
  for (const HostState& host : hosts_) {
    Source& source = sources_[host.source];
    source.knows_bounds = source.knows_bounds && host.knew_bounds;
  }
}

void Gather::add_counts(const Gather& other) {
  std::array<std::uint16_t, kMaxNodes> host_of;
  host_of.fill(kMaxNodes);
  for (std::size_t h = 0; h < hosts_.size(); ++h)
    host_of[totals_[h].node] = static_cast<std::uint16_t>(h);
  for (std::size_t before = 0; before < other.hosts_.size(); ++before) {
    const std::uint16_t h = host_of[other.totals_[before].node];
    if (h == kMaxNodes) continue;
    count_up(totals_[h].missing, other.totals_[before].missing);
    count_up(totals_[h].expected, other.totals_[before].expected);
  }
}

float Gather::bound_of(std::size_t tensor) const {
  if (is_exact_ != nullptr && (*is_exact_)[tensor]) return 0;
  return bounds_[tensor].load(std::memory_order_relaxed);
}

/// Decides which sources take part. A source that does not counts as begun and complete. Sets
/// hosts_taking_part_, begun_ and Source::takes_part.
void Gather::let_take_part(HostSet senders) {
  for (Source& source : sources_) source.takes_part = senders.empty();
  for (const HostState& host : hosts_) {
    if (senders.empty() || has_host(senders, host.number)) sources_[host.source].takes_part = true;
  }
  hosts_taking_part_ = begun_ = 0;
  for (const Source& source : sources_) {
    hosts_taking_part_ += source.takes_part ? source.host_count : 0;
    begun_ += source.takes_part ? 0 : 1;
  }
}

void Gather::open(BlockRange range, HostSet senders) {
  GP_ASSERT(!open_);
  open_ = true;
  ++opened_;
  range_ = range;
  let_take_part(senders);
  missing_blocks_ = range.size() * static_cast<std::uint32_t>(hosts_taking_part_);
  awaited_ = range.size() * static_cast<std::uint32_t>(sources_.size() - begun_);
  first_arrival_ = all_begun_at_ = Instant::never();
  std::fill(lacking_.begin() + range.begin, lacking_.begin() + range.end,
            static_cast<std::uint16_t>(hosts_taking_part_));
  for (HostState& host : hosts_) {
    host.lacked = 0;
    host.lacks_critical = false;
  }
  const std::uint32_t critical = find_critical();
  const std::uint32_t over_bound = find_needed();
  largest_threshold_ = largest_threshold();
  longest_rtt_ = longest_below_ = {};
  for (Source& source : sources_) {
    source.started = source.bounded = false;
    source.sent_all.reset();
    source.rows_until = {};
    source.arrived = source.takes_part ? 0 : range.size();
    source.worst_lacked = 0;
    source.critical_missing = source.takes_part ? critical : 0;
    source.over_bound = source.takes_part ? over_bound : 0;
    if (!source.takes_part) continue;
    longest_rtt_ = std::max(longest_rtt_, source.rtt);
    longest_below_ = std::max(longest_below_, time_below(source));
  }
}

/// Marks the blocks of the round that no source may miss, and returns their number.
std::uint32_t Gather::find_critical() {
  critical_.reset(map_.block_count());
  for (std::uint32_t b = range_.begin; b < range_.end; ++b) {
    if (map_.is_always_critical(b)) critical_.set(b);
  }
  for (std::size_t w = map_.first_wide_in(range_); w < map_.end_wide_in(range_); ++w) {
    const std::size_t t = map_.tensor_of_wide(w);
    if (map_.allowance(t, bound_of(t)) > 0) continue;
    const BlockRange own = map_.blocks(t);
    for (std::uint32_t b = std::max(own.begin, range_.begin); b < std::min(own.end, range_.end);
         ++b) {
      critical_.set(b);
    }
  }
  return static_cast<std::uint32_t>(critical_.count());
}

/// Computes how many blocks of each wide tensor must come from every source. Returns the number of
/// tensors with such blocks.
std::uint32_t Gather::find_needed() {
  std::uint32_t over_bound = 0;
  for (std::size_t w = map_.first_wide_in(range_); w < map_.end_wide_in(range_); ++w) {
    const std::size_t t = map_.tensor_of_wide(w);
    const float bound = bound_of(t);
    const std::uint32_t blocks = map_.blocks_in(t, range_);
    needed_[w] = blocks - std::min(blocks, map_.allowance_in(t, bound, range_));
    over_bound += needed_[w] > 0 ? 1 : 0;
  }
  return over_bound;
}

void Gather::on_block(std::size_t index, const Arrival& arrival, Instant now) {
  GP_ASSERT(open_ && range_.contains(arrival.block));
  Source& source = sources_[index];
  if (!source.started) {
    source.started = true;
    source.first_at = now;
    first_arrival_ = std::min(first_arrival_, now);
    if (++begun_ == sources_.size()) all_begun_at_ = now;
  }
  last_arrival_ = source.latest_at = now;
  source.bounded = source.bounded || arrival.bounded;
  source.knows_bounds = source.knows_bounds || arrival.bounded;
  source.rtt = arrival.rtt;
  source.patience = arrival.patience;
  longest_rtt_ = std::max(longest_rtt_, arrival.rtt);
  longest_below_ = std::max(longest_below_, time_below(source));
  if (arrival.last && !source.sent_all) {
    source.sent_all = now - source.first_at;
    if (arrival.has_rows) await_rows(source, now);
  }
  count_arrival(index, arrival);
}

void Gather::on_row(std::size_t index, bool is_last, Instant now) {
  Source& source = sources_[index];
  if (!open_ || !source.started) return;
  if (!source.sent_all) source.sent_all = now - source.first_at;
  source.rows_until = now;
  if (!is_last) await_rows(source, now);
}

void Gather::count_arrival(std::size_t index, const Arrival& arrival) {
  Source& source = sources_[index];
  const std::uint32_t block = arrival.block;
  ++source.arrived;
  --awaited_;
  auto lacked = std::uint32_t{0};
  for_each_host(arrival.missing, [&](std::size_t host) {
    HostState& state = hosts_[host_at_[host]];
    ++lacked;
    state.lacks_critical = state.lacks_critical || critical_.test(block);
    source.worst_lacked = std::max(source.worst_lacked, ++state.lacked);
  });
  const auto came = static_cast<std::uint32_t>(source.host_count) - lacked;
  missing_blocks_ -= came;
  lacking_[block] = static_cast<std::uint16_t>(lacking_[block] - came);
  if (critical_.test(block)) --source.critical_missing;
  map_.for_each_wide_in(block, [&](std::size_t w) {
    // If the worst host lacks one block more, its number of blocks in the sum stays the same.
    if (lacked > 0 && is_worst_again(index, w, arrival.missing)) return;
    if (count(arrived_[index * map_.wide_count() + w]) == needed_[w]) --source.over_bound;
  });
}

/// Counts one block in the current round; a count of an earlier round is void. Returns the new
/// count.
std::uint32_t Gather::count(TensorArrivals& arrivals) const {
  if (arrivals >> kCountBits != opened_) arrivals = opened_ << kCountBits;
  return static_cast<std::uint32_t>(++arrivals - (opened_ << kCountBits));
}

/// Counts a block of a wide tensor that lacks some hosts. True if the source's worst host for this
/// tensor now lacks one block more than before.
bool Gather::is_worst_again(std::size_t index, std::size_t wide, HostSet missing) {
  TensorArrivals& worst = worst_[index * map_.wide_count() + wide];
  if (worst >> kCountBits != opened_) worst = opened_ << kCountBits;
  bool again = false;
  for_each_host(missing, [&](std::size_t host) {
    const std::uint32_t lacked = count(lacked_[host_at_[host] * map_.wide_count() + wide]);
    if ((opened_ << kCountBits) + lacked <= worst) return;
    worst = (opened_ << kCountBits) + lacked;
    again = true;
  });
  return again;
}

CloseReason Gather::reason_when_arrived() const {
  if (missing_blocks_ == 0) return CloseReason::kFull;
  const auto is_over = [this](const Source& source) {
    return source.over_bound > 0 || !is_above_floor(source);
  };
  return std::any_of(sources_.begin(), sources_.end(), is_over) ? CloseReason::kDeadline
                                                                : CloseReason::kEarly;
}

CloseReason Gather::with_absent(CloseReason reason) const {
  const auto absent = [this](const HostState& host) { return was_absent(host); };
  return std::any_of(hosts_.begin(), hosts_.end(), absent) ? CloseReason::kAbsent : reason;
}

bool Gather::was_absent(const HostState& host) const {
  if (host.lacked == 0) return false;
  const auto in_sum = static_cast<float>(range_.size() - host.lacked);
  return host.lacks_critical || host.lacked == sources_[host.source].arrived ||
         in_sum < limits_.floor * static_cast<float>(range_.size());
}

bool Gather::all_bounded() const {
  return std::all_of(sources_.begin(), sources_.end(), [](const Source& source) {
    if (!source.takes_part) return true;
    return source.started ? source.bounded : source.knows_bounds;
  });
}

std::uint32_t Gather::missing_of(std::size_t host) const {
  return range_.size() - sources_[hosts_[host].source].arrived + hosts_[host].lacked;
}

Gather::Readiness Gather::readiness(const Source& source, Instant now, Absence absence) const {
  if (complete(source)) {
    // The source sends nothing more, but a relay may have closed with too little.
    return {.early = source.over_bound == 0 && is_above_floor(source), .deadline = true};
  }
  if (absence == Absence::kCounts && is_absent(source, now))
    return {.early = true, .deadline = true, .absent = true};
  if (!source.started || !source.bounded) return {};
  return {.early = may_miss(source, now), .deadline = deadline_passed(source, now)};
}

std::optional<CloseReason> Gather::may_close(Instant now, Absence absence) {
  if (!allows_below()) return std::nullopt;
  Readiness all{.early = true, .deadline = true};
  // This runs often, and mostly one source holds the round open for long, so that source is checked
  // first.
  for (std::size_t n = 0; n < sources_.size(); ++n) {
    const std::size_t s = (blocker_ + n) % sources_.size();
    const Readiness one = readiness(sources_[s], now, absence);
    all = {.early = all.early && one.early,
           .deadline = all.deadline && one.deadline,
           .absent = all.absent || one.absent};
    if (all.early || all.deadline) continue;
    if (!one.early && !one.deadline) blocker_ = s;
    return std::nullopt;
  }
  if (all.absent) return CloseReason::kAbsent;
  return all.early ? CloseReason::kEarly : CloseReason::kDeadline;
}

void Gather::close(CloseReason reason, Instant now) {
  GP_ASSERT(open_);
  open_ = false;
  Duration longest;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    Source& source = sources_[s];
    if (!source.started) continue;
    // Blocks that it has not sent tell nothing about the time that it needs.
    if (reason == CloseReason::kAbsent && !complete(source) && is_absent(source, now)) continue;
    longest = std::max(longest, now - source.first_at);
    // The source was cut off while it was sending: its path is slower than it was.
    if (!complete(source) && !source.sent_all) source.threshold = {};
    const Duration completion = completion_of(source, complete(source), now);
    longest = std::max(longest, completion);
    source.threshold.add(completion);
  }
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    const Duration threshold = sources_[hosts_[h].source].threshold.value().value_or(Duration{});
    totals_[h].threshold_ns.store(threshold.count_ns(), std::memory_order_relaxed);
    if (!sources_[hosts_[h].source].takes_part) continue;
    count_up(totals_[h].expected, range_.size());
    count_up(totals_[h].missing, missing_of(h));
  }
  if (!largest_threshold_ || reason == CloseReason::kAbsent) return;
  learned_slack_.add(longest - *largest_threshold_);
}

}  // namespace gradplane::aggregate
