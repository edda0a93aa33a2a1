// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/base/indexed_heap.h"
#include "dataplane/base/time.h"
#include "dataplane/grants/grant_window.h"
#include "dataplane/grants/source_cap.h"
#include "dataplane/model/grant_settings.h"
#include "dataplane/model/ids.h"

namespace gradplane::grants {

/// A peer of one job that sends to this node. Indices are dense and are reused.
using SourceIndex = StrongId<struct SourceIndexTag>;
/// A job in which other nodes send to this node; its index is below Limits::max_jobs.
using JobIndex = StrongId<struct JobIndexTag>;

/// Decides how much each source may send to this node. A node has one scheduler for all its jobs.
///
/// Every source may always have some unscheduled blocks in flight, which need no grant:
/// unscheduled_blocks(). While all sources that have demand send, these blocks share the link, and
/// nothing is granted. The part of the window that silent sources leave free is granted to sources
/// that have said that more blocks wait. Credit is cumulative, modulo 2^32, so that the next grant
/// repairs a lost one: besides its unscheduled blocks, a source may send while it has sent fewer
/// than `total_blocks` data packets to this node in its job.
///
/// Outstanding credit was granted, and has neither arrived nor been given up. Together with the
/// unscheduled blocks of all sources that have demand, it stays within the credit window
/// (GrantWindow). Among the sources of a job, the one that was served the fewest blocks in the
/// job's busy period goes first, so blocks are served in block-major order. Among jobs the policy
/// decides.
///
/// A call costs O(log sources), and next_grant() and unscheduled_blocks() cost O(jobs) more. Only
/// the constructor allocates. One thread.
class GrantScheduler {
 public:
  struct Limits {
    std::uint64_t link_bits_per_second = 0;  // of the downlink; 0: unknown, then nothing is paced
    std::size_t buffer_bytes = 0;  // before the downlink; 0: GrantWindow::kAssumedBufferBytes
    std::size_t block_wire_bytes = 1500;  // of a full block
    std::size_t max_sources = 0;
    std::size_t max_jobs = 0;
  };
  explicit GrantScheduler(const Limits& limits);

  using Policy = GrantPolicy;

  /// Nothing if there are max_sources already, or if `job` is not below max_jobs.
  std::optional<SourceIndex> add_source(JobIndex job);
  void remove_source(SourceIndex source);

  void set_policy(Policy policy) { policy_ = policy; }
  void set_mltcp(double slope, double intercept);
  /// `weight` is bounded to [1/kMaxJobWeight, kMaxJobWeight]. When the last source of a job is
  /// removed, the job's weight is 1 and its progress 0 again.
  void set_job_weight(JobIndex job, double weight);
  /// The share of this iteration's blocks that has arrived or was written off, from 0 to 1.
  void set_job_progress(JobIndex job, double ratio);

  /// A data packet of `source` arrived. `sent_blocks` counts the data packets that the sender has
  /// sent to this node in this job, including this one, modulo 2^32; a count that was seen before
  /// brings no block. `waiting_blocks` counts the blocks that it still has queued for this node,
  /// granted or not.
  void on_data(SourceIndex source, std::uint32_t sent_blocks, std::uint32_t waiting_blocks,
               std::size_t wire_bytes, bool congestion_experienced, Instant now);
  /// Other traffic on the same downlink also uses the link.
  void on_other(std::size_t wire_bytes, Instant now) { window_.on_other(wire_bytes, now); }
  /// A round trip that the sender measured. Until there is one, on_data() estimates it from the
  /// time between a grant and the data that needed it.
  void on_rtt(SourceIndex source, Duration rtt);
  /// The receive ring is nearly full, or packets were missed.
  void on_ring_pressure(Instant now) { window_.on_pressure(now); }
  /// Nothing that `source` has queued is wanted any more, so its credit returns. When it has demand
  /// again, it first uses the credit that it still holds. Within a round trip, a packet's demand
  /// may be older than this call, so the source gets at most one small grant until then.
  void withdraw(SourceIndex source, Instant now);

