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

namespace gradplane::grants {

/// Who may send to this node, and how much: one per node, over all jobs. Sources are (job, peer)
/// pairs.
///
/// Credit is cumulative, modulo 2^32: a source may send while it has sent fewer than `total_blocks`
/// data packets to us in its job, so that a lost grant is repaired by the next. A source that
/// starts after it had nothing to send may send unscheduled_blocks() without a grant.
///
/// Outstanding is what was granted and has neither come nor been given up; the sum over all sources
/// stays within the window W (GrantWindow), to which only unscheduled blocks may add. Among the
/// sources of a job the one with the fewest blocks granted since the job began to send goes first,
/// which is block-major order; among jobs the policy decides. A call costs O(log sources) and
/// next_grant() O(jobs) more; nothing allocates but the constructor. One thread.
class GrantScheduler {
 public:
  struct Limits {
    std::uint64_t link_bits_per_second = 0;  // downlink; 0: unknown, then nothing is paced
    std::size_t buffer_bytes = 0;            // at the switch before the downlink; 0: learned
    std::size_t block_wire_bytes = 1500;     // of a full block
    /// Every source may always have unscheduled_for() blocks on its way that nobody granted, not
    /// only when it begins: what is granted is what those leave of B + C RTT0. All who have demand
    /// then share the link without a grant, and grants hand on what others leave.
    bool standing_unscheduled = false;
    std::size_t max_sources = 0;
    std::size_t max_jobs = 0;
  };
  explicit GrantScheduler(const Limits& limits);

  using Policy = GrantPolicy;
  using Source = std::uint16_t;  // dense, and used again

  /// Nothing when there are max_sources already, or `job` is not below max_jobs.
  std::optional<Source> add_source(std::uint16_t job);
  void remove_source(Source source);

  void set_policy(Policy policy) { policy_ = policy; }
  void set_mltcp(double slope, double intercept);
  /// Bounded to [1/kMaxJobWeight, kMaxJobWeight]. A job whose last source has gone has weight 1 and
  /// progress 0 again.
  void set_job_weight(std::uint16_t job, double weight);
  /// What has come of this iteration, or was written off, of all that the iteration brings: 0 to 1.
  void set_job_progress(std::uint16_t job, double ratio);

  /// A data packet of `source` came. `sent_blocks` is the sender's count of data packets to us in
  /// this job, with this one, modulo 2^32; the same count again brings no block: a source that has
  /// nothing to send unscheduled announces its demand so. `waiting_blocks` is what it still has
  /// queued for us, granted or not.
  void on_data(Source source, std::uint32_t sent_blocks, std::uint32_t waiting_blocks,
               std::size_t wire_bytes, bool congestion_experienced, Instant now);
  /// Other traffic over the same downlink: it takes its part of the link.
  void on_other(std::size_t wire_bytes, Instant now) { window_.on_other(wire_bytes, now); }
  /// A sample of the loop from granting to the arrival of the data that needed the grant. One per
  /// loop is taken by on_data() itself; this is for who knows more.
  void on_rtt(Source source, Duration rtt);
  /// The receive ring is nearly full, or packets were missed.
  void on_ring_pressure(Instant now) { window_.on_pressure(now); }
  /// Nothing that `source` has queued is wanted any more: its credit returns. When it has demand
  /// again it first uses what it has; until a round trip has passed, what comes may be of before,
  /// and it gets no more than one batch.
  void withdraw(Source source, Instant now);

  struct Grant {
    Source source = 0;
    std::uint32_t total_blocks = 0;  // cumulative
  };
  /// What to tell whom now, repeatedly until there is nothing. The same total again is a
  /// keep-alive: the source has been silent although it has credit, so the grant may be lost.
  std::optional<Grant> next_grant(Instant now);
  /// When next_grant() may have something if nothing comes before; never() when there is nothing to
  /// wait for.
  Instant next_time(Instant now) const;

  /// With standing_unscheduled: what `source` may always have on its way without a grant; at least
  /// 1. Jobs have it as the policy has them share the link, and the sources of a job alike.
  std::uint32_t unscheduled_for(Source source) const;

  /// What each of `senders` that may start at once may send without a grant; at least 1. on_data()
  /// takes it that they were told so with all sources there are.
  std::uint32_t unscheduled_blocks(std::size_t senders) const {
    return window_.unscheduled_blocks(senders);
  }

  /// What kept next_grant() from giving more when it was last asked.
  enum class Limit : std::uint8_t {
    kNoDemand,
    kSenders,  // who wants more has not used what it has
    kWindow,
    kPacing,
    kMarks,     // pacing below the link's rate, because of marks or heavy losses
    kPressure,  // pacing at half, because of the receive ring
  };
  struct Stats {
    std::uint32_t outstanding_blocks = 0;
    std::uint32_t window_blocks = 0;
    double pace = 1;       // of 0.99 of the link
    bool pressed = false;  // half of it, because the receive ring overflowed
    Duration loop;         // RTTc
    Limit limit = Limit::kNoDemand;
    std::uint64_t granted_blocks = 0;
    std::uint64_t keep_alives = 0;
    std::uint64_t expired_blocks = 0;  // credit that was not used in time
    std::uint64_t lost_blocks = 0;     // sent, as later packets show, and not come
    std::uint64_t implausible = 0;     // packets whose count cannot be
  };
  Stats stats(Instant now) const;
  struct SourceView {
    std::uint16_t job = 0;
    std::uint32_t total_blocks = 0;
    std::uint32_t sent_blocks = 0;
    std::uint32_t outstanding_blocks = 0;
    std::uint32_t wanted_blocks = 0;  // not granted yet
    std::uint32_t cap_blocks = 0;     // of what may be outstanding of it
    double job_progress = 0;          // as set_job_progress() said
  };
  SourceView view(Source source) const;

