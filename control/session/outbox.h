// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "control/protocol/node_messages.h"
#include "control/session/actions.h"
#include "control/session/term.h"
#include "control/session/views.h"

namespace gradplane::session {

/// Collects the messages and actions of Member and Coordinator. SessionManager takes them out. Both
/// also learn here which node coordinates.
struct Outbox {
  struct Letter {
    api::NodeId node = api::kNoNode;
    bool to_coordinator = false;  // else to the member on this node; a node may be both
    Term term;                    // the term in which it was written
    protocol::NodeMessage message;
  };

  void tell_coordinator(protocol::NodeMessage message) {
    letters.push_back({term.coordinator, true, term, std::move(message)});
  }
  void tell_member(api::NodeId node, protocol::NodeMessage message) {
    letters.push_back({node, false, term, std::move(message)});
  }
  /// The node that coordinates now.
  api::NodeId coordinator() const { return term.coordinator; }
  void count(Refusal refusal) { ++refusals[static_cast<std::size_t>(refusal)]; }
  /// Counts and logs a message about a plan that came twice, late or out of order.
  void ignore(std::string text) {
    ++stale_plan_messages;
    log(LogLevel::kDebug, std::move(text));
  }
  void act(Action action) { actions.push_back(std::move(action)); }
  void log(LogLevel level, std::string text) { act(LogLine{level, std::move(text)}); }

  Term term;  // the term that this node follows
  std::deque<Letter> letters;
  std::vector<FailureView> failures;  // their time is set later
  std::deque<Action> actions;
  RefusalCounters refusals{};             // since the start
  std::uint64_t stale_plan_messages = 0;  // since the start
  std::uint64_t bad_link_samples = 0;     // since the start
};

}  // namespace gradplane::session
