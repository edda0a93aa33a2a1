// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How long a gathering waits for its sources.
#include <algorithm>

#include "dataplane/aggregate/gather.h"
#include "dataplane/model/loss_bounds.h"

namespace gradplane::aggregate {
namespace {

/// Half round trips until a lost block is missed, sent again and here: the time that LTP's first
/// threshold grants in addition to the transfer itself.
constexpr std::int64_t kRepairHalfRoundTrips = 3;
/// Rows of parity come within this part of a round trip or not at all, because their sender sends
/// them only if nothing else waits.
constexpr std::int64_t kRowsShare = 4;
/// The growth of the time of a source that had not even sent everything when its time was over.
constexpr std::int64_t kOverdueGrowth = 2;

}  // namespace

Duration Gather::repair_time(Duration rtt) {
  return rtt * kRepairHalfRoundTrips / 2;
}

/// A row directly follows the last block or the row before it.
void Gather::await_rows(Source& source, Instant now) {
  source.rows_until = now + source.rtt / kRowsShare;
}

Duration Gather::share_of(Duration whole) const {
  return Duration::ns(static_cast<std::int64_t>(static_cast<double>(whole.count_ns()) * share_));
}

Duration Gather::slack() const {
  return share_of(limits_.slack.value_or(learned_slack_.value()));
}

/// How long a source may push new blocks because it gathers itself, including a repair of the last
/// one. 0 for other sources.
Duration Gather::time_below(const Source& source) {
  if (source.patience <= Duration{}) return {};
  return source.patience + repair_time(source.rtt);
}

/// The round may be overdue here, because it is below the floor or lacks a critical block. Then the
/// patience grows, and the parent learns so from the next push.
Gather::Patience Gather::patience(Instant now) const {
  const std::optional<Duration> age = deadline_age();
  if (!allows_below() || !age) return {};
  const Duration until_now = all_begun_at_ <= now ? now - all_begun_at_ : Duration{};
  return {.until_close = std::max({*age, longest_below_, until_now}),
          .transfer = *largest_threshold_};
}

/// How long a source may be silent. Between two of its blocks there may be a repair.
Duration Gather::silence_limit(const Source& source) const {
  return share_of(limits_.absent_after) + time_below(source) + repair_time(source.rtt);
}

/// Whether a source is absent: it has sent nothing for the limit, either no first block of the
/// round or no further one. Before its first block it may have to wait for a result of this node,
/// so a round trip is added.
bool Gather::is_absent(const Source& source, Instant now) const {
  if (!source.knows_bounds || limits_.absent_after <= Duration{}) return false;
  const Duration limit = silence_limit(source);
  if (source.started) return source.bounded && now - source.latest_at >= limit;
  return first_arrival_ <= now && now - first_arrival_ >= limit + source.rtt;
}

bool Gather::is_spared(std::size_t index, Instant heard, Instant now) const {
  const Source& source = sources_[index];
  if (complete(source) || !is_absent(source, now)) return false;
  const bool is_relay = source.host_count > 1;
  if (source.started && is_relay && source.patience <= Duration{}) return false;
  return now - heard < silence_limit(source);
}

/// LTP's Early Close, for one source that is not complete.
bool Gather::may_miss(const Source& source, Instant now) const {
  if (source.critical_missing > 0 || source.over_bound > 0) return false;
  if (!is_above_floor(source)) return false;
  const std::optional<Duration> threshold = source.threshold.value();
  if (!threshold) return false;
  const Duration age = now - source.first_at;
  // Blocks that have not been sent yet are late, not lost, so the round waits for them a little
  // longer.
  if (source.sent_all) return age >= *threshold && now >= source.rows_until;
  return age >= std::max(*threshold + slack(), time_below(source));
}

std::optional<Duration> Gather::largest_threshold() const {
  std::optional<Duration> largest;
  for (const Source& source : sources_) {
    if (!source.takes_part) continue;
    const std::optional<Duration> threshold = source.threshold.value();
    if (threshold && (!largest || *threshold > *largest)) largest = threshold;
  }
  return largest;
}

/// The age at which a round stops waiting for its bounds. A source over a bound must have had the
/// time for a repair.
std::optional<Duration> Gather::deadline_age() const {
  if (!largest_threshold_) return std::nullopt;
  return *largest_threshold_ + std::max(slack(), repair_time(longest_rtt_));
}

bool Gather::deadline_passed(const Source& source, Instant now) const {
  if (source.critical_missing > 0 || !is_above_floor(source)) return false;
  const std::optional<Duration> limit = deadline_age();
  if (!limit) return false;
  Duration below = time_below(source);
  if (source.sent_all) below = std::min(below, *source.sent_all + repair_time(source.rtt));
  return now - source.first_at >= std::max(*limit, below);
}

/// How long the source would have taken if it had lost only what is worth a repair.
Duration Gather::completion_of(const Source& source, bool complete, Instant now) {
  if (source.sent_all) {
    const Duration repair = repair_time(source.rtt);
    const Duration with_repair =
        *source.sent_all + std::min(repair, *source.sent_all / kRepairShare);
    return complete ? std::min(source.latest_at - source.first_at, with_repair) : with_repair;
  }
  if (complete) return source.latest_at - source.first_at;
  return (now - source.first_at) * kOverdueGrowth;
}

}  // namespace gradplane::aggregate
