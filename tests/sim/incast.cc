// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/incast.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <random>

#include "tests/sim/incast_sender.h"

namespace gradplane::sim::incast {
namespace {

constexpr std::size_t kHeaderWireBytes = 48 + 66;
constexpr Duration kMinSenderProbeTimeout = Duration::ms(5);

enum class What : std::uint8_t {
  kStart,     // a job's iteration starts; `who` is the job
  kSend,      // a sender may be able to send
  kQueue,     // a packet arrives at the switch
  kReceive,   // a packet arrives at the receiver
  kGrant,     // the credit in a packet arrives at the sender
  kAck,       // the ack of a packet arrives at the sender
  kProbe,     // a sender checks whether it has to probe
  kSchedule,  // the time that the scheduler has asked for
  kVictim,    // a packet of the other sender arrives at the switch
};

struct Event {
  Instant at;
  std::uint64_t order = 0;
  What what = What::kSend;
  std::uint32_t who = 0;
  std::uint32_t number = 0;
  Packet packet;
  bool operator<(const Event& o) const { return at != o.at ? at > o.at : order > o.order; }
};

struct JobState {
  std::uint32_t iteration = 0;
  std::uint64_t came = 0;   // blocks from all senders in this iteration
  std::uint64_t total = 0;  // blocks of an iteration
  std::vector<std::uint32_t> senders;
  std::vector<std::uint32_t> block_came;  // by block: from how many senders it has arrived
};

/// The receiver's state for a sender.
struct Known {
  grants::SourceIndex source;
  std::vector<bool> came;
  std::uint32_t left = 0;
};

class Model {
 public:
  explicit Model(const Scenario& scenario);
  Outcome run();

 private:
  void push(Instant at, What what, std::uint32_t who, std::uint32_t number = 0,
            const Packet& packet = {}) {
    events_.push({at, ++order_, what, who, number, packet});
  }
  void make_paths_known();
  void handle(const Event& e);
  void start(std::uint32_t job);
  void pump(std::uint32_t sender);
  void probe(std::uint32_t sender, std::uint32_t iteration);
  void queue(const Event& e);
  void receive(const Packet& packet);
  void block_came(const Packet& packet);
  void end_iteration(std::uint32_t job);
  void wake(std::uint32_t sender);
  void schedule();
  void note_grant(const grants::GrantScheduler::Grant& grant);
  Duration wire_time(std::size_t bytes, std::uint64_t rate) const {
    return Duration::ns(
        static_cast<std::int64_t>(static_cast<double>(bytes) * 8e9 / static_cast<double>(rate)));
  }
  /// Several times the longest possible round trip. Senders differ, so that they do not probe
  /// together.
  Duration probe_timeout(std::uint32_t i) const {
    const Duration trip = delay_of(i) * 2 + wire_time(s_.buffer_bytes, s_.link_bits_per_second);
    return std::max(trip * 4, kMinSenderProbeTimeout) + trip * (i % 16) / 8;
  }
  bool chance(double p) { return p > 0 && std::uniform_real_distribution<>(0, 1)(random_) < p; }
  grants::JobIndex job_of(std::uint32_t sender) const {
    return grants::JobIndex::from_index(s_.senders[sender].job);
  }
  /// Fills in the fields of a grant, which every ack repeats.
  void fill_credit(Packet& packet) const {
    const grants::SourceIndex source = known_[packet.sender].source;
    packet.total = scheduler_.view(source).total_blocks;
    packet.unscheduled = scheduler_.unscheduled_blocks(source);
  }
  Duration delay_of(std::uint32_t sender) const {
    return s_.delay + s_.senders[sender].extra_delay;
  }