  struct Grant {
    SourceIndex source;
    std::uint32_t total_blocks = 0;  // cumulative
  };
  /// The next grant to send; call it until there is none. A repeated total is a keep-alive: the
  /// source has credit and is silent, so its grant may be lost.
  std::optional<Grant> next_grant(Instant now);
  /// When next_grant() may have a grant if nothing arrives before; never() if it waits for nothing.
  Instant next_time(Instant now) const;

  /// How many blocks `source` may always have in flight without a grant; at least 1. The policy
  /// divides the window among the jobs that have sources, and each job divides its part evenly.
  std::uint32_t unscheduled_blocks(SourceIndex source) const;

  /// What kept next_grant() from granting more when it was last asked.
  enum class Limit : std::uint8_t {
    kNoDemand,
    kSenders,  // every source that wants more has credit left, is silent, or is at its cap
    kWindow,
    kPacing,
    kMarks,     // pacing below the link's rate, because of marks or heavy losses
    kPressure,  // pacing at half the rate, because of the receive ring
  };
  struct Stats {
    std::uint32_t outstanding_blocks = 0;
    double window_used = 0;  // by credit and unscheduled blocks; grants keep it at most 1
    double pace = 1;         // relative to 0.99 of the link's rate
    bool pressed = false;    // the pace is halved because the receive ring overflowed
    Duration round_trip;     // RTTc
    Limit limit = Limit::kNoDemand;
    std::uint64_t granted_blocks = 0;
    std::uint64_t keep_alives = 0;
    std::uint64_t expired_blocks = 0;  // credit that was not used in time
    std::uint64_t lost_blocks = 0;     // sent, as later packets prove, but never arrived
    std::uint64_t implausible = 0;     // packets with an impossible count
  };
  Stats stats(Instant now) const;
  struct SourceView {
    JobIndex job;
    std::uint32_t total_blocks = 0;
    std::uint32_t sent_blocks = 0;
    std::uint32_t outstanding_blocks = 0;
    std::uint32_t wanted_blocks = 0;  // queued at the source and not granted
    std::uint32_t cap_blocks = 0;     // the cap on its outstanding credit
    double job_progress = 0;          // from set_job_progress()
  };
  SourceView view(SourceIndex source) const;

 private:
  static constexpr Instant kLongAgo = Instant::from_ns(INT64_MIN / 4);
  struct SourceState {
    bool in_use = false;
    bool heard = false;          // a packet from it has arrived
    bool active = false;         // has blocks to send, granted or not
    bool withdrawn = false;      // and no packet has come since that is certainly newer
    bool rtt_measured = false;   // true if the sender has measured it: on_rtt()
    std::uint8_t reminders = 0;  // reminders since a packet last arrived
    JobIndex job;
    std::uint32_t sent = 0;         // the newest sent_blocks
    std::uint32_t total = 0;        // granted; sent <= total
    std::uint32_t demand_end = 0;   // what `sent` will be when its queue is empty
    std::uint32_t expired = 0;      // the part of total - sent that is no longer outstanding
    std::uint32_t missing = 0;      // blocks below `sent` that may still arrive late
    std::uint32_t counted = 0;      // its part of outstanding_
    std::uint32_t busy_period = 0;  // the busy period of its job in which it last began to send
    // Blocks in that period that were granted, or sent without a grant.
    std::uint64_t served_blocks = 0;
    Instant heard_at = kLongAgo;
    Instant granted_at = kLongAgo;  // or last reminded
    Instant credit_at = kLongAgo;   // when it last used credit, or had none
    Instant missing_until = kLongAgo;
    Instant withdrawn_until = kLongAgo;
    SourceCap cap;
    RoundTrip round_trip;

