// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/protocol/node_messages.h"
#include "control/session/actions.h"
#include "control/session/bucket_tables.h"
#include "control/session/outbox.h"
#include "control/session/replan_questions.h"
#include "control/session/views.h"

namespace gradplane::session {

/// The part of this node in its jobs: its ranks, and the plans that it was told to install. Pure;
/// the outbox gets every message and action.
///
///   waiting  -> prepared   on Prepare: the job is installed, and the node has answered, or, if
///                          the job runs elsewhere, answers when its engine is ready
///   prepared -> ready      on Commit: the ranks may begin
///   ready    -> ready      on Prepare of another plan: the node answers when its engine is ready.
///                          Commit puts this plan in force, Abort makes the node forget it
///   waiting  -> gone       when all ranks have left or were refused, or when the wait is over
///   prepared -> gone       on Failed, Finished, or Abort of a plan for ranks that were to join
///   ready    -> gone       on Failed, Finished, or Dismiss, which comes when the last plan with a
///                          part for this node has ended everywhere
///
/// A job goes on when its coordinator is lost. The node then reports the job to the next
/// coordinator. So it keeps what the next one cannot know otherwise: plans, tables, and which ranks
/// have left.
class Member {
 public:
  Member(const SessionConfig& config, Outbox& outbox);

  Status attach(const NewRank& rank, Instant now);
  void detach(RankHandle handle, bool clean);
  void memory_freed(RankHandle handle) { users_.erase(handle); }
  /// Takes a message of the coordinator. False: no coordinator sends such a message to a member.
  bool on_message(const protocol::NodeMessage& message, Instant now);
  void on_coordinator_connected();
  void on_coordinator_lost(const std::string& why);
  /// A new term has begun, perhaps with the same coordinator. All jobs are reported to it.
  void on_new_term();
  void on_job_error(std::uint32_t job_id, const std::string& text);
  void on_bucket_refused(std::uint32_t job_id, const std::string& text);
  void on_plan_prepared(std::uint32_t job_id, std::uint32_t epoch, std::uint32_t horizon);
  void on_plan_refused(std::uint32_t job_id, std::uint32_t epoch, const std::string& text);
  void on_plan_ended(std::uint32_t job_id, std::uint32_t epoch);
  Status replan(AskerHandle asker, const protocol::JobKey& key, const PlanChoice& choice,
                Instant now);
  /// Describes the tensors in a bucket of this rank's job. Call it once for each bucket.
  void describe(RankHandle handle, const api::BucketBounds& table);
  void tick(Instant now);
  Instant next_deadline() const;
  /// Sends the coordinator the next part of a table. False: there is none.
  bool send_table_part();

  /// Whether the node needs a coordinator that lives.
  bool needs_coordinator() const { return !jobs_.empty() || !questions_.empty(); }
  bool has_jobs() const { return !jobs_.empty(); }
  /// Whether some running job has prepared a plan. It opens no round from its horizon on until its
  /// coordinator commits or aborts this plan.
  bool waits_for_word() const;
  std::optional<protocol::JobKey> key_of(std::uint32_t job_id) const;
  std::vector<JobView> views() const;

