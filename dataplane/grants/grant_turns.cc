// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Whose turn it is, and what happens when nothing comes.
#include <algorithm>
#include <limits>

#include "dataplane/grants/grant_scheduler.h"

namespace gradplane::grants {
namespace {

/// Credit that is not used for two loops, and no sooner than this, is not outstanding any more.
constexpr Duration kLeastLife = Duration::ms(5);
constexpr int kLifeLoops = 2;
/// Of a source whose loop is not known: longer than any path's.
constexpr Duration kFirstLife = Duration::ms(500);
/// A source that has credit is reminded of it after a loop of silence, and a quarter of one, so
/// that jitter alone does not double the grants; then after twice as long, and so on.
constexpr Duration kLeastSilence = Duration::us(200);
constexpr std::uint8_t kMostDoublings = 10;
/// Blocks of a grant where sources go on without: as many as an ack is about.
constexpr std::uint32_t kStandingBatch = 16;
/// ... but no larger part of what may be on its way, or it would never fit.
constexpr std::uint32_t kBatchesOfWindow = 4;
/// Demand of a source that is silent for so long is gone. A slow share sends a block in this time.
constexpr int kDemandLoops = 4;
constexpr Duration kLeastDemandLife = Duration::ms(100);
/// With Policy::kStrict: the standing weight of a job whose turn it is not.
constexpr double kPassedOver = 1.0 / 1024;
/// Credit that is given to a silent source beyond what it let expire.
constexpr std::uint32_t kMostExpired = 1U << 16;

}  // namespace

std::uint32_t GrantScheduler::SourceState::usable() const {
  return std::min(total - seen - expired, target - seen);
}

std::uint32_t GrantScheduler::SourceState::wanted() const {
  const auto more = static_cast<std::int32_t>(target - total);
  return more > 0 ? static_cast<std::uint32_t>(more) : 0;
}

std::uint32_t GrantScheduler::cap_of(const SourceState& s) {
  return s.withdrawn ? std::min(kGrantBatch, s.cap.blocks()) : s.cap.blocks();
}

std::uint32_t GrantScheduler::room(const SourceState& s) {
  const std::uint32_t cap = cap_of(s);
  const std::uint32_t taken = s.outstanding();
  return cap > taken ? cap - taken : 0;
}

/// Large grants where the window has several for everybody, single blocks where it has not.
std::uint32_t GrantScheduler::batch(const JobState& job, Instant now) const {
  if (standing_unscheduled_) {
    return std::clamp<std::uint32_t>(most_of(job, now) / kBatchesOfWindow, 1, kStandingBatch);
  }
  const auto senders = static_cast<std::uint32_t>(std::max<std::size_t>(active_, 1));
  return std::clamp<std::uint32_t>(window_.blocks(now) / (2 * senders), 1, kGrantBatch);
}

GrantScheduler::Standing GrantScheduler::standing() const {
  Standing all;
  for (const JobState& job : jobs_) {
    if (job.active > 0) all.most_progress = std::max(all.most_progress, job.progress);
  }
  for (const JobState& job : jobs_) {
    all.weights += job.sources > 0 ? standing_weight(job, all) : 0;
  }
  return all;
}

/// A job that has nothing to send will begin an iteration: what it may have on its way then is what
/// one may that has no progress yet.
double GrantScheduler::standing_weight(const JobState& job, const Standing& all) const {
  const double progress = job.active > 0 ? job.progress : 0;
  if (policy_ == Policy::kStrict) return progress < all.most_progress ? kPassedOver : 1;
  return weight_at(job, progress);
}

std::uint32_t GrantScheduler::most_of(const JobState& job, Instant now) const {
  return window_.most_blocks(job.least_loop, now);
}

double GrantScheduler::unscheduled_of(const JobState& job, const Standing& all, Instant now) const {
  const double share = standing_weight(job, all) / all.weights;
  return std::max(1.0, share * most_of(job, now) / static_cast<double>(job.sources));
}

std::uint32_t GrantScheduler::unscheduled_for(Source source) const {
  return static_cast<std::uint32_t>(unscheduled_of(jobs_[sources_[source].job], standing(), now_));
}

/// Whether so much more of `job` may be outstanding. Each job's blocks count as a part of what may
/// be on its way over paths as long as its own.
bool GrantScheduler::fits(const JobState& job, std::uint32_t blocks, Instant now) const {
  if (!standing_unscheduled_) return outstanding_ + blocks <= window_.blocks(now);
  const Standing all = standing();
  double used = static_cast<double>(blocks) / most_of(job, now);
  for (const JobState& other : jobs_) {
    if (other.sources == 0) continue;
    const double standing = static_cast<double>(other.active) * unscheduled_of(other, all, now);
    used += (other.outstanding + standing) / most_of(other, now);
  }
  return used <= 1;
}

/// Where a job begins that joins those which send.
double GrantScheduler::least_virtual_time() const {
  double least = std::numeric_limits<double>::infinity();
  for (const JobState& job : jobs_) {
    if (job.active > 0) least = std::min(least, job.virtual_time);
  }
  return least < std::numeric_limits<double>::infinity() ? std::max(least, virtual_time_)
                                                         : virtual_time_;
}

Duration GrantScheduler::loop_of(const SourceState& s) const {
  return s.loop.known() ? s.loop.smoothed() : window_.loop();
}

void GrantScheduler::settle(Source source, Instant now) {
  SourceState& s = sources_[source];
  const std::uint32_t outstanding = s.outstanding();
  JobState& job = jobs_[s.job];
  outstanding_ += outstanding - s.counted;
  job.outstanding += outstanding - s.counted;
  s.counted = outstanding;

  const std::uint32_t wanted = s.wanted();
  // Who is silent, or has not used all of what expired, gets no more than a reminder's block.
  const bool responsive = s.unheard == 0 && s.expired == 0;
  if (wanted > 0 && responsive && room(s) >= std::min({wanted, batch(job, now), cap_of(s)})) {
    if (!job.ready.contains(source)) {
      if (job.ready.empty()) job.virtual_time = std::max(job.virtual_time, arrived_time());
      job.ready.set(source, {s.in_burst, ++sequence_});
    }
  } else {
    job.ready.erase(source);
  }
  const Instant at = due(s);
  if (at == Instant::never()) return;
  if (!timers_.contains(source) || at < timers_.key_of(source)) timers_.set(source, at);
}

Instant GrantScheduler::expires_at(const SourceState& s) const {
  if (s.usable() == 0) return Instant::never();
  if (!s.loop.known()) return s.credit_at + kFirstLife;
  return s.credit_at + std::max(loop_of(s) * kLifeLoops, kLeastLife);
}

Instant GrantScheduler::remind_at(const SourceState& s) const {
  if (!s.active || s.total == s.seen) return Instant::never();
  const Duration silence = std::max(loop_of(s) * 5 / 4, kLeastSilence);
  return std::max(s.heard_at, s.told_at) + silence * (std::int64_t{1} << s.unheard);
}

/// Who has demand and may always send something is heard. A round that closed, or a node that died,
/// takes its demand with it, and else its job would count as one that sends for ever.
Instant GrantScheduler::forget_at(const SourceState& s) const {
  if (!standing_unscheduled_ || !s.active) return Instant::never();
  return s.heard_at + std::max(loop_of(s) * kDemandLoops, kLeastDemandLife);
}

Instant GrantScheduler::due(const SourceState& s) const {
  const Instant missed = s.missing > 0 ? s.missing_until : Instant::never();
  return std::min({missed, expires_at(s), remind_at(s), forget_at(s)});
}

std::optional<GrantScheduler::Grant> GrantScheduler::run_timers(Instant now) {
  while (!timers_.empty() && timers_.top_key() <= now) {
    const Source source = timers_.top();
    timers_.erase(source);
    SourceState& s = sources_[source];
    if (s.missing > 0 && s.missing_until <= now) {
      counts_.lost_blocks += s.missing;
      jobs_[s.job].path.on_lost(s.missing);
      s.cap.on_lost(s.missing);
      s.missing = 0;
    }
    if (expires_at(s) <= now) {
      counts_.expired_blocks += s.usable();
      s.cap.on_expired(s.usable());
      s.expired = s.total - s.seen;
    }
    if (forget_at(s) <= now) {
      s.target = s.seen;
      set_active(s, false);
    }
    const bool silent = remind_at(s) <= now;
    if (silent) remind(s, now);
    settle(source, now);
    if (silent) return Grant{source, s.total};
  }
  return std::nullopt;
}

/// Says the last total again, and a block more: if all that it had was sent and lost, only a packet
/// more can show it.
void GrantScheduler::remind(SourceState& s, Instant now) {
  ++counts_.keep_alives;
  s.told_at = now;
  s.unheard = std::min<std::uint8_t>(s.unheard + 1, kMostDoublings);
  if (s.expired > 0) {
    if (s.expired >= kMostExpired) return;
    ++s.expired;
    ++s.total;
  } else if (s.wanted() > 0 && outstanding_ < window_.blocks(now)) {
    add_credit(s, 1, now);
  }
}

void GrantScheduler::add_credit(SourceState& s, std::uint32_t blocks, Instant now) {
  if (s.usable() == 0) s.credit_at = now;
  s.told_at = now;
  s.total += blocks;
  s.cap.on_granted(blocks, s.total, s.total - s.seen, now);
  window_.on_granted(blocks, now);
  JobState& job = jobs_[s.job];
  virtual_time_ = std::max(virtual_time_, job.virtual_time);
  count(s, blocks);
  job.floor = s.in_burst;
  counts_.granted_blocks += blocks;
}

void GrantScheduler::count(SourceState& s, std::uint32_t blocks) {
  s.in_burst += blocks;
  JobState& job = jobs_[s.job];
  job.virtual_time += blocks / weight_of(job);
}

double GrantScheduler::weight_at(const JobState& job, double progress) const {
  if (policy_ == Policy::kWeighted) return job.weight;
  if (policy_ == Policy::kMltcp) return job.weight * mltcp_.at(progress);
  return 1;
}

/// The virtual time of what has come, while virtual_time_ is that of what was granted. A job that
/// had nothing to be granted for a moment, since all it has is under way, is no further behind.
double GrantScheduler::arrived_time() const {
  double weights = 0;
  for (const JobState& job : jobs_) weights += job.active > 0 ? weight_of(job) : 0;
  return weights > 0 ? virtual_time_ - outstanding_ / weights : virtual_time_;
}

std::size_t GrantScheduler::next_job() const {
  std::size_t best = jobs_.size();
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const JobState& job = jobs_[i];
    if (job.ready.empty()) continue;
    if (best == jobs_.size()) {
      best = i;
    } else if (policy_ == Policy::kStrict && job.progress != jobs_[best].progress) {
      if (job.progress > jobs_[best].progress) best = i;
    } else if (job.virtual_time < jobs_[best].virtual_time) {
      best = i;
    }
  }
  return best;
}

