// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/time.h"
#include "dataplane/job/plan_switch.h"
#include "dataplane/job/receiver.h"
#include "dataplane/job/rounds.h"
#include "dataplane/job/state.h"
#include "dataplane/job/streams.h"
#include "dataplane/job/transmitter.h"
#include "dataplane/job/watchdog.h"
#include "dataplane/model/round_report.h"

namespace gradplane::job {

/// One job at one node. It gathers blocks, sums them, sends sums up and results down, as its plan
/// says.
///
/// It has no thread and reads no clock. Packets, submissions and the time come in; packets, events
/// and the next deadline go out. Everything is allocated in the constructor. After each call with
/// `now`, take events with poll_event() and packets with poll_ack() and poll_data() until they
/// return nothing. It belongs to the poll thread.
class Job {
 public:
  explicit Job(JobConfig config);

  /// See Receiver::handle().
  std::optional<awareness::Told> handle(std::uint16_t from, const wire::Envelope& envelope,
                                        std::span<const std::byte> datagram,
                                        bool congestion_experienced, Instant now) {
    return receiver_.handle(from, envelope, datagram, congestion_experienced, now);
  }

  /// submit() for a plain all_reduce. `bucket` 0: the round belongs to no bucket. For tests.
  SubmitResult submit(std::size_t local_rank, std::uint32_t round, std::uint32_t elements,
                      ElementType type, std::uint32_t bucket = 0) {
    if (bucket > kMaxBuckets) return SubmitResult::kRejected;
    return submit(
        local_rank, round,
        {.type = type, .elements = elements, .bucket = static_cast<std::uint16_t>(bucket)});
  }
  /// Submits a rank's contribution to `round`, which lies in the rank's arena slot.
  SubmitResult submit(std::size_t local_rank, std::uint32_t round, const Statement& said) {
    return rounds_.submit(local_rank, round, said);
  }
  /// Rounds of this bucket may lack blocks, as far as its bounds allow, from the next one on. The
  /// bucket must outlive the job. False if the bucket does not fit the job (see make_bucket()) or
  /// its id is taken.
  [[nodiscard]] bool add_bucket(aggregate::Bucket* bucket) { return rounds_.add_bucket(bucket); }

  /// Prepares, commits or aborts a further plan; see PlanSwitch. The control thread makes plans,
  /// and they go back to it. A job in a Node that grants gets its plan from Node::prepare().
  Prepared prepare(std::unique_ptr<Plan>& plan) { return plan_switch_.prepare(plan); }
  [[nodiscard]] bool commit(std::uint32_t epoch, std::uint32_t activation) {
    return plan_switch_.commit(epoch, activation);
  }
  std::unique_ptr<Plan> abort(std::uint32_t epoch) { return plan_switch_.abort(epoch); }
  /// Whether its first plan has not been committed yet; see JobConfig::joins.
  bool is_joining() const { return state_.plans.is_joining(); }
  void end_older_plan(std::uint32_t epoch) { plan_switch_.end_older(epoch); }
  std::unique_ptr<Plan> take_ended_plan() { return plan_switch_.take_ended(); }
  /// Whether take_ended_plan() has something to do.
  bool has_ended_plan() const { return plan_switch_.has_ended(); }

  /// Sums some of what local ranks have submitted. True while there is more to do.
  bool sum_local(std::size_t max_blocks) { return rounds_.sum_local(max_blocks); }

  /// Writes the next ack that is due to `out` (wire::kMaxAckBytes).
  std::optional<Outgoing> poll_ack(std::span<std::byte> out, Instant now) {
    return transmitter_.poll_ack(out, now);
  }
  /// Writes the next block that may be sent to `out` (header and block bytes).
  std::optional<Outgoing> poll_data(std::span<std::byte> out, Instant now) {
    return transmitter_.poll_data(out, now);
  }

  /// Writes the next packet that this node relays for another node to `out` (size as in
  /// poll_data()).
  std::optional<Outgoing> poll_relayed(std::span<std::byte> out) {
    return transmitter_.poll_relayed(out);
  }

  /// Lets the node's scheduler decide what the peers of this job may send, along with those of
  /// other jobs. Called once, before the first packet. `index` names the job at the scheduler,
  /// which must outlive the job unless leave() is called. False if the scheduler has no room for
  /// all peers.
  [[nodiscard]] bool join(grants::GrantScheduler& grants, grants::JobIndex index);
  void leave() { state_.incoming.leave(); }
  /// Acks will ask peers to sound links that the node has not measured. `links` must outlive the
  /// job.
  void use_links(const awareness::IncomingLinks& links) { state_.links = &links; }
  /// Payloads of at least `bytes` are lent instead of copied; see Outgoing::lent.
  void lend_from(std::size_t bytes) { state_.lends_from_bytes = bytes; }
  grants::JobIndex grant_index() const { return state_.incoming.index(); }
  /// See Incoming::sources().
  std::span<const grants::SourceIndex> sources() const { return state_.incoming.sources(); }
  /// Writes the grant of a peer to `out`, which must have room for one.
  Outgoing write_grant(hop::PeerIndex peer, std::span<std::byte> out, Instant now) {
    return transmitter_.write_grant(peer, out, now);
  }

  /// Looks for silent peers, for rounds that may close, and for rounds in which nothing moves. Call
  /// it when next_timer() has come.
  void tick(Instant now);
  /// When to call tick() or poll_ack() again if no packet comes before. A time in the past means at
  /// once.
  Instant next_timer() const;
  /// When poll_data() or poll_relayed() has a packet; Instant::never() if nothing waits or a window
  /// is full.
  Instant next_data() const {
    return transmitter_.has_relayed() ? Instant() : transmitter_.next_data();
  }

  bool poll_event(Event& out);
  /// The report of the next round under bounds that a root here has closed. The queue holds the
  /// reports of a few rounds; later ones are lost until someone takes them.
  bool poll_report(RoundReport& out) { return state_.reports.pop(out); }

  const hop::Counters& counters() const { return state_.counters; }
  const JobConfig& config() const { return state_.config; }
  /// The epoch of the plan that carries the newest rounds.
  std::uint32_t epoch() const { return state_.plans.newest().epoch(); }
  /// Peers in the order of JobConfig::peers, followed by those that came with later plans.
  std::span<const hop::Peer> peers() const { return state_.peers.all(); }
  /// See hop::PeerTable::to_poll(). For tests.
  const Bitmap& peers_to_poll() const { return state_.peers.to_poll(); }
  GroupHearing group_hearing() const { return state_.plans.newest().group_hearing(); }
  FlowLimit limit_of(hop::PeerIndex peer, Instant now) const {
    return transmitter_.limit_of(state_.peers[peer], now);
  }
  Waiting waiting() const { return rounds_.waiting(); }
  /// See State::broken_invariant().
  const char* broken_invariant() const { return state_.broken_invariant(); }

 private:
  State state_;
  Rounds rounds_{state_};
  Streams streams_{state_, rounds_};
  Watchdog watchdog_{state_};
  Receiver receiver_{state_, rounds_, streams_, watchdog_};
  Transmitter transmitter_{state_};
  PlanSwitch plan_switch_{state_};
  Instant next_scan_;
};

}  // namespace gradplane::job
