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

/// What the parts of a job (Rounds, Receiver, Transmitter, Watchdog) share. It has no rules of its
/// own. Everything is allocated in the constructor.
struct State {
  explicit State(JobConfig settings);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Round& slot_of(std::uint32_t round) { return rounds[round % kRoundSlots]; }
  const Round& slot_of(std::uint32_t round) const { return rounds[round % kRoundSlots]; }
  bool all_submitted(const Round& round) const;
  /// Every round before this one has ended here.
  std::uint32_t oldest_round() const;

  /// Copies of a round that is not the oldest one do not go. Most copies turn out to be needless.
  /// Only the oldest round keeps others from beginning, so its copies are worth a part of the link.
  /// The losses of a later round are proved by blocks behind it, or by a probe.
  bool withholds_copies(std::uint32_t round) const { return is_older(oldest_round(), round); }
  /// Blocks that could go to a peer if it let them.
  std::uint32_t blocks_waiting(const hop::Peer& peer) const;

  Plan& plan_of(const Round& round) const { return plans.of(round.id); }
  /// Whether the slot holds an open round that the plan carries.
  bool has_open(const Plan& plan, const Round& round) const {
    return round.open && &plan_of(round) == &plan;
  }

  /// What does not hold although it must between any two calls; nullptr when everything does. For
  /// tests.
  const char* broken_invariant() const;

  /// No round is open: the next one is `round`.
  void begin_at(std::uint32_t round);
  /// Makes the plan and its peers known to the parts that count by peer.
  void connect(Plan& plan);

  /// A peer allows so many blocks in all, and so many more without a grant. A total that it can not
  /// have meant, or any where nobody grants, is dropped and counted.
  void on_granted(std::uint32_t total_blocks, std::uint32_t unscheduled_blocks, hop::Peer& peer);
  /// Blocks of an edge that were in flight have arrived. An ack about `path` tells that `marked`
  /// packets were marked on it.
  void on_acked(hop::OutEdge& edge, std::size_t slot, const hop::PathBlocks& acked, Instant now,
                std::size_t path = hop::kDirectPath, std::uint32_t marked = 0);
  /// Finds blocks of an edge that went over `path` more than `window` before `echo_us`, when a
  /// packet left that the peer has answered. They are lost and queued again. False: there are none.
  bool find_lost(hop::OutEdge& edge, std::size_t slot, std::size_t path, std::uint32_t echo_us,
                 Duration window, Instant now);
  bool may_be_refused(const hop::OutEdge& edge, std::size_t slot,
                      const hop::BlockSender::Lost& lost) const;
  /// A child has not answered a block that had gone to its group; see Group. What is on its way to
  /// a child that has gone deaf goes to it alone.
  void on_group_unanswered(hop::OutEdge& edge, std::size_t slot, Instant now);
  /// The edge's peer has more of the round than before, or will never need it. `before`: its
  /// sender's settled_count() until now.
  void on_settled(const hop::OutEdge& edge, std::size_t slot, std::uint32_t before);

  /// A push comes before this node can take it, and is dropped. Where ranks need not be in step
  /// that may go on for as long as the rank here computes, so the sender hears that the path is
  /// whole.
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
  std::optional<hop::Iteration> iteration;  // of what is sent, where a controller or the order asks
  ProgressWatch watch;
  awareness::SoundingPolicy soundings;
  FixedQueue<hop::PeerIndex> sounders{kMaxNodes};   // whose soundings are to be answered, each once
  FixedQueue<hop::PeerIndex> refused{kMaxNodes};    // who is to hear of a refused push, each once
  const awareness::IncomingLinks* links = nullptr;  // what the node knows of those to it
  std::size_t lends_from_bytes = SIZE_MAX;          // of a block's payload; see Outgoing::lent
  std::vector<aggregate::Bucket*> buckets;          // by id
  hop::ParityTable parities;
  std::uint32_t open_rounds = 0;
  std::uint32_t next_round = 0;  // after the newest that was ever opened here
};

}  // namespace gradplane::job