 private:
  static constexpr Instant kLongAgo = Instant::from_ns(INT64_MIN / 4);
  struct SourceState {
    bool in_use = false;
    bool known = false;   // has been heard
    bool active = false;  // has blocks to send, granted or not
    std::uint16_t job = 0;
    std::uint32_t seen = 0;     // the newest sent_blocks
    std::uint32_t total = 0;    // granted; seen <= total
    std::uint32_t target = 0;   // what it will have sent when its queue is empty; seen <= target
    std::uint32_t expired = 0;  // of total - seen, what is no longer outstanding
    std::uint32_t unscheduled_until = 0;  // sent_blocks up to here needed no grant
    std::uint32_t missing = 0;            // of seen, what may still come late
    std::uint32_t counted = 0;            // its part of outstanding_
    std::uint8_t unheard = 0;             // keep-alives since it was last heard
    bool loop_is_told = false;            // by on_rtt()
    bool withdrawn = false;               // and not heard for certain since
    std::uint32_t burst = 0;              // of its job, in which it last began to send
    std::uint64_t in_burst = 0;           // blocks that it was granted in it, or sent without
    Instant heard_at = kLongAgo;
    Instant told_at = kLongAgo;
    Instant credit_at = kLongAgo;  // it used credit, or had none
    Instant started_at = kLongAgo;
    Instant missing_until = kLongAgo;
    Instant quiet_until = kLongAgo;
    SourceCap cap;
    LoopTime loop;

    /// Granted, and expected to be used.
    std::uint32_t usable() const;
    std::uint32_t outstanding() const { return usable() + missing; }
    /// Queued, and not granted.
    std::uint32_t wanted() const;
  };
  struct Turn {  // the order of a job's sources: fewest blocks first, then who waited longest
    std::uint64_t in_burst = 0;
    std::uint64_t sequence = 0;
    bool operator<(const Turn& o) const {
      return in_burst != o.in_burst ? in_burst < o.in_burst : sequence < o.sequence;
    }
  };
  struct JobState {
    explicit JobState(std::size_t max_sources) : ready(max_sources) {}
    IndexedHeap<Turn> ready;  // sources that may be given credit
    std::size_t sources = 0;
    std::size_t active = 0;
    std::uint32_t burst = 0;  // counts the times that it began to send after a rest
    std::uint64_t floor = 0;  // in_burst of the source served last
    PathCounts path;
    std::uint32_t outstanding = 0;
    Duration least_loop;      // RTT0 of its own sources: no job's makes another's window larger
    double virtual_time = 0;  // blocks served over weight
    double weight = 1;
    double progress = 0;
  };

  SourceState& at(Source source);
  static std::uint32_t cap_of(const SourceState& s);
  static std::uint32_t room(const SourceState& s);
  std::uint32_t batch(const JobState& job, Instant now) const;
  struct Standing {
    double most_progress = 0;
    double weights = 0;  // of all jobs that have sources
  };
  Standing standing() const;
  double standing_weight(const JobState& job, const Standing& all) const;
  std::uint32_t most_of(const JobState& job, Instant now) const;
  double unscheduled_of(const JobState& job, const Standing& all, Instant now) const;
  bool fits(const JobState& job, std::uint32_t blocks, Instant now) const;
  Duration loop_of(const SourceState& s) const;
  void note_loop(SourceState& s);
  void count_arrival(SourceState& s, bool marked);
  void take(SourceState& s, std::uint32_t ahead, std::size_t wire_bytes, Instant now);
  void begin_burst(SourceState& s, bool unscheduled, std::uint32_t demand, Instant now);
  void add_credit(SourceState& s, std::uint32_t blocks, Instant now);
  /// Blocks that a source may send, or sent unasked: they are of its turn and of its job's.
  void count(SourceState& s, std::uint32_t blocks);
  void set_active(SourceState& s, bool active);
  void look_at_path(Instant now);
  /// After any change of a source: its part of the sum, its turn, its timer.
  void settle(Source source, Instant now);

  Instant expires_at(const SourceState& s) const;
  Instant remind_at(const SourceState& s) const;
  Instant forget_at(const SourceState& s) const;
  Instant due(const SourceState& s) const;
  std::optional<Grant> run_timers(Instant now);
  void remind(SourceState& s, Instant now);

  double weight_at(const JobState& job, double progress) const;
  double weight_of(const JobState& job) const { return weight_at(job, job.progress); }
  double arrived_time() const;
  double least_virtual_time() const;
  /// Whose turn it is; jobs_.size() when nobody may be given anything.
  std::size_t next_job() const;
  std::uint32_t next_blocks(Source source, Instant now) const;

  GrantWindow window_;
  bool standing_unscheduled_;
  std::vector<SourceState> sources_;
  std::vector<Source> free_;
  std::vector<JobState> jobs_;
  IndexedHeap<Instant> timers_;  // no later than due(); looked at again then
  Policy policy_ = Policy::kFair;
  MltcpFunction mltcp_;
  std::size_t used_ = 0;    // sources
  std::size_t active_ = 0;  // sources
  std::uint32_t outstanding_ = 0;
  double virtual_time_ = 0;  // of the job served last
  std::uint64_t sequence_ = 0;
  Instant now_;  // the latest that was said
  Limit limit_ = Limit::kNoDemand;
  Stats counts_;
};

}  // namespace gradplane::grants
