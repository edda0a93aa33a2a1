// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/api/commands.h"
#include "dataplane/base/endpoint.h"
#include "dataplane/base/fixed_queue.h"
#include "dataplane/base/time.h"
#include "dataplane/engine/engine_options.h"
#include "dataplane/engine/job_runtime.h"
#include "dataplane/engine/shared_link.h"
#include "dataplane/engine/stage_clock.h"
#include "dataplane/job/node.h"
#include "dataplane/port/port.h"

namespace gradplane::engine {

/// One poll core. It moves packets between its queue of the node's port, the protocol, and the
/// channels of the trainers. A node may have several engines; each runs its own jobs or its own
/// trees of a job, and they share no state. Only the constructor runs on the control thread;
/// everything else belongs to the poll thread. After construction nothing here allocates, locks,
/// logs or throws.
class Engine {
 public:
  Engine(EngineOptions options, port::PortQueue& queue, api::CommandQueue& commands,
         api::EventQueue& events, api::ReportQueue& reports);

  /// Runs one turn of the poll loop. True if there was work.
  bool poll_once(Instant now);
  /// Called after the last turn. Sends the control datagrams that are still to go, and at once what
  /// the port would send in later turns: that it has left its groups.
  void finish(Instant now);

  /// The time at which poll_once() must run again if neither a packet nor a submission comes
  /// before.
  Instant next_deadline(Instant now) const;
  /// True if this engine has jobs. A sleep must then be short.
  bool has_jobs() const { return job_count_ > 0; }

  /// For tests.
  const grants::GrantScheduler& grants() const { return node_.grants(); }
  const awareness::IncomingLinks& links() const { return node_.links(); }

  /// Called before a sleep. Asks the ranks to ring the doorbell. False if work has come meanwhile,
  /// so the loop must not sleep.
  bool prepare_sleep();
  void end_sleep();

 private:
  bool receive(Instant now);
  bool take_submissions();
  bool report_events();
  bool transmit(Instant now);
  bool housekeep(Instant now);
  void report_rounds();

  bool obey(const api::Command& command);
  void add_job(JobRuntime* job);
  void add_bucket(JobRuntime* job, aggregate::Bucket* bucket);
  void remove_job(JobRuntime* job);
  bool has_job(const JobRuntime* job) const;
  void prepare_plan(const api::Command& command);
  void tell_prepared(JobRuntime* job, std::uint32_t epoch, std::uint32_t horizon);
  void commit_plan(const api::Command& command);
  void abort_plan(const api::Command& command);
  bool return_ended_plan(JobRuntime* job);
  void tell_of_plan(api::Event::Kind kind, JobRuntime* job, std::unique_ptr<job::Plan> plan,
                    PlanRefusal refusal = PlanRefusal::kNone);
  void give_up_control(std::uint16_t node, std::span<const std::byte> body);
  void report_mismatch(JobRuntime* job, const job::Event& event);
  void report_stall(JobRuntime* job, const job::Event& event);
  void tell(const api::Event& event);
  std::uint32_t write_control(std::span<std::byte> out, const api::ControlBytes& control);
  void share_link(Instant now);
  void fill_snapshot(api::EngineSnapshot& out);
  void copy_links(api::EngineSnapshot& out);
  std::optional<std::uint16_t> node_of(Ipv4 address);

  EngineOptions options_;
  port::PortQueue& queue_;
  api::CommandQueue& commands_;
  api::EventQueue& events_;
  api::ReportQueue& reports_;
  job::Node node_;
  std::vector<std::pair<Ipv4, std::uint16_t>> node_by_address_;  // sorted
  std::optional<std::pair<Ipv4, std::uint16_t>> last_sender_;
  std::array<JobRuntime*, kMaxJobs> jobs_{};
  std::size_t job_count_ = 0;
  FixedQueue<api::ControlBytes> control_out_;
  LinkDemand demand_;
  // When the engine next looks for a lease; never if it has the whole link.
  Instant next_lease_ = Instant::never();
  StageClock stages_;
  api::Event scratch_event_;
  api::JobRoundReport scratch_report_;
  Instant next_beat_;
  Instant now_;                // when the current turn began
  Instant emptied_at_;         // when a poll last left the receive queue empty
  std::size_t next_link_ = 0;  // index of the first link in the next snapshot
  std::uint64_t polls_ = 0;
  std::uint64_t busy_polls_ = 0;
  std::uint64_t sleeps_ = 0;
  std::uint64_t rx_bursts_ = 0;  // receive bursts that were not empty
  std::uint64_t tx_bursts_ = 0;
  std::uint64_t control_lost_ = 0;
  std::uint32_t control_sent_ = 0;  // also the number of the last control packet
  std::array<std::uint64_t, kRankFaults> rank_faults_{};
  std::uint64_t missed_ = 0;  // the queue's rx_missed counter when it was last read
};

}  // namespace gradplane::engine
