// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/protocol/node_messages.h"
#include "control/session/actions.h"
#include "control/session/job_tables.h"
#include "control/session/link_reports.h"
#include "control/session/outbox.h"
#include "control/session/plan_change.h"
#include "control/session/redraw.h"
#include "control/session/relays.h"
#include "control/session/replan_questions.h"
#include "control/session/takeover.h"
#include "control/session/views.h"
#include "dataplane/base/time.h"

namespace gradplane::session {

/// Collects the ranks of every job of the cluster, orders a plan from the planner (MakePlan), and
/// puts this plan in force on all members or on none. Pure; the outbox gets every message and
/// action.
///
///   waiting  -> prepared   all ranks are here and there is a plan: Prepare goes to every member
///   prepared -> ready      every member has answered: Commit goes to every member
///   ready    -> ready      an operator asks for another plan, or the network has changed and
///                          another plan is worth it: it goes the same way (PlanChange)
///   any      -> gone       a rank or node is lost, a member says Failed, an answer to the first
///                          plan is overdue, or every rank has left
///
/// If a node refuses a further plan or does not answer it, the coordinator aborts that plan, and
/// the plan in force stays. The coordinator also collects the bucket tables of a ready job and
/// distributes them with bounds.
///
/// Where the configuration allows it, a further plan may take out the ranks of whole nodes, or
/// bring ranks of nodes that had no part in the job.
///
/// The coordinator's state is soft. A node that begins to coordinate learns the jobs from their
/// members (Takeover). It finishes a change that some member has committed, and aborts others.
///
/// kPrepared means here that Prepare was sent, even if answers are missing.
class Coordinator {
 public:
  Coordinator(const SessionConfig& config, Outbox& outbox);

  /// Takes a message of the member on `from`. False: no member sends such a message.
  bool on_message(api::NodeId from, const protocol::NodeMessage& message, Instant now);
  /// `is_back`: the node answers again, but everything agreed with it before is void.
  void on_node_lost(api::NodeId node, const std::string& why, bool is_back, Instant now);
  void on_node_connected(api::NodeId node) {
    relays_.on_connected(node);
    in_contact_.insert(node);
  }
  /// The node has sent something just now.
  void on_node_heard(api::NodeId node) {
    if (!relays_.silent().empty()) relays_.on_connected(node);
  }
  /// The answer to MakePlan. It is ignored if the ticket is an old one.
  void on_plan_made(std::uint64_t ticket, Result<PlanOffer> made, Instant now);
  void tick(Instant now);
  Instant next_deadline() const;
  /// Sends the next part of a table to each member that lacks some and that `has_room`. False:
  /// nothing was sent.
  bool send_table_parts(const std::function<bool(api::NodeId)>& has_room);

  bool has_jobs() const { return !jobs_.empty() || !takeovers_.empty(); }
  /// Forgets everything, because another term has begun.
  void resign();
  std::optional<protocol::JobKey> key_of(std::uint32_t job_id) const;
  /// Marks every node that takes part in a job, by node id.
  void mark_involved(std::vector<bool>& involved) const;
  std::vector<JobView> views() const;
  TopologyView topology(Instant now) const;