  const Scenario& s_;
  std::mt19937_64 random_;
  grants::GrantScheduler scheduler_;
  std::vector<SenderState> senders_;
  std::vector<Known> known_;
  std::vector<std::uint32_t> sender_of_;  // by source
  std::vector<JobState> jobs_;
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  Instant now_;
  Instant link_free_;
  Instant scheduled_ = Instant::never();
  std::size_t running_ = 0;    // number of jobs that run
  std::uint64_t granted_ = 0;  // granted blocks
  Outcome out_;
};

/// The configured rate of the receiver's link; 0: none is configured.
std::uint64_t told_link(const Scenario& s) {
  if (!s.tell_link) return 0;
  return s.own_bits_per_second > 0 ? s.own_bits_per_second : s.link_bits_per_second;
}

grants::GrantScheduler::Limits limits_of(const Scenario& s) {
  return {.link_bits_per_second = told_link(s),
          .buffer_bytes = s.tell_buffer ? s.buffer_bytes : 0,
          .block_wire_bytes = s.block_wire_bytes,
          .max_sources = s.senders.size(),
          .max_jobs = s.jobs.size()};
}

Model::Model(const Scenario& scenario)
    : s_(scenario),
      random_(scenario.seed),
      scheduler_(limits_of(scenario)),
      senders_(scenario.senders.size()),
      known_(scenario.senders.size()),
      sender_of_(scenario.senders.size()),
      jobs_(scenario.jobs.size()) {
  scheduler_.set_policy(s_.policy);
  for (std::uint32_t i = 0; i < senders_.size(); ++i) {
    jobs_[s_.senders[i].job].senders.push_back(i);
  }
  for (std::uint32_t i = 0; i < senders_.size(); ++i) {
    const std::size_t alike = jobs_[s_.senders[i].job].senders.size();
    senders_[i].credit = hop::CreditLine(told_link(s_) / alike, alike, s_.first_count);
    if (s_.congestion) {
      senders_[i].flow.emplace(hop::Flow::Limits{.rate_bits_per_second = s_.link_bits_per_second,
                                                 .block_wire_bytes = s_.block_wire_bytes,
                                                 .congestion = *s_.congestion});
    }
    known_[i].source = *scheduler_.add_source(job_of(i));
    sender_of_[known_[i].source.index()] = i;
  }
  out_.iterations.resize(jobs_.size());
  out_.sender_ends.resize(senders_.size());
  out_.came.resize(senders_.size());
  for (std::uint32_t j = 0; j < jobs_.size(); ++j) {
    scheduler_.set_job_weight(grants::JobIndex::from_index(j), s_.jobs[j].weight);
    if (s_.jobs[j].iterations == 0) continue;
    ++running_;
    push(s_.jobs[j].start, What::kStart, j);
  }
  if (s_.victim_interval > Duration{}) push(Instant{}, What::kVictim, 0);
  if (s_.paths_known) make_paths_known();
}

void Model::make_paths_known() {
  for (std::uint32_t i = 0; i < senders_.size(); ++i) {
    const Duration wire = wire_time(s_.block_wire_bytes, s_.link_bits_per_second);
    scheduler_.on_rtt(known_[i].source, (delay_of(i) + wire) * 2);
  }
  for (std::uint32_t i = 0; i < senders_.size(); ++i) {
    senders_[i].credit.on_unscheduled(scheduler_.unscheduled_blocks(known_[i].source));
  }
}

void Model::start(std::uint32_t j) {
  JobState& job = jobs_[j];
  const Job& spec = s_.jobs[j];
  job.came = 0;
  job.total = std::uint64_t{spec.blocks} * job.senders.size();
  job.block_came.assign(spec.blocks, 0);
  out_.iterations[j].push_back({now_, now_});
  if (j == 0) out_.block_ends.assign(spec.blocks, now_);
  scheduler_.set_job_progress(grants::JobIndex::from_index(j), 0);
  for (const std::uint32_t i : job.senders) {
    known_[i].came.assign(spec.blocks, false);
    known_[i].left = spec.blocks;
    senders_[i].phase_blocks = spec.blocks * spec.stated_total;
    senders_[i].begin(spec.blocks);
    senders_[i].heard_at = now_ + s_.senders[i].late;
    push(now_ + s_.senders[i].late, What::kSend, i);
    push(now_ + s_.senders[i].late + probe_timeout(i), What::kProbe, i, senders_[i].iteration);
  }
}

/// Sends one packet if the sender may send, and calls itself again when the uplink is free.
void Model::pump(std::uint32_t i) {
  SenderState& sender = senders_[i];
  const Sender& spec = s_.senders[i];
  if (sender.flow) sender.flow->on_tick(now_);
  if (now_ < sender.uplink_free) return;
  if (now_ >= spec.dead_from && now_ < spec.dead_until) return;
  Packet packet;
  if (!sender.next(packet, s_.grants && !spec.ignores_grants, now_)) return wake(i);
  packet.sender = i;
  packet.wire_bytes = s_.block_wire_bytes;
  if (s_.last_wire_bytes > 0 && packet.block + 1 == s_.jobs[spec.job].blocks) {
    packet.wire_bytes = s_.last_wire_bytes;
  }
  sender.on_sent(packet, now_);
  const std::uint64_t rate =
      spec.uplink_bits_per_second > 0 ? spec.uplink_bits_per_second : s_.link_bits_per_second;
  sender.uplink_free = now_ + wire_time(packet.wire_bytes, rate);
  push(sender.uplink_free + delay_of(i) / 2, What::kQueue, i, 0, packet);
  push(sender.uplink_free, What::kSend, i);
}

void Model::probe(std::uint32_t i, std::uint32_t iteration) {
  SenderState& sender = senders_[i];
  if (sender.iteration != iteration || sender.idle()) return;
  const Duration timeout = probe_timeout(i) * (std::int64_t{1} << std::min(sender.probes, 6U));
  if (now_ - sender.heard_at >= timeout) sender.probe(now_);
  push(now_ + timeout, What::kProbe, i, iteration);
  pump(i);
}

/// The switch's drop-tail queue. The packet on the wire counts as queued.
void Model::queue(const Event& e) {
  const std::size_t bytes = e.what == What::kVictim ? kHeaderWireBytes : e.packet.wire_bytes;
  const Duration wait = std::max(link_free_ - now_, Duration{});
  const auto queued = static_cast<std::size_t>(wait.to_seconds() *
                                               static_cast<double>(s_.link_bits_per_second) / 8);
  const bool fits = queued + bytes <= s_.buffer_bytes;
  if (fits) {
    link_free_ = std::max(link_free_, now_) + wire_time(bytes, s_.link_bits_per_second);
    out_.deepest_bytes = std::max(out_.deepest_bytes, queued + bytes);
  }
  if (e.what == What::kVictim) {
    if (fits) out_.victim_delays.push_back(link_free_ - now_);
    if (fits) scheduler_.on_other(bytes, now_);
    push(now_ + s_.victim_interval, What::kVictim, 0);
    return;
  }
  ++out_.packets;
  if (!fits) {
    ++out_.drops;
    return;
  }
  if (chance(s_.loss)) {
    ++out_.losses;
    return;
  }
  Packet packet = e.packet;
  packet.marked = s_.mark_bytes > 0 && queued > s_.mark_bytes;
  push(link_free_ + delay_of(packet.sender) / 2, What::kReceive, packet.sender, 0, packet);
}

void Model::receive(const Packet& packet) {
  if (s_.grants) {
    const grants::SourceIndex source = known_[packet.sender].source;
    if (packet.round_trip > Duration{}) scheduler_.on_rtt(source, packet.round_trip);
    scheduler_.on_data(source, packet.sent, packet.waiting, packet.wire_bytes, packet.marked, now_);
  }
  Packet ack = packet;
  fill_credit(ack);
  push(now_ + delay_of(packet.sender), What::kAck, packet.sender, 0, ack);
  if (packet.iteration == senders_[packet.sender].iteration) block_came(packet);
}

void Model::block_came(const Packet& packet) {
  Known& known = known_[packet.sender];
  const std::uint16_t j = s_.senders[packet.sender].job;
  JobState& job = jobs_[j];
  const Job& spec = s_.jobs[j];
  if (known.came[packet.block]) return;
  known.came[packet.block] = true;
  ++out_.came[packet.sender];
  if (--known.left == 0) out_.sender_ends[packet.sender] = now_;
  if (++job.block_came[packet.block] == job.senders.size() && j == 0) {
    out_.block_ends[packet.block] = now_;
  }
  ++job.came;
  const double progress = static_cast<double>(job.came) / static_cast<double>(job.total);
  scheduler_.set_job_progress(job_of(packet.sender), progress / spec.stated_total);
  if (job.came == job.total) end_iteration(j);
}

void Model::end_iteration(std::uint32_t j) {
  JobState& job = jobs_[j];
  const Job& spec = s_.jobs[j];
  out_.iterations[j].back().end = now_;
  if (++job.iteration == spec.iterations) {
    --running_;
    return;
  }
  double factor = 1;
  if (spec.jitter > 0) factor += std::normal_distribution<>(0, spec.jitter)(random_);
  const auto compute_ns = static_cast<double>(spec.compute.count_ns()) * std::max(factor, 0.0);
  push(now_ + s_.delay + Duration::ns(static_cast<std::int64_t>(compute_ns)), What::kStart, j);
}

void Model::note_grant(const grants::GrantScheduler::Grant& grant) {
  const std::uint32_t i = sender_of_[grant.source.index()];
  ++out_.grants;
  const auto stats = scheduler_.stats(now_);
  out_.max_outstanding = std::max(out_.max_outstanding, stats.outstanding_blocks);
  if (stats.granted_blocks > granted_) {
    out_.max_window_used = std::max(out_.max_window_used, stats.window_used);
  }
  granted_ = stats.granted_blocks;
  if (chance(s_.grant_loss)) return;
  Packet packet;
  packet.sender = i;
  fill_credit(packet);
  push(now_ + delay_of(i), What::kGrant, i, 0, packet);
}

/// Schedules when a sender continues that waits for its pace or for a timer of its controller.
void Model::wake(std::uint32_t i) {
  const bool granted = s_.grants && !s_.senders[i].ignores_grants;
  const Instant at = std::max(senders_[i].next_time(granted, now_), now_ + Duration::ns(1));
  Instant& wake_at = senders_[i].wake_at;
  if (at >= Instant::never() || (wake_at > now_ && wake_at <= at)) return;
  wake_at = at;
  push(at, What::kSend, i);
}

void Model::schedule() {
  while (const auto grant = scheduler_.next_grant(now_)) note_grant(*grant);
  const Instant at = scheduler_.next_time(now_);
  if (at == Instant::never() || (scheduled_ > now_ && scheduled_ <= at)) return;
  scheduled_ = at;
  push(at, What::kSchedule, 0);
}

void Model::handle(const Event& e) {
  out_.trace = (out_.trace ^ static_cast<std::uint64_t>(e.at.count_ns())) * 0x100000001b3 +
               static_cast<std::uint64_t>(e.what) + e.who;
  switch (e.what) {
    case What::kStart:
      return start(e.who);
    case What::kSend:
      return pump(e.who);
    case What::kQueue:
    case What::kVictim:
      return queue(e);
    case What::kReceive:
      return receive(e.packet);
    case What::kGrant:
      senders_[e.who].on_credit(e.packet.total, e.packet.unscheduled);
      return pump(e.who);
    case What::kAck:
      if (s_.grants) senders_[e.who].on_credit(e.packet.total, e.packet.unscheduled);
      senders_[e.who].on_ack(e.packet, now_);
      return pump(e.who);
    case What::kProbe:
      return probe(e.who, e.number);
    case What::kSchedule:
      return;
  }
}

Outcome Model::run() {
  while (!events_.empty() && running_ > 0) {
    const Event e = events_.top();
    events_.pop();
    now_ = e.at;
    if (now_ > Instant{} + s_.limit) break;
    handle(e);
    schedule();
    if (s_.on_event) s_.on_event(scheduler_, now_);
  }
  out_.finished = running_ == 0;
  out_.ended = now_;
  out_.stats = scheduler_.stats(now_);
  for (const SenderState& sender : senders_) out_.sent_again += sender.sent_again;
  return out_;
}

}  // namespace

Outcome run(const Scenario& scenario) {
  return Model(scenario).run();
}

Duration bound(const Scenario& scenario) {
  std::uint64_t senders = 0;
  for (const Sender& sender : scenario.senders) senders += sender.job == 0 ? 1 : 0;
  const std::uint64_t bytes = senders * scenario.jobs[0].blocks * scenario.block_wire_bytes;
  return scenario.delay + Duration::ns(static_cast<std::int64_t>(
                              static_cast<double>(bytes) * 8e9 /
                              static_cast<double>(scenario.link_bits_per_second)));
}

}  // namespace gradplane::sim::incast
