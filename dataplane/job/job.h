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

/// One job at one node: it gathers blocks, sums them, and sends sums up and results down, as its
/// plan says.
///
/// A value, not a thread: packets, submissions and the time come in; packets, events and the next
/// deadline go out. Everything is allocated in the constructor. After each call with `now`, take
/// events with poll_event() and packets with poll_ack()/poll_data() until they give nothing.
class Job {
 public:
  explicit Job(JobConfig config);

  /// See Receiver::handle().
  std::optional<awareness::Told> handle(std::uint16_t from, const wire::Envelope& envelope,
                                        std::span<const std::byte> datagram,
                                        bool congestion_experienced, Instant now) {
    return receiver_.handle(from, envelope, datagram, congestion_experienced, now);
  }

  /// The rank's contribution to `round` lies in its arena slot. See SubmitResult.
  /// `bucket` 0: of none.
  SubmitResult submit(std::size_t local_rank, std::uint32_t round, std::uint32_t elements,
                      ElementType type, std::uint32_t bucket = 0) {
    if (bucket > kMaxBuckets) return SubmitResult::kRejected;
    return submit(
        local_rank, round,
        {.type = type, .elements = elements, .bucket = static_cast<std::uint16_t>(bucket)});
  }
  SubmitResult submit(std::size_t local_rank, std::uint32_t round, const Statement& said) {
    return rounds_.submit(local_rank, round, said);
  }
  /// From the next round of this bucket on it may lack what its bounds allow. The bucket must
  /// outlive the job, fit it (see make_bucket()), and be the first with its id: false if not.
  [[nodiscard]] bool add_bucket(aggregate::Bucket* bucket) { return rounds_.add_bucket(bucket); }

  /// A further plan of the job; see PlanSwitch. Plans are made by the control thread and go back
  /// to it. A job in a Node that grants gets its plan from Node::prepare().
  Prepared prepare(std::unique_ptr<Plan>& plan) { return plan_switch_.prepare(plan); }
  [[nodiscard]] bool commit(std::uint32_t epoch, std::uint32_t activation) {
    return plan_switch_.commit(epoch, activation);
  }
  std::unique_ptr<Plan> abort(std::uint32_t epoch) { return plan_switch_.abort(epoch); }
  /// Its first plan has not been committed; see JobConfig::joins.
  bool is_joining() const { return state_.plans.is_joining(); }
  void end_older_plan(std::uint32_t epoch) { plan_switch_.end_older(epoch); }
  std::unique_ptr<Plan> take_ended_plan() { return plan_switch_.take_ended(); }
  /// Whether take_ended_plan() has something to do.
  bool has_ended_plan() const { return plan_switch_.has_ended(); }

  /// Sums some of what local ranks have submitted. True while there is more to do.
  bool sum_local(std::size_t max_blocks) { return rounds_.sum_local(max_blocks); }

  /// The next ack that is due, into `out` (wire::kMaxAckBytes).
  std::optional<Outgoing> poll_ack(std::span<std::byte> out, Instant now) {
    return transmitter_.poll_ack(out, now);
  }
  /// The next block that may go, into `out` (header and block bytes).
  std::optional<Outgoing> poll_data(std::span<std::byte> out, Instant now) {
    return transmitter_.poll_data(out, now);
  }

  /// The next packet of another node that goes on over its route, into `out` (as poll_data()).
  std::optional<Outgoing> poll_relayed(std::span<std::byte> out) {
    return transmitter_.poll_relayed(out);
  }

  /// Lets the node's scheduler decide what all peers of this job send here, in turn with those of
  /// other jobs. Once, before the first packet; `index` is the job's at the scheduler, which
  /// outlives the job or is left. False when it has no room for all peers.
  [[nodiscard]] bool join(grants::GrantScheduler& grants, grants::JobIndex index);
  void leave() { state_.incoming.leave(); }
  /// Acks ask for what the node does not know of the links to it. `links` outlives the job.
  void use_links(const awareness::IncomingLinks& links) { state_.links = &links; }
  /// Payloads of so many bytes or more are lent, and not copied; see Outgoing::lent.
  void lend_from(std::size_t bytes) { state_.lends_from_bytes = bytes; }
  grants::JobIndex grant_index() const { return state_.incoming.index(); }
  /// See Incoming::sources().
  std::span<const grants::SourceIndex> sources() const { return state_.incoming.sources(); }
  /// Tells a peer how many blocks it may have sent. `out` holds a grant.
  Outgoing write_grant(hop::PeerIndex peer, std::span<std::byte> out, Instant now) {
    return transmitter_.write_grant(peer, out, now);
  }

  /// Looks for peers that have fallen silent, for rounds that may close, and for rounds in which
  /// nothing moves. Call it when next_timer() has come.
  void tick(Instant now);
  /// When to call tick() or poll_ack() again, if no packet comes before; in the past: at once.
  Instant next_timer() const;
  /// When poll_data() or poll_relayed() has something to give; Instant::never() when nothing waits
  /// or a window is full.
  Instant next_data() const {
    return transmitter_.has_relayed() ? Instant() : transmitter_.next_data();
  }

  bool poll_event(Event& out);
  /// The next round under bounds that was closed at a root here. What is not taken while a few
  /// rounds close is lost.
  bool poll_report(RoundReport& out) { return state_.reports.pop(out); }

  const hop::Counters& counters() const { return state_.counters; }
  const JobConfig& config() const { return state_.config; }
  /// Of the plan that the newest rounds have.
  std::uint32_t epoch() const { return state_.plans.newest().epoch(); }
  /// In the order of JobConfig::peers; those that came with a later plan follow.
  std::span<const hop::Peer> peers() const { return state_.peers.all(); }
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