 private:
  struct Joined {
    std::uint32_t attempt = 0;
    std::vector<std::uint16_t> ranks;
    bool operator==(const Joined&) const = default;
  };
  /// An operator who waits for an answer.
  struct Question {
    api::NodeId node = api::kNoNode;
    std::uint32_t ticket = 0;  // the number of the question at its node
  };
  struct Queued {
    Question question;
    PlanChoice choice;
    Instant until;
  };
  /// Ranks on a node without a part in the job that have attached while the job runs.
  struct Joining {
    Joined joined;
    Instant settled_at;  // until then more ranks of the node may come
    Instant until;
  };
  using Hosts = std::map<api::NodeId, Joined>;
  enum class PlanReason { kStart, kQuestion, kJoin, kRedraw };
  /// A plan that is being made.
  struct Planning {
    std::uint64_t ticket = 0;
    PlanReason reason = PlanReason::kStart;
    std::optional<PlanChoice> choice;
    std::optional<Question> question;
    Hosts hosts;
    Instant until;
  };
  struct Job {
    protocol::JobKey key{};
    std::uint32_t id = 0;
    JobState state = JobState::kWaiting;
    std::uint32_t user = kNoUser;  // who opened it, or Takeover::user()
    Instant since;
    std::uint32_t world_size = 0;
    std::string label;
    std::set<api::NodeId> grantless;  // nodes that have joined and may not grant
    bool grants = false;              // decided with the first plan
    Hosts joined;                     // the nodes with ranks in the plan in force
    Hosts changed;                    // the nodes with ranks in the next plan
    std::map<api::NodeId, Joining> joining;
    Hosts departing;                           // had ranks in the plan before, which has not ended
    std::optional<PlanChoice> choice;          // what an operator has put in force last
    std::optional<PlanChoice> next_choice;     // the choice of the next plan
    std::optional<bool> next_follows_network;  // whether redraws may replace the next plan
    bool update_due = false;                   // waiting nodes have not heard of the last change
    Instant update_at;                         // when they may hear of it
    std::uint32_t first_epoch = 0;             // names the job once it has a plan
    std::uint32_t epoch = 0;                   // of the plan in force
    std::uint32_t epoch_before = 0;
    PlanKind kind = PlanKind::kStar;
    std::string plan;  // for people
    std::vector<api::Member> members;
    std::optional<api::Plan> in_force;
    /// When that plan was committed or taken over, or when the plan before ended if that was later.
    Instant alone_since;
    std::optional<Planning> planning;
    std::optional<PlanChange> change;
    std::vector<std::byte> change_bytes;  // the next plan, until it is sent
    std::string change_note;              // what was predicted for the next plan
    std::string note_in_force;            // and for the plan in force, over the same network
    std::optional<Question> question;     // who has asked for the next plan
    std::optional<Queued> queued;         // who has asked for a plan after that
    std::set<std::uint16_t> left;         // ranks that have left in order
    Instant all_left_by = Instant::never();
    JobTables tables;
    Redraw redraw;
    std::optional<PlanOutlook> outlook;       // what was predicted last for the plan in force
    std::optional<PlanOutlook> next_outlook;  // what was predicted for the next plan
  };
  using Jobs = std::map<protocol::JobKey, Job>;
  /// Key and first epoch: an earlier run with the same key may not have ended on some node.
  using TakeoverName = std::pair<protocol::JobKey, std::uint32_t>;
  using Takeovers = std::map<TakeoverName, Takeover>;

  void on(api::NodeId from, const protocol::Join& m, Instant now);
  void on(api::NodeId from, const protocol::Prepared& m, Instant now);
  void on(api::NodeId from, const protocol::PlanRefused& m, Instant now);
  void on(api::NodeId from, const protocol::PlanEnded& m, Instant now);
  void on(api::NodeId from, const protocol::Replan& m, Instant now);
  void on(api::NodeId from, const protocol::Leave& m, Instant now);
  void on(api::NodeId from, const protocol::Failed& m, Instant now);
  void on(api::NodeId from, const protocol::DescribeBucket& m, Instant now);
  void on(api::NodeId from, const protocol::ReportLinks& m, Instant now);
  void on(api::NodeId from, const protocol::BucketBounds& m, Instant now);
  void on(api::NodeId from, const protocol::Report& m, Instant now);
  void on(api::NodeId from, const protocol::PlanIs& m, Instant now);

