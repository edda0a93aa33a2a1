// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string_view>
#include <vector>

#include "tests/ns3/engine_host.h"
#include "tests/ns3/rounds.h"
#include "tests/ns3/star.h"

namespace gradplane::ns3_incast {

using ns3_host::EngineHost;
using ns3_host::EngineJob;
using ns3_host::EngineSettings;

/// gradplane on a star: every host has the production engine, the receiver is the root and has no
/// rank. A push has ended when every block of it has come to the root's port, which sums it in the
/// same instant; the ranks check the sums that come back.
class GradplanePush : public Contestant {
 public:
  GradplanePush(const Scenario& scenario, Star& star, const EngineSettings& settings);

  /// What engines of that name (without "gradplane-") have.
  static EngineSettings settings_of(const Scenario& scenario, std::string_view name);

  void set_rounds(Rounds& rounds) { rounds_ = &rounds; }
  void begin(std::size_t sender, std::uint32_t round) override;
  bool sums() const override { return true; }
  /// After the last round.
  void report(Outcome& outcome) const;

 private:
  void watch();
  void on_root_received(std::span<const std::byte> datagram);
  void on_sender_received(std::size_t sender, std::span<const std::byte> datagram);
  void on_sender_sent(std::span<const std::byte> datagram);

  const Scenario& scenario_;
  EngineJob job_;
  Rounds* rounds_ = nullptr;
  std::vector<ns3::Ptr<EngineHost>> hosts_;
  std::vector<float> expected_;  // of round expected_of_
  std::uint32_t expected_of_ = 0;
  std::uint32_t blocks_;                      // of a push
  std::vector<std::vector<bool>> has_block_;  // of each sender, in the current round
  std::vector<std::uint32_t> missing_;        // of each sender
  std::uint64_t sent_bytes_ = 0;              // of pushes, without headers
  std::vector<std::uint32_t> marks_heard_;    // packets, as the last ack to each sender told
};

}  // namespace gradplane::ns3_incast
