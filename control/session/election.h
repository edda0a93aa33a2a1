// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "control/session/actions.h"
#include "control/session/term.h"
#include "dataplane/base/time.h"

namespace gradplane::session {

/// The size of the first group of nodes that is asked whether they live. If none of them answers,
/// the next group is twice as large, and so on. So there are few groups even in a cluster of a
/// thousand nodes.
inline constexpr std::size_t kFirstAsked = 8;

/// How long a node waits for the answers of one group: less than suspect_after, which has already
/// passed when a coordinator counts as lost.
Duration election_patience(const SessionConfig& config);

/// Chooses another coordinator for one node that has lost the one of its term: the node with the
/// lowest number that answers, and this node itself if no lower one does. Pure.
///
/// Nodes need no vote if they make different choices. Each choice is a term of its own, and every
/// node follows the highest term of which it hears.
class Election {
 public:
  explicit Election(const SessionConfig& config) : config_(config) {}

  /// The coordinator of `term` is lost. `is_back`: it answers again, but has forgotten everything.
  /// Returns the term to follow, or nothing yet, as the next two functions do.
  std::optional<Term> begin(const Term& term, bool is_back, Instant now);
  void stop() { group_.clear(); }
  bool under_way() const { return !group_.empty(); }
  /// This node has sent something after it was asked.
  std::optional<Term> on_heard(api::NodeId node);
  std::optional<Term> tick(Instant now);
  Instant next_deadline() const { return under_way() ? answer_by_ : Instant::never(); }
  /// Only what a node sends after this time counts as an answer.
  Instant asked_at() const { return asked_at_; }
  /// Marks the nodes that are asked, by node id.
  void mark_asked(std::vector<bool>& involved) const;

 private:
  struct Asked {
    api::NodeId node = api::kNoNode;
    bool answered = false;
  };
  std::optional<Term> ask_next(Instant now);
  std::optional<Term> choose(api::NodeId node);

  const SessionConfig& config_;
  Term lost_;
  api::NodeId next_ = 0;  // the first node to ask after the present group
  std::size_t size_ = kFirstAsked;
  std::vector<Asked> group_;  // in order; empty: no election is under way
  Instant asked_at_;
  Instant answer_by_;
};

}  // namespace gradplane::session