  void collect(Job& job, api::NodeId from, const protocol::Join& m, Instant now);
  std::optional<Denial> make_room(const protocol::Join& m);
  Instant wait_ends(const Job& job) const;
  std::string waiting_text(const Job& job) const;
  std::vector<api::NodeId> unheard() const;
  void refuse(api::NodeId node, const protocol::Join& m, const std::vector<std::uint16_t>& ranks,
              const Denial& denial);
  void refuse_all(Jobs::iterator job, const std::string& reason);
  void start(Jobs::iterator job, Instant now);
  void finish(Jobs::iterator job);
  Status order_plan(Job& job, PlanReason reason, const std::optional<PlanChoice>& choice,
                    const std::optional<Question>& question, Instant now);
  void take_plan(Jobs::iterator job, Planning planning, Result<PlanOffer> made, Instant now);
  /// The epoch of the next plan. No plan has the epoch 0.
  std::uint32_t next_epoch() const { return std::max(last_epoch_ + 1, std::uint32_t{1}); }
  Status begin_change(Job& job, api::Plan plan, Hosts hosts, Instant now);
  void decide_grants(Job& job);
  void prepare_start(Jobs::iterator job, Result<PlanOffer> made, Hosts hosts, Instant now);
  void prepare_answer(Job& job, const Planning& planning, Result<PlanOffer> made, Instant now);
  void prepare_join(Job& job, Result<PlanOffer> made, Hosts hosts, Instant now);
  void prepare_redraw(Job& job, Result<PlanOffer> made, Hosts hosts, Instant now);
  void drop_planning(Job& job, const std::string& reason);
  static void note_refused(Job& job, const PlanOutlook& wanted, const std::string& reason);
  static bool is_busy(const Job& job);
  std::uint64_t network_version() const { return reports_.version() + relays_.version(); }
  Instant redraw_due(const Job& job) const;
  void tick_planning(Jobs::iterator job, Instant now);
  Instant planning_deadline(const Job& job) const;
  Result<Hosts> hosts_with(const Job& job, const std::optional<PlanChoice>& choice,
                           Instant now) const;
  Status check_departing(const Job& job, const api::Plan& plan) const;
  void on_late_join(Jobs::iterator job, api::NodeId from, const protocol::Join& m, Instant now);
  std::string why_not_late(const Job& job, api::NodeId from, const protocol::Join& m) const;
  void take_in(Job& job, Instant now);
  static bool is_on_its_way(const Job& job, api::NodeId node);
  void refuse_joining(Job& job, api::NodeId node, const Denial& denial);
  void refuse_all_joining(Job& job, const std::string& reason, Instant settled_by);
  bool on_leave_before_joining(Job& job, api::NodeId from, const protocol::Leave& m);
  bool has_departed(Jobs::iterator job, api::NodeId node);
  static Instant joining_due(const Job& job);
  static std::vector<std::uint16_t> ranks_of(const Job& job);
  static std::size_t rank_count(const Job& job);
  void send_prepare(Job& job);
  void replan(Job& job, const Question& question, const PlanChoice& choice, Instant now);
  void commit(Job& job, Instant now);
  void abort(Job& job, const std::string& reason);
  void lose_node(Jobs::iterator job, api::NodeId node, const std::string& reason);
  void tick_plans(Jobs::iterator job, Instant now);
  static Instant plans_deadline(const Job& job);
  void tell_answer(const Job& job, const Question& question, bool committed,
                   const std::string& text);
  void answer(Job& job, bool committed, const std::string& text);
  void answer_all(Job& job, const std::string& text);
  std::string change_text(const Job& job) const;
  static std::set<api::NodeId> nodes_of(const Job& job);
  void tell_ended(Job& job);
  void close_change(Job& job, Instant now);
  bool hold(api::NodeId from, const protocol::NodeMessage& message, Instant now);
  void answer_late(const Job& job, api::NodeId from, const protocol::Report& m);
  bool has_slot_for_takeover() const;
  void begin_takeover(api::NodeId from, const protocol::Report& m, Instant now);
  void advance(const TakeoverName& name, Instant now);
  void settle(const TakeoverName& name, const std::string& failed, Instant now);
  std::string why_not_beside_other_run(const TakeoverName& name) const;
  void end_earlier_run(const protocol::JobKey& key);
  std::string resume(const Takeover& from, Instant now);
  std::string restore(const Takeover& from, Instant now);
  Job inherited(const Takeover& from, const api::Plan& plan, Instant now) const;
  Status inherit_change(Job& job, const Takeover& from, Instant now) const;
  void count_on_from(std::uint32_t epoch);
  void bring_up(const Job& job, const Takeover& from);
  void inherit_tables(Job& job, const Takeover& from);
  void lose_in_takeovers(api::NodeId node, const std::string& why, bool is_back, Instant now);
  void tick_takeovers(Instant now);
  Jobs::iterator find_changing(const protocol::JobKey& key, std::uint32_t epoch);
  void ignore(api::NodeId from, const char* message, std::uint32_t epoch);
  void send_updates(Job& job, Instant now);
  void resolve_bounds(Job& job);
  void fail(Jobs::iterator job, const std::string& reason, api::NodeId not_to = api::kNoNode);
  std::vector<std::uint16_t> missing_ranks(const Job& job) const;
  Jobs::iterator find(const protocol::JobKey& key, std::uint32_t first_epoch);

  const SessionConfig& config_;
  Outbox& outbox_;
  Jobs jobs_;
  LinkReports reports_;
  Relays relays_;
  std::set<api::NodeId> in_contact_;  // nodes that have answered since they were last lost
  std::uint64_t last_ticket_ = 0;
  Takeovers takeovers_;
  std::uint32_t last_epoch_;
};

}  // namespace gradplane::session