std::uint32_t GrantScheduler::next_blocks(Source source, Instant now) const {
  const SourceState& s = sources_[source];
  return std::min({batch(jobs_[s.job], now), s.wanted(), room(s)});
}

std::optional<GrantScheduler::Grant> GrantScheduler::next_grant(Instant now) {
  now_ = std::max(now_, now);
  if (const auto reminder = run_timers(now)) return reminder;
  const std::size_t turn = next_job();
  if (turn == jobs_.size()) {
    limit_ = active_ > 0 ? Limit::kSenders : Limit::kNoDemand;
    return std::nullopt;
  }
  JobState& job = jobs_[turn];
  const Source source = job.ready.top();
  const std::uint32_t blocks = next_blocks(source, now);
  if (!fits(job, blocks, now)) {
    window_.on_full();
    limit_ = Limit::kWindow;
    return std::nullopt;
  }
  if (window_.free_at() > now) {
    limit_ = window_.pressed(now)   ? Limit::kPressure
             : window_.pace() < 1.0 ? Limit::kMarks
                                    : Limit::kPacing;
    return std::nullopt;
  }
  SourceState& s = sources_[source];
  add_credit(s, blocks, now);
  job.ready.erase(source);
  settle(source, now);
  return Grant{source, s.total};
}

Instant GrantScheduler::next_time(Instant now) const {
  Instant at = timers_.empty() ? Instant::never() : timers_.top_key();
  const std::size_t turn = next_job();
  if (turn < jobs_.size()) {
    const std::uint32_t blocks = next_blocks(jobs_[turn].ready.top(), now);
    if (fits(jobs_[turn], blocks, now)) {
      at = std::min(at, window_.free_at());
    } else if (window_.pressed(now)) {
      at = std::min(at, window_.pressed_until());
    }
  }
  return std::max(at, now);
}

}  // namespace gradplane::grants
