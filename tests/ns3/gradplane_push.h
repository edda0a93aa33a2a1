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

/// gradplane on a star. Every host has the production engine. The receiver is the root and has no
/// rank. A push ends when all its blocks have arrived at the root's port, which sums them in the
/// same instant. The ranks check the sums that they get.
class GradplanePush : public Contestant {
 public:
  GradplanePush(const Scenario& scenario, Star& star, const EngineSettings& settings);

  /// The settings of engines with this name, without "gradplane-".
  static EngineSettings settings_of(const Scenario& scenario, std::string_view name);

  void set_rounds(Rounds& rounds) { rounds_ = &rounds; }
  void begin(std::size_t sender, std::uint32_t round) override;
  bool sums() const override { return true; }
  /// Adds counters to the outcome. Call it after the last round.
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
  std::uint32_t blocks_;                      // number of blocks in a push
  std::vector<std::vector<bool>> has_block_;  // by sender, in the current round
  std::vector<std::uint32_t> missing_;        // number of blocks, by sender
  std::uint64_t sent_bytes_ = 0;              // of pushes, without headers
  std::vector<std::uint32_t> marks_heard_;    // marked packets, from the last ack to each sender
};

}  // namespace gradplane::ns3_incast