 private:
  /// A plan that is not in force yet.
  struct Next {
    std::uint32_t epoch = 0;
    PlanKind kind = PlanKind::kStar;
    std::vector<api::Member> members;
    bool has_part = false;             // whether this node is a member
    bool answered = false;             // whether the coordinator was told that it is prepared
    std::vector<std::byte> plan = {};  // encoded
  };
  /// A rank that has left a running job.
  struct Gone {
    std::uint16_t rank = 0;
    bool clean = false;
  };
  struct Job {
    protocol::JobKey key{};
    std::uint32_t id = 0;
    JobState state = JobState::kWaiting;
    std::uint32_t user = kNoUser;  // of its ranks here
    Instant since;
    std::uint32_t attempt = 0;        // of the ranks here; 0: none of them began the job
    std::uint32_t first_epoch = 0;    // names the job from Prepare on
    std::uint32_t newest_epoch = 0;   // of the newest plan that was ever prepared here
    std::uint32_t epoch = 0;          // of the plan in force; 0 before the first Commit
    PlanKind kind = PlanKind::kStar;  // of the plan in force, or of the first one, as the two below
    std::vector<api::Member> members;
    bool has_part = true;
    std::uint32_t activation_round = 0;
    std::uint32_t ending = 0;  // epoch of the plan before, while it has open rounds here; else 0
    std::uint32_t epoch_before = 0;  // the same, until this node knows that it has ended everywhere
    std::vector<std::byte> plan;     // in force, encoded
    std::vector<std::byte> plan_before;
    std::uint32_t plan_before_epoch = 0;
    std::optional<Next> next;
    std::vector<Gone> gone;
    std::uint32_t world_size = 0;
    std::string label;
    bool grants = false;  // Prepare::grants
    std::vector<LocalRank> ranks;
    protocol::Waiting waiting;                  // what the ranks were told last
    std::uint32_t logged_missing = UINT32_MAX;  // how many were missing when it was last logged
    // The tables of rank 0, if it is here, and how many parts this coordinator was sent.
    std::vector<std::vector<std::byte>> table_parts;
    std::size_t described = 0;
    TableCollector bounds;                            // joins the coordinator's tables
    std::vector<protocol::BucketBounds> bound_parts;  // of complete tables
    std::vector<protocol::BucketBounds> open_parts;   // of the table that has come in part
    std::optional<std::size_t> sends_back;            // bound_parts sent since AskTables; none: no
  };
  using Jobs = std::map<protocol::JobKey, Job>;

  void on(const protocol::WaitingFor& m);
  void on(const protocol::Refused& m);
  void on(const protocol::Prepare& m, Instant now);
  void on(const protocol::Commit& m);
  void on(const protocol::Abort& m);
  void on(const protocol::EndPlan& m);
  void on(const protocol::Dismiss& m);
  void on(const protocol::ReplanAnswer& m);
  void on(const protocol::Failed& m);
  void on(const protocol::Finished& m);
  void on(const protocol::BucketBounds& m);
  void on(const protocol::AskReport& m);
  void on(const protocol::AskPlan& m);
  void on(const protocol::AskTables& m);

  std::optional<Denial> why_not(const NewRank& rank) const;
  std::optional<Denial> why_not_in(const Job& job, const NewRank& rank) const;
  std::optional<Denial> why_no_wait(const NewRank& rank) const;
  std::optional<Denial> why_no_slot(const protocol::JobKey& key) const;
  std::string same_number(const protocol::JobKey& key) const;
  Result<api::Plan> decode(const protocol::Prepare& m,
                           const std::vector<std::uint16_t>& local_ranks) const;
  bool has_part(const api::Plan& plan) const;
  Result<api::Plan> acceptable_plan(const protocol::Prepare& m) const;
  Result<api::Plan> further_plan(const Job& job, const protocol::Prepare& m) const;
  void prepare_further(Job& job, api::Plan plan, const protocol::Prepare& m);
  void report(const Job& job);
  Jobs::iterator find_preparing(std::uint32_t job_id, std::uint32_t epoch);
  void ignore(const char* message, std::uint32_t epoch);
  static std::string change_text(const Job& job);
  void warn_of_other_sections(const protocol::Prepare& m);
  void decline(const protocol::Prepare& m, const std::string& reason);
  void install(const protocol::Prepare& m, api::Plan plan, Instant now);
  static std::vector<std::uint16_t> ranks_of(const Job& job);  // in order
  std::string waiting_text(const Job& job) const;
  Instant wait_ends(const Job& job) const;
  void give_up(Jobs::iterator job, const std::string& reason);
  void send_join(const Job& job, std::vector<std::uint16_t> ranks);
  void notify(const Job& job, const RankNotice& notice);
  void tell_waiting(Job& job, protocol::Waiting waiting);
  void end(Jobs::iterator job, const std::string& reason);
  Jobs::iterator find(const protocol::JobKey& key, std::uint32_t first_epoch);

  const SessionConfig& config_;
  Outbox& outbox_;
  Jobs jobs_;
  std::map<RankHandle, std::uint32_t> users_;  // until memory_freed()
  std::uint32_t last_attempt_ = 0;
  ReplanQuestions questions_;
  std::string other_sections_;       // in which the coordinator's file was last seen to differ
  std::string coordinator_trouble_;  // why it cannot be reached; empty: it can, as far as known
};

}  // namespace gradplane::session
