// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/aggregate/round.h"
#include "dataplane/awareness/incoming_links.h"
#include "dataplane/awareness/sounding_policy.h"
#include "dataplane/base/fixed_queue.h"
#include "dataplane/hop/counters.h"
#include "dataplane/hop/iteration.h"
#include "dataplane/hop/peer_table.h"
#include "dataplane/job/event.h"
#include "dataplane/job/incoming.h"
#include "dataplane/job/job_config.h"
#include "dataplane/job/plan_table.h"
#include "dataplane/job/progress_watch.h"
#include "dataplane/job/retired_plan.h"
#include "dataplane/wire/block.h"

namespace gradplane::job {

using aggregate::is_older;
using aggregate::Round;

/// What the parts of a job (Rounds, Receiver, Transmitter, Watchdog) share, and the rules that
/// several of them need. Everything is allocated in the constructor.
struct State {
  explicit State(JobConfig settings);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Round& slot_of(std::uint32_t round) { return rounds[round % kRoundSlots]; }
  const Round& slot_of(std::uint32_t round) const { return rounds[round % kRoundSlots]; }
  bool all_submitted(const Round& round) const;
  /// The oldest round that may not have ended here: every older round has.
  std::uint32_t oldest_round() const;

  /// Copies are sent only for the oldest round. Most copies turn out to be needless, and only the
  /// oldest round keeps others from beginning, so only its copies are worth a part of the link. In
  /// a later round, later blocks or a probe prove a loss.
  bool withholds_copies(std::uint32_t round) const { return is_older(oldest_round(), round); }
  /// The number of blocks that could go to a peer if window and credit allowed.
  std::uint32_t blocks_waiting(const hop::Peer& peer) const;

  Plan& plan_of(const Round& round) const { return plans.of(round.id); }
  /// Whether the slot holds an open round that the plan carries.
  bool has_open(const Plan& plan, const Round& round) const {
    return round.open && &plan_of(round) == &plan;
  }

  /// Names an invariant that does not hold although it must hold between any two calls; nullptr if
  /// all hold. For tests.
  const char* broken_invariant() const;

  /// Makes `round` the next round. No round may be open.
  void begin_at(std::uint32_t round);
  /// Connects the plan to the peer table, and to the counts by peer.
  void connect(Plan& plan);

  /// A peer allows `total_blocks` in all, and `unscheduled_blocks` in flight without a grant. A
  /// total that cannot be meant is dropped and counted, and so is any total in a job without
  /// grants.
  void on_granted(std::uint32_t total_blocks, std::uint32_t unscheduled_blocks, hop::Peer& peer);
  /// Blocks of an edge that were in flight have arrived. An ack about `path` has reported `marked`
  /// further blocks in packets that were marked there.
  void on_acked(hop::OutEdge& edge, std::size_t slot, const hop::PathBlocks& acked, Instant now,
                std::size_t path = hop::kDirectPath, std::uint32_t marked = 0);
  /// Finds blocks of an edge that went over `path` more than `window` before `echo_us`, the sending
  /// time of a packet that the peer has answered. They are lost and queued again. False if there
  /// are none.
  bool find_lost(hop::OutEdge& edge, std::size_t slot, std::size_t path, std::uint32_t echo_us,
                 Duration window, Instant now);
  bool may_be_refused(const hop::OutEdge& edge, std::size_t slot,
                      const hop::BlockSender::Lost& lost) const;
  /// A child has not answered a block that had gone to its group; see Group. If the child has
  /// become deaf, what is in flight to it by the group is sent to it alone.
  void on_group_unanswered(hop::OutEdge& edge, std::size_t slot, Instant now);
  /// The edge's peer has more blocks of the round than before, or will never need them. `before`:
  /// the settled_count() of the sender until now.
  void on_settled(const hop::OutEdge& edge, std::size_t slot, std::uint32_t before);

  /// Drops a push that this node cannot take yet. If ranks need not be in step, that may go on for
  /// as long as the rank here computes, so the sender must hear that the path works.
  void refuse_for_now(const Plan& plan, hop::PeerIndex peer, const wire::BlockPacket& packet);

  const JobConfig config;
  const aggregate::LocalRanks ranks;
  hop::PeerTable peers;
  PlanTable plans;
  RetiredPlan retired;
  std::vector<Round> rounds;  // by slot
  hop::Counters counters;
  aggregate::ReportQueue reports;
  FixedQueue<Event> events;
  Incoming incoming;
  // Of sent blocks; set if the controller or the sending order needs it.
  std::optional<hop::Iteration> iteration;
  ProgressWatch watch;
  awareness::SoundingPolicy soundings;
  // Peers whose soundings are to be answered, each once.
  FixedQueue<hop::PeerIndex> sounders{kMaxNodes};
  // Peers that are to hear of a refused push, each once.
  FixedQueue<hop::PeerIndex> refused{kMaxNodes};
  const awareness::IncomingLinks* links = nullptr;  // estimates of the links to this node
  std::size_t lends_from_bytes = SIZE_MAX;  // shortest payload that is lent; see Outgoing::lent
  std::vector<aggregate::Bucket*> buckets;  // by id
  hop::ParityTable parities;
  std::uint32_t open_rounds = 0;
  std::uint32_t next_round = 0;  // the round after the newest that was ever opened here
};

}  // namespace gradplane::job
