// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "control/protocol/node_messages.h"
#include "control/session/actions.h"
#include "control/session/outbox.h"

namespace gradplane::session {

/// The most unanswered questions of one node's operators.
inline constexpr std::size_t kMaxReplanQuestions = 16;
/// How long the coordinator keeps a question that comes during a change of the plan.
inline constexpr Duration kReplanWait = Duration::seconds(5);

/// How long a planner may take.
inline constexpr Duration kPlanningLimit = Duration::seconds(30);

/// How long the coordinator waits until all nodes have prepared a plan. A silent node is given up
/// after suspect_after; this limit is for a node that lives and does not answer.
Duration prepare_timeout(const SessionConfig& config);

/// The questions of operators on this node that the coordinator has not answered. Pure; messages
/// and actions go to the outbox.
class ReplanQuestions {
 public:
  ReplanQuestions(const SessionConfig& config, Outbox& outbox) : config_(config), outbox_(outbox) {}

  /// Sends a question to the coordinator. An Error: it is refused at once.
  Status ask(AskerHandle asker, const protocol::JobKey& key, const PlanChoice& choice, Instant now);
  void on_answer(const protocol::ReplanAnswer& answer);
  void on_coordinator_lost(const std::string& reason);
  void tick(Instant now);
  Instant next_deadline() const;
  bool empty() const { return open_.empty(); }

 private:
  struct Question {
    AskerHandle asker = 0;
    Instant until;
  };

  const SessionConfig& config_;
  Outbox& outbox_;
  std::map<std::uint32_t, Question> open_;  // by ticket
  std::uint32_t last_ticket_ = 0;
};

}  // namespace gradplane::session
