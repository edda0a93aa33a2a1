// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <ns3/application.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/engine/engine.h"
#include "tests/ns3/port.h"

namespace gradplane::ns3_host {

/// The configuration of one host's engine.
struct EngineSettings {
  std::uint16_t node = 0;
  std::uint64_t link_bits_per_second = 0;  // of its own link; 0: unknown
  std::size_t buffer_bytes = 0;            // size of the queue before its link; 0: unknown
  bool grants = false;
  CongestionSettings congestion;
};

/// A job that all hosts run.
struct EngineJob {
  api::Plan plan;
  std::vector<Ipv4> addresses;  // by node
  std::size_t round_bytes = 0;
  std::size_t rank_count = 0;
};

/// The production engine as an application of ns-3. A UDP socket is its port. The virtual clock
/// runs its poll loop, which takes no time. A host has one rank or none.
class EngineHost : public ns3::Application {
 public:
  /// `job` must outlive the host. Calls `summed` when the rank has a sum.
  EngineHost(const EngineJob& job, const EngineSettings& settings,
             std::function<void(std::uint32_t round)> summed);

  /// The rank submits a round. `expected` is its sum, and must stay valid until the sum has come.
  /// At most kMaxInFlightRounds may be in flight.
  void submit(std::uint32_t round, const std::vector<float>& expected);

  /// Call it only after the application has started.
  SocketPort& port() { return *port_; }
  /// What went wrong; empty: nothing.
  const std::string& failure() const { return failure_; }

 private:
  void StartApplication() override;
  void turn();
  bool take_sums();
  void check(const ipc::Completion& completion);
  void schedule();
  void fail(const std::string& what);

  const EngineJob& job_;
  EngineSettings settings_;
  std::function<void(std::uint32_t round)> summed_;
  api::CommandQueue commands_;
  api::EventQueue events_;
  api::ReportQueue reports_;
  std::uint32_t rank_ = 0;
  std::shared_ptr<engine::RankChannel> channel_;  // null if there is no rank
  std::optional<ipc::RingProducer<ipc::Submission>> submissions_;
  std::optional<ipc::RingConsumer<ipc::Completion>> completions_;
  std::unique_ptr<engine::JobRuntime> runtime_;
  std::unique_ptr<SocketPort> port_;
  std::unique_ptr<engine::Engine> engine_;
  std::array<const std::vector<float>*, kMaxInFlightRounds> expected_{};  // by round
  ns3::EventId timer_;
  Instant timer_at_ = Instant::never();
  std::string failure_;
};

}  // namespace gradplane::ns3_host
