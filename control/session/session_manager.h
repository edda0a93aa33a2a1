// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "control/session/actions.h"
#include "control/session/coordinator.h"
#include "control/session/datagram.h"
#include "control/session/election.h"
#include "control/session/link_reporter.h"
#include "control/session/member.h"
#include "control/session/outbox.h"
#include "control/session/peer_link.h"
#include "control/session/views.h"

namespace gradplane::session {

using DropCounters = std::array<std::uint64_t, static_cast<std::size_t>(DatagramDrop::kCount)>;

/// The control plane of one daemon: its ranks, its links to other daemons, its part in every job,
/// and, while it is the coordinator of its term, the coordination of all jobs. Pure: calls and time
/// go in; actions and the next deadline come out. One thread.
///
/// The first coordinator is the one of the configuration. A node that has jobs and loses its
/// coordinator chooses another one (Election) and reports its jobs there. A coordinator that has
/// jobs keeps in contact with all nodes that might coordinate besides it. So of two coordinators
/// the one of the lower term hears of the other and gives way. While rounds wait for Commit or
/// Abort, a node looks for another coordinator before it gives the silent one up (doubt). If the
/// silent one lives, it then stops coordinating, and loses plans that are not committed and ranks
/// that were to join.
///
/// The caller takes actions after every call until there are none. It calls tick() at
/// next_deadline(). If a tick is late by half of suspect_after, this node itself was paused, and
/// the pause does not count as silence of its peers.
class SessionManager {
 public:
  explicit SessionManager(SessionConfig config);
  SessionManager(const SessionManager&) = delete;
  SessionManager& operator=(const SessionManager&) = delete;

  /// A rank wants to attach. An Error: it cannot take part, and is not kept; the text is for its
  /// user.
  Status attach(const NewRank& rank, Instant now);
  /// The connection of a rank has ended. Does nothing for a handle that is not attached.
  void detach(RankHandle handle, bool clean, Instant now);
  /// The memory of a detached rank has been freed. Until then the rank counts towards the quota of
  /// its user.
  void memory_freed(RankHandle handle) { member_.memory_freed(handle); }
  /// Takes the body of a control datagram. It need not come from a peer. Returns why it was dropped
  /// as a whole, and kCount if it was not.
  DatagramDrop on_datagram(std::span<const std::byte> bytes, Instant now);
  /// The engine cannot go on with a job, for example because of a mismatch.
  void on_job_error(std::uint32_t job_id, const std::string& text, Instant now);
  /// A job has to do without a bucket (InstallBounds, describe_bucket), whose rounds stay exact.
  /// Under bounded staleness the job ends, because exchanges of the bucket would wait for ever.
  void on_bucket_refused(std::uint32_t job_id, const std::string& text, Instant now);
  /// The engine has prepared a plan (PreparePlan), and opens no round from `horizon` on until
  /// CommitPlan or AbortPlan. Or it cannot prepare the plan.
  void on_plan_prepared(std::uint32_t job_id, std::uint32_t epoch, std::uint32_t horizon,
                        Instant now);
  void on_plan_refused(std::uint32_t job_id, std::uint32_t epoch, const std::string& text,
                       Instant now);
  /// Another plan is in force (CommitPlan), and the last round of this one has ended here.
  void on_plan_ended(std::uint32_t job_id, std::uint32_t epoch, Instant now);
  /// The answer to MakePlan.
  void on_plan_made(std::uint64_t ticket, Result<PlanOffer> made, Instant now);
  /// Takes the engine's present samples of the links from other nodes, at most one of each sender.
  /// Samples that have changed are reported to the coordinator.
  void on_links(std::span<const protocol::LinkSample> samples, Instant now);
  /// Whether on_links() has any effect.
  bool wants_links() const { return member_.has_jobs(); }
  /// An operator wants another plan for a job that has a part on this node or is coordinated here.
  /// The answer is one AnswerReplan, within a bounded time. An Error: it is refused at once.
  Status replan(AskerHandle asker, std::uint32_t job_id, const PlanChoice& choice, Instant now);
  /// Describes the tensors in a bucket of an attached rank: their places and names. Bounds in
  /// `table` are ignored. Each id comes once. The table goes to the coordinator if the rank is the
  /// first of its job.
  void describe_bucket(RankHandle handle, const api::BucketBounds& table, Instant now);
  /// This daemon begins: calls the coordinator until it answers, so that an operator sees whether
  /// the two hear each other before there is a job.
  void greet(Instant now);
  /// This daemon ends: tells all peers, so that they need not wait for its silence.
  void say_goodbye(Instant now);
  void tick(Instant now);

  std::optional<Action> next_action();
  Instant next_deadline() const;

  std::vector<JobView> jobs() const;
  std::vector<PeerView> peers(Instant now) const;
  /// What the coordinator knows; empty on other nodes.
  TopologyView topology(Instant now) const { return coordinator_.topology(now); }
  /// The node that coordinates, as far as this node knows.
  api::NodeId coordinator() const { return outbox_.coordinator(); }
  bool coordinates() const { return coordinator() == config_.self; }
  /// The last kFailuresKept jobs that ended here for a reason, oldest first.
  const std::deque<FailureView>& failures() const { return failures_; }
  TermView term() const { return {outbox_.term, term_since_, election_.under_way()}; }
  const DropCounters& drops() const { return drops_; }
  /// How many ranks and jobs this node has refused or displaced.
  const RefusalCounters& refusals() const { return outbox_.refusals; }

 private:
  static constexpr std::size_t kFailuresKept = 16;

  PeerLink& touch(api::NodeId node, Instant now);
  void count(DatagramDrop drop);
  void deliver(Instant now);
  void take_reports(Instant now);
  void on_report(api::NodeId node, const LinkReport& report, Instant now);
  void deliver_letters(Instant now);
  bool send_table_parts();
  void keep_failures(Instant now);
  void dispatch(api::NodeId from, bool to_coordinator, const protocol::NodeMessage& message,
                Instant now);
  void take_envelope(api::NodeId from, std::span<const std::byte> bytes, Instant now);
  void on_coordinator_lost(const LinkReport& report, Instant now);
  Instant doubt_at() const;
  void tick_election(Instant now);
  void doubt_coordinator(Instant now);
  void end_doubt(Instant now);
  void follow(const Term& term, Instant now);
  void follow_choice(const std::optional<Term>& choice, Instant now);
  void tell_term(api::NodeId node, Instant now);
  bool is_rival(api::NodeId node) const;
  void mark_rivals(std::vector<bool>& involved) const;
  void watch_involved(Instant now);

  SessionConfig config_;
  Outbox outbox_;
  Member member_;
  Coordinator coordinator_;
  LinkReporter link_reporter_;
  Election election_;
  bool greets_ = false;    // the coordinator has not answered since greet()
  bool is_doubt_ = false;  // the last election began in doubt: the coordinator is not lost
  Instant doubt_since_;    // silence of the coordinator before this time does not count
  Instant term_since_;
  std::set<api::NodeId> told_rivals_;  // that know, or will know, of the term of this node
  std::map<api::NodeId, PeerLink> links_;
  std::set<api::NodeId> touched_;     // links that may have reports or datagrams
  bool involvement_changed_ = false;  // the nodes to watch may have changed
  DropCounters drops_{};
  std::deque<FailureView> failures_;
};

}  // namespace gradplane::session
