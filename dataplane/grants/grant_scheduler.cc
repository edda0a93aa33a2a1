// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/grants/grant_scheduler.h"

#include <algorithm>
#include <cmath>

#include "dataplane/base/assert.h"
#include "dataplane/model/limits.h"

namespace gradplane::grants {
namespace {

/// What one peer can have queued: every block of every open round.
constexpr std::uint32_t kMostWaiting = kRoundSlots * kMaxBlocksPerRound;
/// A packet that is later than this is no late packet: its sender has begun to count anew.
constexpr std::int32_t kMostLate = 1 << 16;
/// What a sender may count beyond its credit while nothing of it comes through: probes.
constexpr std::uint32_t kMostBeyondCredit = 4096;
static_assert(kMostWaiting < INT32_MAX / 4 && kMostLate < INT32_MAX / 4, "differences keep a sign");

/// A source that starts later than the others of its job catches up by at most this.
constexpr std::uint64_t kCatchUpBlocks = 1024;
constexpr double kMostWeight = kMaxJobWeight;

constexpr Duration kLeastReorder = Duration::us(200);
constexpr int kReorderPart = 4;  // of the loop, as in Flow
/// An epoch is a round trip, and no shorter than it takes to tell a share.
constexpr std::uint32_t kEpochBlocks = 32;

double bounded(double value, double least, double most, double otherwise) {
  return std::isnan(value) ? otherwise : std::clamp(value, least, most);
}

}  // namespace

GrantScheduler::GrantScheduler(const Limits& limits)
    : window_({.link_bits_per_second = limits.link_bits_per_second,
               .buffer_bytes = limits.buffer_bytes,
               .block_wire_bytes = limits.block_wire_bytes}),
      standing_unscheduled_(limits.standing_unscheduled),
      sources_(limits.max_sources),
      timers_(limits.max_sources) {
  jobs_.reserve(limits.max_jobs);
  for (std::size_t i = 0; i < limits.max_jobs; ++i) jobs_.emplace_back(limits.max_sources);
  free_.reserve(limits.max_sources);
  for (std::size_t i = limits.max_sources; i > 0; --i) free_.push_back(static_cast<Source>(i - 1));
}

std::optional<GrantScheduler::Source> GrantScheduler::add_source(std::uint16_t job) {
  if (free_.empty() || job >= jobs_.size()) return std::nullopt;
  const Source source = free_.back();
  free_.pop_back();
  sources_[source] = SourceState{};
  sources_[source].in_use = true;
  sources_[source].job = job;
  ++jobs_[job].sources;
  ++used_;
  return source;
}

void GrantScheduler::remove_source(Source source) {
  SourceState& s = at(source);
  set_active(s, false);
  JobState& job = jobs_[s.job];
  job.ready.erase(source);
  timers_.erase(source);
  outstanding_ -= s.counted;
  job.outstanding -= s.counted;
  s.in_use = false;
  free_.push_back(source);
  --used_;
  if (--job.sources == 0) {
    job.weight = 1;
    job.progress = 0;
    job.path = {};
    job.least_loop = {};
    job.virtual_time = virtual_time_;  // the next one pays for nothing that this one had
  }
}

GrantScheduler::SourceState& GrantScheduler::at(Source source) {
  GP_ASSERT(source < sources_.size() && sources_[source].in_use);
  return sources_[source];
}

void GrantScheduler::set_mltcp(double slope, double intercept) {
  const MltcpFunction usual;
  mltcp_.slope = bounded(slope, 0, kMostWeight, usual.slope);
  mltcp_.intercept = bounded(intercept, 1 / kMostWeight, kMostWeight, usual.intercept);
}

void GrantScheduler::set_job_weight(std::uint16_t job, double weight) {
  GP_ASSERT(job < jobs_.size());
  jobs_[job].weight = bounded(weight, 1 / kMostWeight, kMostWeight, 1);
}

void GrantScheduler::set_job_progress(std::uint16_t job, double ratio) {
  GP_ASSERT(job < jobs_.size());
  jobs_[job].progress = bounded(ratio, 0, 1, 0);
}

void GrantScheduler::on_data(Source source, std::uint32_t sent_blocks, std::uint32_t waiting_blocks,
                             std::size_t wire_bytes, bool congestion_experienced, Instant now) {
  SourceState& s = at(source);
  now_ = std::max(now_, now);
  s.heard_at = now;
  s.unheard = 0;
  if (now >= s.quiet_until) s.withdrawn = false;
  // A sender that is older than this source began to count before.
  if (!s.known && sent_blocks > kMostBeyondCredit) {
    s.seen = s.total = s.target = s.unscheduled_until = sent_blocks - 1;
  }
  s.known = true;
  const auto ahead = static_cast<std::int32_t>(sent_blocks - s.seen);
  const auto most = static_cast<std::int32_t>(s.total - s.seen + kMostBeyondCredit);
  if (ahead > most || ahead < -kMostLate) {
    ++counts_.implausible;
    s.seen = s.total = s.unscheduled_until = sent_blocks;
    s.expired = s.missing = 0;
    s.cap.forget();
    window_.on_other(wire_bytes, now);
  } else if (ahead < 0) {
    if (s.missing > 0) --s.missing;
    settle(source, now);
    return;
  } else {
    const auto more = static_cast<std::uint32_t>(ahead);
    if (!s.active) begin_burst(s, more > 0, std::min(waiting_blocks, kMostWaiting) + more, now);
    take(s, more, wire_bytes, now);
  }
  // That unscheduled blocks queue is no news: it is what the buffer was lent to them for.
  const auto granted = static_cast<std::int32_t>(sent_blocks - s.unscheduled_until) > 0;
  count_arrival(s, congestion_experienced && granted);
  s.target = s.seen + std::min(waiting_blocks, kMostWaiting);
  set_active(s, s.target != s.seen);
  settle(source, now);
  look_at_path(now);
}

void GrantScheduler::count_arrival(SourceState& s, bool marked) {
  s.cap.on_block(marked);
  jobs_[s.job].path.on_arrived(marked);
}

/// `ahead` more packets were sent, of which one has come, or none when it is 0.
void GrantScheduler::take(SourceState& s, std::uint32_t ahead, std::size_t wire_bytes,
                          Instant now) {
  const std::uint32_t unused = s.total - s.seen;
  if (ahead == 0 || ahead > unused) {
    window_.on_other(wire_bytes, now);
  } else {
    window_.on_granted_came(wire_bytes);
  }
  if (ahead == 0) return;
  // Only what was credit is outstanding: a count that jumps takes nothing from others.
  const std::uint32_t skipped = std::min(ahead - 1, unused - s.expired);
  if (skipped > 0) {
    if (s.missing == 0) s.missing_until = now + std::max(loop_of(s) / kReorderPart, kLeastReorder);
    s.missing += skipped;
  }
  s.expired -= std::min(s.expired, ahead);
  s.seen += ahead;
  s.credit_at = now;
  if (ahead > unused) {
    s.total = s.seen;
    count(s, ahead - unused);
  }
  // A sample says little where blocks come that needed no grant.
  const auto loop = s.cap.loop_sample(s.seen, now);
  if (loop && !s.loop_is_told) s.loop.add(*loop, now);
  if (s.loop.known()) note_loop(s);
  const Duration in_time =
      s.loop.known() ? std::max(window_.drain_time(), s.loop.least() * 3 / 2) : Duration::max();
  s.cap.on_used(s.seen, in_time, window_.blocks(now), now);
}

/// A source that had nothing to send sends. That it has credit for its unscheduled blocks is not
/// said to it: it knows.
void GrantScheduler::begin_burst(SourceState& s, bool unscheduled, std::uint32_t demand,
                                 Instant now) {
  JobState& job = jobs_[s.job];
  if (job.active == 0) {
    ++job.burst;
    job.floor = 0;
    job.virtual_time = std::max(job.virtual_time, least_virtual_time());
  }
  if (s.burst != job.burst) s.in_burst = 0;
  s.burst = job.burst;
  if (job.floor > kCatchUpBlocks) s.in_burst = std::max(s.in_burst, job.floor - kCatchUpBlocks);
  const bool counts = unscheduled && !standing_unscheduled_;
  if (counts && !s.withdrawn && now - s.started_at >= loop_of(s)) {
    const std::uint32_t blocks = std::min(window_.unscheduled_blocks(used_), demand);
    const std::uint32_t unused = s.total - s.seen;
    s.unscheduled_until = s.seen + blocks;
    if (blocks > unused) {
      s.total += blocks - unused;
      count(s, blocks - unused);
    }
  }
  s.credit_at = s.started_at = now;
}

void GrantScheduler::set_active(SourceState& s, bool active) {
  if (s.active == active) return;
  s.active = active;
  active ? ++active_ : --active_;
  active ? ++jobs_[s.job].active : --jobs_[s.job].active;
}

void GrantScheduler::on_rtt(Source source, Duration rtt) {
  SourceState& s = at(source);
  if (!s.loop_is_told) s.loop = {};  // what comes without a grant makes loops look short
  s.loop_is_told = true;
  s.loop.add(rtt, now_);
  note_loop(s);
}

void GrantScheduler::note_loop(SourceState& s) {
  window_.on_loop(s.loop);
  Duration& mean = jobs_[s.job].least_loop;
  mean = mean == Duration() ? s.loop.least() : GrantWindow::mean_of_blocks(mean, s.loop.least());
}

/// All slow down only for what every job sees: what one sees alone is on its own paths, where its
/// sources' caps answer, or it is not true.
void GrantScheduler::look_at_path(Instant now) {
  if (!window_.epoch_over(now)) return;
  std::uint32_t blocks = 0;
  for (const JobState& job : jobs_) blocks += job.path.known();
  if (blocks < kEpochBlocks) return;
  PathSigns signs = {.mark_cut = 1, .loss_cut = 1, .tells_losses = true, .lossy = false};
  for (JobState& job : jobs_) {
    if (job.path.known() == 0) continue;
    signs.lossy = signs.lossy || job.path.lossy();
    signs.mark_cut = std::min(signs.mark_cut, job.path.take_mark_cut());
    if (window_.losses_are_old(now)) job.path.forget_losses();
    signs.loss_cut = std::min(signs.loss_cut, job.path.loss_cut());
    signs.tells_losses = signs.tells_losses && job.path.tells_losses();
  }
  if (signs.tells_losses) {
    for (JobState& job : jobs_) job.path.forget_losses();
  }
  window_.end_epoch(signs, now);
}

void GrantScheduler::withdraw(Source source, Instant now) {
  SourceState& s = at(source);
  now_ = std::max(now_, now);
  s.target = s.seen;
  s.missing = 0;
  s.expired = s.total - s.seen;
  s.withdrawn = true;
  s.quiet_until = now + loop_of(s);
  s.cap.forget();
  set_active(s, false);
  settle(source, now);
}

GrantScheduler::Stats GrantScheduler::stats(Instant now) const {
  Stats stats = counts_;
  stats.outstanding_blocks = outstanding_;
  stats.window_blocks = window_.blocks(now);
  stats.pace = window_.pace();
  stats.pressed = window_.pressed(now);
  stats.loop = window_.loop();
  stats.limit = limit_;
  return stats;
}

GrantScheduler::SourceView GrantScheduler::view(Source source) const {
  GP_ASSERT(source < sources_.size() && sources_[source].in_use);
  const SourceState& s = sources_[source];
  return {.job = s.job,
          .total_blocks = s.total,
          .sent_blocks = s.seen,
          .outstanding_blocks = s.outstanding(),
          .wanted_blocks = s.wanted(),
          .cap_blocks = s.cap.blocks(),
          .job_progress = jobs_[s.job].progress};
}

}  // namespace gradplane::grants
