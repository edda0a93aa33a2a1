// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "control/protocol/node_messages.h"
#include "control/session/actions.h"
#include "control/session/bucket_tables.h"
#include "control/session/outbox.h"
#include "control/session/views.h"

namespace gradplane::session {

/// A node's own part in jobs: its ranks, and the plans that it was told to install. Pure;
/// everything it wants done goes to the outbox.
///
///   waiting  -> prepared   on Prepare: installed, answered
///   prepared -> ready      on Commit: the ranks may begin
///   any      -> gone       Failed, Finished, the coordinator lost, or (waiting) the last rank left
class Member {
 public:
  Member(const SessionConfig& config, Outbox& outbox);

  Status attach(RankHandle handle, const protocol::JobKey& key, std::uint32_t rank,
                std::uint32_t world_size, const std::string& label);
  void detach(RankHandle handle, bool clean);
  /// From the coordinator. False: a message that no coordinator sends to a member.
  bool on_message(const protocol::NodeMessage& message);
  void on_coordinator_connected();
  void on_coordinator_lost(const std::string& why);
  void on_job_error(std::uint32_t job_id, const std::string& text);
  /// What lies in a bucket of this rank's job. Each bucket once.
  void describe(RankHandle handle, const api::BucketBounds& table);
  /// Sends the coordinator one part of a table, when some is left. False: none is.
  bool send_table_part();

  bool has_jobs() const { return !jobs_.empty(); }
  std::vector<JobView> views() const;

 private:
  struct Job {
    protocol::JobKey key{};
    std::uint32_t id = 0;
    JobState state = JobState::kWaiting;
    std::uint32_t attempt = 0;  // while waiting; 0: no rank of ours began it
    std::uint32_t epoch = 0;    // from Prepare on
    std::uint32_t world_size = 0;
    std::string label;
    std::vector<LocalRank> ranks;
    std::vector<api::Member> members;           // from Prepare on
    protocol::Waiting waiting;                  // what the ranks were told last
    std::uint32_t logged_missing = UINT32_MAX;  // how many were missing when it was last logged
    // Of rank 0's buckets, if it is here: what the coordinator has not been sent yet.
    std::deque<std::vector<std::byte>> table_parts;
    TableCollector bounds;  // what the coordinator sends
  };
  using Jobs = std::map<protocol::JobKey, Job>;

  void on(const protocol::WaitingFor& m);
  void on(const protocol::Refused& m);
  void on(const protocol::Prepare& m);
  void on(const protocol::Commit& m);
  void on(const protocol::Failed& m);
  void on(const protocol::Finished& m);
  void on(const protocol::BucketBounds& m);

  Status may_add(const protocol::JobKey& key) const;
  Status may_join(const Job& job, std::uint32_t rank, std::uint32_t world_size) const;
  Result<api::Plan> acceptable_plan(const protocol::Prepare& m) const;
  void decline(const protocol::Prepare& m, const std::string& reason);
  void install(const protocol::Prepare& m, api::Plan plan);
  void send_join(const Job& job);
  void notify(const Job& job, const RankNotice& notice);
  void tell_waiting(Job& job, protocol::Waiting waiting);
  void end(Jobs::iterator job, const std::string& reason);
  Jobs::iterator find(const protocol::JobKey& key, std::uint32_t epoch);

  const SessionConfig& config_;
  Outbox& outbox_;
  Jobs jobs_;
  std::uint32_t last_attempt_ = 0;
  std::string coordinator_trouble_;  // why it cannot be reached; empty: nothing known
};

}  // namespace gradplane::session
