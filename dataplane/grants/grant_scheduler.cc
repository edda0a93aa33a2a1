// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/grants/grant_scheduler.h"

#include <algorithm>
#include <cmath>

#include "dataplane/base/assert.h"
#include "dataplane/model/limits.h"

namespace gradplane::grants {
namespace {

/// The most blocks that one peer can have queued: every block of every open round.
constexpr std::uint32_t kMaxWaiting = kRoundSlots * kMaxBlocksPerRound;
/// A packet that is older than this is not late: its sender counts from the beginning again.
constexpr std::int32_t kMaxLate = 1 << 16;
/// How far a sender may count beyond its credit: unscheduled blocks and probes, none of which need
/// have arrived.
constexpr std::uint32_t kMaxBeyondCredit = 2 * GrantWindow::kMaxBlocks;
static_assert(kMaxBeyondCredit < INT32_MAX / 4 && kMaxWaiting < INT32_MAX / 4 &&
                  kMaxLate < INT32_MAX / 4,
              "differences keep a sign");

/// A source that starts later than the others of its job catches up by at most this.
constexpr std::uint64_t kCatchUpBlocks = 1024;

constexpr Duration kMinReorder = Duration::us(200);
constexpr int kReorderPart = 4;  // divides the round trip, as in Flow
/// An epoch lasts at least a round trip, and until this many blocks are known, so that it can tell
/// the share of marks.
constexpr std::uint32_t kEpochBlocks = 32;

double bounded(double value, double min, double max, double otherwise) {
  return std::isnan(value) ? otherwise : std::clamp(value, min, max);
}

}  // namespace

GrantScheduler::GrantScheduler(const Limits& limits)
    : window_({.link_bits_per_second = limits.link_bits_per_second,
               .buffer_bytes = limits.buffer_bytes,
               .block_wire_bytes = limits.block_wire_bytes}),
      sources_(limits.max_sources),
      timers_(limits.max_sources) {
  jobs_.reserve(limits.max_jobs);
  for (std::size_t i = 0; i < limits.max_jobs; ++i) jobs_.emplace_back(limits.max_sources);
  free_.reserve(limits.max_sources);
  for (std::size_t i = limits.max_sources; i > 0; --i) {
    free_.push_back(SourceIndex::from_index(i - 1));
  }
}

std::optional<SourceIndex> GrantScheduler::add_source(JobIndex job) {
  if (free_.empty() || job.index() >= jobs_.size()) return std::nullopt;
  const SourceIndex source = free_.back();
  free_.pop_back();
  SourceState& s = sources_[source.index()];
  s = SourceState{};
  s.in_use = true;
  s.job = job;
  ++job_of(s).sources;
  return source;
}

void GrantScheduler::remove_source(SourceIndex source) {
  SourceState& s = at(source);
  set_active(s, false);
  JobState& job = job_of(s);
  job.ready.erase(source);
  timers_.erase(source);
  outstanding_ -= s.counted;
  job.outstanding -= s.counted;
  s.in_use = false;
  free_.push_back(source);
  if (--job.sources == 0) {
    job.weight = 1;
    job.progress = 0;
    job.path = {};
    job.min_round_trip = {};
    job.virtual_time = virtual_time_;  // the next job with this index must not pay for this one
  }
}

GrantScheduler::SourceState& GrantScheduler::at(SourceIndex source) {
  GP_ASSERT(source.index() < sources_.size() && sources_[source.index()].in_use);
  return sources_[source.index()];
}

const GrantScheduler::SourceState& GrantScheduler::at(SourceIndex source) const {
  GP_ASSERT(source.index() < sources_.size() && sources_[source.index()].in_use);
  return sources_[source.index()];
}

void GrantScheduler::set_mltcp(double slope, double intercept) {
  const MltcpFunction usual;
  mltcp_.slope = bounded(slope, 0, kMaxJobWeight, usual.slope);
  mltcp_.intercept = bounded(intercept, 1 / kMaxJobWeight, kMaxJobWeight, usual.intercept);
}

void GrantScheduler::set_job_weight(JobIndex job, double weight) {
  GP_ASSERT(job.index() < jobs_.size());
  jobs_[job.index()].weight = bounded(weight, 1 / kMaxJobWeight, kMaxJobWeight, 1);
}

void GrantScheduler::set_job_progress(JobIndex job, double ratio) {
  GP_ASSERT(job.index() < jobs_.size());
  jobs_[job.index()].progress = bounded(ratio, 0, 1, 0);
}

void GrantScheduler::on_data(SourceIndex source, std::uint32_t sent_blocks,
                             std::uint32_t waiting_blocks, std::size_t wire_bytes,
                             bool congestion_experienced, Instant now) {
  SourceState& s = at(source);
  now_ = std::max(now_, now);
  s.heard_at = now;
  s.reminders = 0;
  if (now >= s.withdrawn_until) s.withdrawn = false;
  if (!s.heard) restart_count(s, sent_blocks);
  s.heard = true;
  count_arrival(s, congestion_experienced);
  if (is_implausible(s, sent_blocks)) {
    ++counts_.implausible;
    restart_count(s, sent_blocks);
  }
  const auto ahead = static_cast<std::int32_t>(sent_blocks - s.sent);
  if (ahead < 0) {
    take_late(s, wire_bytes, now);
    update(source, now);
    return;
  }
  if (!s.active) join_busy_period(s, now);
  take(s, static_cast<std::uint32_t>(ahead), wire_bytes, now);
  s.demand_end = s.sent + std::min(waiting_blocks, kMaxWaiting);
  set_active(s, s.demand_end != s.sent);
  update(source, now);
  end_epoch_if_over(now);
}

/// Counts the packet as the `sent_blocks`-th of its sender, whatever was known of the sender. It
/// may have begun to count before this source was added. The credit that it held is forgotten.
void GrantScheduler::restart_count(SourceState& s, std::uint32_t sent_blocks) {
  s.sent = s.total = s.demand_end = sent_blocks - 1;
  s.expired = s.missing = 0;
  s.cap.forget();
}

bool GrantScheduler::is_implausible(const SourceState& s, std::uint32_t sent_blocks) {
  const auto ahead = static_cast<std::int32_t>(sent_blocks - s.sent);
  return ahead > static_cast<std::int32_t>(s.total - s.sent + kMaxBeyondCredit) ||
         ahead < -kMaxLate;
}

void GrantScheduler::count_arrival(SourceState& s, bool marked) {
  s.cap.on_block(marked);
  job_of(s).path.on_arrived(marked);
}

/// The sender has sent `ahead` more packets, one of which has just arrived. 0: an old packet has
/// arrived again.
void GrantScheduler::take(SourceState& s, std::uint32_t ahead, std::size_t wire_bytes,
                          Instant now) {
  const std::uint32_t unused = s.total - s.sent;
  if (ahead == 0 || ahead > unused) {
    window_.on_other(wire_bytes, now);
  } else {
    window_.on_granted_arrived(wire_bytes);
  }
  if (ahead == 0) return;
  // Only credit can be outstanding, so a count that jumps takes nothing from others.
  const std::uint32_t skipped = std::min(ahead - 1, unused - s.expired);
  if (skipped > 0) {
    if (s.missing == 0) {
      s.missing_until = now + std::max(round_trip_of(s) / kReorderPart, kMinReorder);
    }
    s.missing += skipped;
  }
  s.expired -= std::min(s.expired, ahead);
  s.sent += ahead;
  s.credit_at = now;
  if (ahead > unused) {
    s.total = s.sent;
    count_served(s, ahead - unused);
  }
  // This is an estimate, because the block that arrived may be an unscheduled one.
  const auto guess = s.cap.round_trip_sample(s.sent, now);
  if (guess && !s.rtt_measured) s.round_trip.add(*guess, now);
  if (s.round_trip.known()) note_round_trip(s);
  const std::uint32_t window = max_in_flight(job_of(s), now);
  const Duration in_time = s.round_trip.known()
                               ? std::max(window_.drain_time(window), s.round_trip.min() * 3 / 2)
                               : Duration::max();
  s.cap.on_used(s.sent, in_time, window, now);
}

/// A packet arrived that was sent before others that have arrived. A missing block was granted, so
/// its grant is already charged to the link.
void GrantScheduler::take_late(SourceState& s, std::size_t wire_bytes, Instant now) {
  if (s.missing > 0) {
    --s.missing;
  } else {
    window_.on_other(wire_bytes, now);
  }
}

/// A source sends that had nothing to send before.
void GrantScheduler::join_busy_period(SourceState& s, Instant now) {
  JobState& job = job_of(s);
  if (job.active == 0) {
    ++job.busy_period;
    job.served_blocks = 0;
    job.virtual_time = std::max(job.virtual_time, min_virtual_time());
  }
  if (s.busy_period != job.busy_period) s.served_blocks = 0;
  s.busy_period = job.busy_period;
  if (job.served_blocks > kCatchUpBlocks) {
    s.served_blocks = std::max(s.served_blocks, job.served_blocks - kCatchUpBlocks);
  }
  s.credit_at = now;
}

void GrantScheduler::set_active(SourceState& s, bool active) {
  if (s.active == active) return;
  s.active = active;
  active ? ++active_ : --active_;
  active ? ++job_of(s).active : --job_of(s).active;
}

void GrantScheduler::on_rtt(SourceIndex source, Duration rtt) {
  SourceState& s = at(source);
  if (!s.rtt_measured) s.round_trip = {};  // estimates are too short if blocks need no grant
  s.rtt_measured = true;
  s.round_trip.add(rtt, now_);
  note_round_trip(s);
}

void GrantScheduler::note_round_trip(const SourceState& s) {
  window_.on_round_trip(s.round_trip);
  Duration& mean = job_of(s).min_round_trip;
  const Duration sample = s.round_trip.min();
  mean = mean == Duration() ? sample : GrantWindow::mean_over_blocks(mean, sample);
}

/// All jobs slow down only for signs that every job sees. A sign that only one job sees comes from
/// its own paths, where its sources' caps react, or it is false.
void GrantScheduler::end_epoch_if_over(Instant now) {
  if (!window_.epoch_over(now)) return;
  std::uint32_t blocks = 0;
  for (const JobState& job : jobs_) blocks += job.path.known();
  if (blocks < kEpochBlocks) return;
  PathSigns signs = {.mark_cut = 1, .loss_cut = 1, .has_loss_verdict = false, .lossy = false};
  bool light_losses = false;
  for (JobState& job : jobs_) {
    if (job.path.known() == 0) continue;
    signs.lossy = signs.lossy || job.path.lossy();
    signs.mark_cut = std::min(signs.mark_cut, job.path.take_mark_cut());
    if (window_.losses_are_old(now)) job.path.forget_losses();
    const double loss_cut = job.path.loss_cut();
    signs.loss_cut = std::min(signs.loss_cut, loss_cut);
    light_losses = light_losses || (job.path.has_loss_verdict() && loss_cut == 0);
  }
  // One job that loses little is enough for the pace to rise: another may send too few blocks for
  // a verdict for as long as it likes.
  signs.has_loss_verdict = signs.loss_cut > 0 || light_losses;
  if (signs.has_loss_verdict) {
    for (JobState& job : jobs_) job.path.forget_losses();
  }
  window_.end_epoch(signs, now);
}

void GrantScheduler::withdraw(SourceIndex source, Instant now) {
  SourceState& s = at(source);
  now_ = std::max(now_, now);
  s.demand_end = s.sent;
  s.missing = 0;
  s.expired = s.total - s.sent;
  s.withdrawn = true;
  s.withdrawn_until = now + round_trip_of(s);
  s.cap.forget();
  set_active(s, false);
  update(source, now);
}

GrantScheduler::Stats GrantScheduler::stats(Instant now) const {
  Stats stats = counts_;
  stats.outstanding_blocks = outstanding_;
  stats.window_used = unscheduled_used(now) + credit_used(now);
  stats.pace = window_.pace();
  stats.pressed = window_.pressed(now);
  stats.round_trip = window_.round_trip();
  stats.limit = limit_;
  return stats;
}

GrantScheduler::SourceView GrantScheduler::view(SourceIndex source) const {
  const SourceState& s = at(source);
  return {.job = s.job,
          .total_blocks = s.total,
          .sent_blocks = s.sent,
          .outstanding_blocks = s.outstanding(),
          .wanted_blocks = s.wanted(),
          .cap_blocks = s.cap.blocks(),
          .job_progress = job_of(s).progress};
}

}  // namespace gradplane::grants
