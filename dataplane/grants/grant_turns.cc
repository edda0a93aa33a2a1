// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Which source gets the next grant, and what happens when nothing arrives.
#include <algorithm>
#include <limits>

#include "dataplane/grants/grant_scheduler.h"

namespace gradplane::grants {
namespace {

/// Credit that is not used for two round trips, and at least for this time, expires.
constexpr Duration kMinCreditLife = Duration::ms(5);
constexpr int kCreditLifeRoundTrips = 2;
/// The lifetime of a source's credit while its round trip is not known: longer than any path's.
constexpr Duration kFirstCreditLife = Duration::ms(500);
/// A source that has credit is reminded of it after one and a quarter round trips of silence, so
/// that jitter alone does not double the grants. The time doubles with each further reminder.
constexpr Duration kMinSilence = Duration::us(200);
constexpr std::uint8_t kMaxDoublings = 10;
/// A grant has at most as many blocks as make an ack due. It also has at most this part of the
/// window that unscheduled blocks leave free, or it might never fit.
constexpr std::uint32_t kMaxGrantBlocks = 16;
constexpr std::uint32_t kMinGrantsOfWindow = 4;
/// The most credit that a withdrawn source may have outstanding until newer demand arrives.
constexpr std::uint32_t kMaxWithdrawnBlocks = 4;
/// The demand of a source is forgotten after this silence. Even a slow source sends a block in this
/// time.
constexpr int kDemandRoundTrips = 4;
constexpr Duration kMinDemandLife = Duration::ms(100);
/// With Policy::kStrict, the share of a job while another one is ahead of it.
constexpr double kPassedOver = 1.0 / 1024;
/// The most credit that a silent source is given in addition to the credit that it let expire.
constexpr std::uint32_t kMaxExpired = 1U << 16;

}  // namespace

std::uint32_t GrantScheduler::SourceState::usable() const {
  return std::min(total - sent - expired, demand_end - sent);
}

std::uint32_t GrantScheduler::SourceState::wanted() const {
  const auto more = static_cast<std::int32_t>(demand_end - total);
  return more > 0 ? static_cast<std::uint32_t>(more) : 0;
}

std::uint32_t GrantScheduler::cap_of(const SourceState& s) {
  return s.withdrawn ? std::min(kMaxWithdrawnBlocks, s.cap.blocks()) : s.cap.blocks();
}

std::uint32_t GrantScheduler::room(const SourceState& s) {
  const std::uint32_t cap = cap_of(s);
  const std::uint32_t taken = s.outstanding();
  return cap > taken ? cap - taken : 0;
}

std::uint32_t GrantScheduler::batch(const JobState& job, Instant now) const {
  return std::clamp<std::uint32_t>(max_in_flight(job, now) / kMinGrantsOfWindow, 1,
                                   kMaxGrantBlocks);
}

GrantScheduler::Shares GrantScheduler::shares() const {
  Shares shares;
  for (const JobState& job : jobs_) {
    if (job.active > 0) shares.max_progress = std::max(shares.max_progress, job.progress);
  }
  for (const JobState& job : jobs_) {
    shares.weights += job.sources > 0 ? share_weight(job, shares) : 0;
  }
  return shares;
}

/// A job that has nothing to send will begin an iteration next. Until then it has the share of a
/// job that has made no progress.
double GrantScheduler::share_weight(const JobState& job, const Shares& shares) const {
  const double progress = job.active > 0 ? job.progress : 0;
  if (policy_ == Policy::kStrict) return progress < shares.max_progress ? kPassedOver : 1;
  return weight_at(job, progress);
}

std::uint32_t GrantScheduler::max_in_flight(const JobState& job, Instant now) const {
  return window_.max_in_flight_blocks(job.min_round_trip, now);
}

/// How many blocks each source of `job` may have in flight without a grant.
double GrantScheduler::unscheduled_of(const JobState& job, const Shares& shares,
                                      Instant now) const {
  const double share = share_weight(job, shares) / shares.weights;
  return std::max(1.0, share * max_in_flight(job, now) / static_cast<double>(job.sources));
}

std::uint32_t GrantScheduler::unscheduled_blocks(SourceIndex source) const {
  return static_cast<std::uint32_t>(unscheduled_of(job_of(at(source)), shares(), now_));
}

/// The part of the window that the unscheduled blocks of all sources that have demand take. Each
/// job's blocks count relative to the window for paths as long as its own.
double GrantScheduler::unscheduled_used(Instant now) const {
  const Shares all = shares();
  double used = 0;
  for (const JobState& job : jobs_) {
    if (job.active == 0) continue;
    used +=
        static_cast<double>(job.active) * unscheduled_of(job, all, now) / max_in_flight(job, now);
  }
  return used;
}

/// The part of the window that outstanding credit takes.
double GrantScheduler::credit_used(Instant now) const {
  double used = 0;
  for (const JobState& job : jobs_) {
    if (job.outstanding > 0) used += static_cast<double>(job.outstanding) / max_in_flight(job, now);
  }
  return used;
}

/// Whether `job` may be granted this many blocks in addition to what unscheduled_used() returned.
bool GrantScheduler::fits(const JobState& job, std::uint32_t blocks, double unscheduled,
                          Instant now) const {
  const double more = static_cast<double>(blocks) / max_in_flight(job, now);
  return unscheduled + credit_used(now) + more <= 1;
}

/// The virtual time at which a job joins those that send.
double GrantScheduler::min_virtual_time() const {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double min = kNone;
  for (const JobState& job : jobs_) {
    if (job.active > 0) min = std::min(min, job.virtual_time);
  }
  return min < kNone ? std::max(min, virtual_time_) : virtual_time_;
}

Duration GrantScheduler::round_trip_of(const SourceState& s) const {
  return s.round_trip.known() ? s.round_trip.smoothed() : window_.round_trip();
}

void GrantScheduler::update(SourceIndex source, Instant now) {
  SourceState& s = at(source);
  const std::uint32_t outstanding = s.outstanding();
  JobState& job = job_of(s);
  outstanding_ += outstanding - s.counted;
  job.outstanding += outstanding - s.counted;
  s.counted = outstanding;

  const std::uint32_t wanted = s.wanted();
  // A source that is silent, or holds expired credit, gets no more than a reminder's block.
  const bool responsive = s.reminders == 0 && s.expired == 0;
  if (wanted > 0 && responsive && room(s) >= std::min({wanted, batch(job, now), cap_of(s)})) {
    if (job.ready.empty()) job.virtual_time = std::max(job.virtual_time, arrived_time());
    const bool waits = job.ready.contains(source);
    // Blocks that it sent without grants since it began to wait count, too.
    job.ready.set(source,
                  {s.served_blocks, waits ? job.ready.key_of(source).sequence : ++sequence_});
  } else {
    job.ready.erase(source);
  }
  const Instant due_at = due(s);
  if (due_at == Instant::never()) return;
  if (!timers_.contains(source) || due_at < timers_.key_of(source)) timers_.set(source, due_at);
}

Instant GrantScheduler::expires_at(const SourceState& s) const {
  if (s.usable() == 0) return Instant::never();
  if (!s.round_trip.known()) return s.credit_at + kFirstCreditLife;
  return s.credit_at + std::max(round_trip_of(s) * kCreditLifeRoundTrips, kMinCreditLife);
}

Instant GrantScheduler::remind_at(const SourceState& s) const {
  if (!s.active || s.total == s.sent) return Instant::never();
  const Duration silence = std::max(round_trip_of(s) * 5 / 4, kMinSilence);
  return std::max(s.heard_at, s.granted_at) + silence * (std::int64_t{1} << s.reminders);
}

/// A source that has demand can always send an unscheduled block, so it is heard. If it is silent,
/// its round has closed or its node has died. Without this limit its job would seem to send for
/// ever.
Instant GrantScheduler::forget_at(const SourceState& s) const {
  if (!s.active) return Instant::never();
  return s.heard_at + std::max(round_trip_of(s) * kDemandRoundTrips, kMinDemandLife);
}

Instant GrantScheduler::due(const SourceState& s) const {
  const Instant missed = s.missing > 0 ? s.missing_until : Instant::never();
  return std::min({missed, expires_at(s), remind_at(s), forget_at(s)});
}

std::optional<GrantScheduler::Grant> GrantScheduler::run_timers(Instant now) {
  while (!timers_.empty() && timers_.top_key() <= now) {
    const SourceIndex source = timers_.top();
    timers_.erase(source);
    SourceState& s = at(source);
    if (s.missing > 0 && s.missing_until <= now) {
      counts_.lost_blocks += s.missing;
      job_of(s).path.on_lost(s.missing);
      s.cap.on_lost(s.missing);
      s.missing = 0;
    }
    if (expires_at(s) <= now) {
      counts_.expired_blocks += s.usable();
      s.cap.on_expired(s.usable());
      s.expired = s.total - s.sent;
    }
    if (forget_at(s) <= now) {
      s.demand_end = s.sent;
      set_active(s, false);
    }
    const bool silent = remind_at(s) <= now;
    if (silent) remind(s, now);
    update(source, now);
    if (silent) return Grant{source, s.total};
  }
  return std::nullopt;
}

/// Repeats the last total with one block more. If the source used all its credit and every packet
/// was lost, only another packet can show that.
void GrantScheduler::remind(SourceState& s, Instant now) {
  ++counts_.keep_alives;
  s.granted_at = now;
  s.reminders = std::min<std::uint8_t>(s.reminders + 1, kMaxDoublings);
  if (s.expired > 0) {
    if (s.expired >= kMaxExpired) return;
    ++s.expired;
    ++s.total;
  } else if (s.wanted() > 0 && fits(job_of(s), 1, unscheduled_used(now), now)) {
    add_credit(s, 1, now);
  }
}

void GrantScheduler::add_credit(SourceState& s, std::uint32_t blocks, Instant now) {
  if (s.usable() == 0) s.credit_at = now;
  s.granted_at = now;
  s.total += blocks;
  s.cap.on_granted(blocks, s.total, s.total - s.sent, now);
  window_.on_granted(blocks, now);
  JobState& job = job_of(s);
  virtual_time_ = std::max(virtual_time_, job.virtual_time);
  count_served(s, blocks);
  counts_.granted_blocks += blocks;
}

void GrantScheduler::count_served(SourceState& s, std::uint32_t blocks) {
  s.served_blocks += blocks;
  JobState& job = job_of(s);
  job.served_blocks = std::max(job.served_blocks, s.served_blocks);
  job.virtual_time += blocks / weight_of(job);
}

double GrantScheduler::weight_at(const JobState& job, double progress) const {
  if (policy_ == Policy::kWeighted) return job.weight;
  if (policy_ == Policy::kMltcp) return job.weight * mltcp_.at(progress);
  return 1;
}

/// The virtual time of what has arrived; virtual_time_ is that of what was granted. A job whose
/// whole demand was granted needs no grant for a moment, and must not fall back further than this
/// time because of it.
double GrantScheduler::arrived_time() const {
  double weights = 0;
  for (const JobState& job : jobs_) weights += job.active > 0 ? weight_of(job) : 0;
  return weights > 0 ? virtual_time_ - outstanding_ / weights : virtual_time_;
}

std::size_t GrantScheduler::next_job() const {
  std::size_t best = jobs_.size();
  // Shortcut: a node without grants asks with each packet.
  if (free_.size() == sources_.size()) return best;
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

GrantScheduler::Offer GrantScheduler::next_offer(const JobState& job, Instant now) const {
  const SourceIndex source = job.ready.top();
  const SourceState& s = at(source);
  const double unscheduled = unscheduled_used(now);
  const double grantable = (1 - unscheduled) * max_in_flight(job, now);
  const auto part = static_cast<std::uint32_t>(std::max(grantable / kMinGrantsOfWindow, 1.0));
  const std::uint32_t blocks = std::min({kMaxGrantBlocks, part, s.wanted(), room(s)});
  return {source, blocks, fits(job, blocks, unscheduled, now)};
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
  const Offer offer = next_offer(job, now);
  if (!offer.fits) {
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
  SourceState& s = at(offer.source);
  add_credit(s, offer.blocks, now);
  job.ready.erase(offer.source);
  update(offer.source, now);
  return Grant{offer.source, s.total};
}

Instant GrantScheduler::next_time(Instant now) const {
  Instant at = timers_.empty() ? Instant::never() : timers_.top_key();
  const std::size_t turn = next_job();
  if (turn < jobs_.size()) {
    if (next_offer(jobs_[turn], now).fits) {
      at = std::min(at, window_.free_at());
    } else if (window_.pressed(now)) {
      at = std::min(at, window_.pressed_until());
    }
  }
  return std::max(at, now);
}

}  // namespace gradplane::grants