    /// Blocks that were granted and are expected to come.
    std::uint32_t usable() const;
    std::uint32_t outstanding() const { return usable() + missing; }
    /// Blocks that are queued and not granted.
    std::uint32_t wanted() const;
  };
  /// The order of a job's sources: fewest served blocks first, then the longest wait.
  struct Turn {
    std::uint64_t served_blocks = 0;
    std::uint64_t sequence = 0;
    auto operator<=>(const Turn&) const = default;
  };
  struct JobState {
    explicit JobState(std::size_t max_sources) : ready(max_sources) {}
    IndexedHeap<Turn, SourceIndex> ready;  // sources that may be granted more
    std::size_t sources = 0;
    std::size_t active = 0;
    std::uint32_t busy_period = 0;    // counts how often the job began to send after an idle time
    std::uint64_t served_blocks = 0;  // served blocks of the source that was served most
    PathCounts path;
    std::uint32_t outstanding = 0;
    // RTT0 of its own sources only, so that no job enlarges another's window.
    Duration min_round_trip;
    double virtual_time = 0;  // served blocks divided by weight
    double weight = 1;
    double progress = 0;
  };

  SourceState& at(SourceIndex source);
  const SourceState& at(SourceIndex source) const;
  JobState& job_of(const SourceState& s) { return jobs_[s.job.index()]; }
  const JobState& job_of(const SourceState& s) const { return jobs_[s.job.index()]; }

  static std::uint32_t cap_of(const SourceState& s);
  static std::uint32_t room(const SourceState& s);
  std::uint32_t batch(const JobState& job, Instant now) const;
  /// Values from which the jobs' parts of the window follow.
  struct Shares {
    double max_progress = 0;
    double weights = 0;  // of all jobs that have sources
  };
  Shares shares() const;
  double share_weight(const JobState& job, const Shares& shares) const;
  std::uint32_t max_in_flight(const JobState& job, Instant now) const;
  double unscheduled_of(const JobState& job, const Shares& shares, Instant now) const;
  double unscheduled_used(Instant now) const;
  double credit_used(Instant now) const;
  bool fits(const JobState& job, std::uint32_t blocks, double unscheduled, Instant now) const;
  Duration round_trip_of(const SourceState& s) const;
  void note_round_trip(const SourceState& s);
  void count_arrival(SourceState& s, bool marked);
  void take(SourceState& s, std::uint32_t ahead, std::size_t wire_bytes, Instant now);
  void take_late(SourceState& s, std::size_t wire_bytes, Instant now);
  static void restart_count(SourceState& s, std::uint32_t sent_blocks);
  static bool is_implausible(const SourceState& s, std::uint32_t sent_blocks);
  void join_busy_period(SourceState& s, Instant now);
  void add_credit(SourceState& s, std::uint32_t blocks, Instant now);
  /// Counts blocks that a source may send, or sent without a grant, as served to it and its job.
  void count_served(SourceState& s, std::uint32_t blocks);
  void set_active(SourceState& s, bool active);
  void end_epoch_if_over(Instant now);
  /// Call it after any change of a source: updates the source's part of the sum, its turn and its
  /// timer.
  void update(SourceIndex source, Instant now);

  Instant expires_at(const SourceState& s) const;
  Instant remind_at(const SourceState& s) const;
  Instant forget_at(const SourceState& s) const;
  Instant due(const SourceState& s) const;
  std::optional<Grant> run_timers(Instant now);
  void remind(SourceState& s, Instant now);

  double weight_at(const JobState& job, double progress) const;
  double weight_of(const JobState& job) const { return weight_at(job, job.progress); }
  double arrived_time() const;
  double min_virtual_time() const;
  /// The job that may get the next grant; jobs_.size() if there is none.
  std::size_t next_job() const;
  /// The grant that the first source in a job's turn order could get.
  struct Offer {
    SourceIndex source;
    std::uint32_t blocks = 0;
    bool fits = false;
  };
  Offer next_offer(const JobState& job, Instant now) const;

  GrantWindow window_;
  std::vector<SourceState> sources_;
  std::vector<SourceIndex> free_;
  std::vector<JobState> jobs_;
  IndexedHeap<Instant, SourceIndex> timers_;  // not later than due(), which is checked then
  Policy policy_ = Policy::kFair;
  MltcpFunction mltcp_;
  std::size_t active_ = 0;  // sources
  std::uint32_t outstanding_ = 0;
  double virtual_time_ = 0;  // virtual time of the job that was served last
  std::uint64_t sequence_ = 0;
  Instant now_;  // the latest time of any call
  Limit limit_ = Limit::kNoDemand;
  Stats counts_;
};

}  // namespace gradplane::grants
