// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <ns3/application.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/engine/engine.h"
#include "tests/ns3/port.h"
#include "tests/ns3/star.h"

namespace gradplane::ns3_incast {

/// Of one host's engine, besides what the scenario says.
struct EngineSettings {
  std::uint16_t node = 0;
  bool knows_link = false;  // its rate
  bool grants = false;      // and then the queue too
  CongestionSettings congestion;
};

/// The production engine as an application of ns-3: a UDP socket is its port, and the virtual clock
/// runs its poll loop, which here takes no time. A host but the receiver has one rank.
class EngineHost : public ns3::Application {
 public:
  /// `summed` is called when the rank has a sum.
  EngineHost(const Scenario& scenario, const api::Plan& plan, const EngineSettings& settings,
             std::function<void()> summed);

  /// The rank submits a round; `expected` is its sum, and must stay until it has come.
  void submit(std::uint32_t round, const std::vector<float>& expected);

  /// After the application has started.
  SocketPort& port() { return *port_; }
  /// What was wrong; empty when nothing was.
  const std::string& failure() const { return failure_; }

 private:
  void StartApplication() override;
  void turn();
  bool take_sums();
  void check(const ipc::Completion& completion);
  void schedule();
  void fail(const std::string& what);

  const Scenario& scenario_;
  EngineSettings settings_;
  std::vector<Ipv4> nodes_;
  std::function<void()> summed_;
  api::CommandQueue commands_;
  api::EventQueue events_;
  api::ReportQueue reports_;
  std::shared_ptr<engine::RankChannel> channel_;  // none at the receiver
  std::optional<ipc::RingProducer<ipc::Submission>> submissions_;
  std::optional<ipc::RingConsumer<ipc::Completion>> completions_;
  std::unique_ptr<engine::JobRuntime> runtime_;
  std::unique_ptr<SocketPort> port_;
  std::unique_ptr<engine::Engine> engine_;
  const std::vector<float>* expected_ = nullptr;
  ns3::EventId timer_;
  Instant timer_at_ = Instant::never();
  std::string failure_;
};

}  // namespace gradplane::ns3_incast
