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

/// So many nodes are asked first whether they live. If none of them answers, twice as many are
/// asked, and so on: even of a thousand nodes few groups are silent one after the other.
inline constexpr std::size_t kFirstAsked = 8;

/// How long a node waits for the answers of one group. A node that is lost was silent for
/// suspect_after already, so nobody waits much longer for the choice than for the suspicion.
Duration election_patience(const SessionConfig& config);

/// How one node chooses another coordinator when it has lost the one of its term: the node with
/// the lowest number that answers, itself at the latest. Pure.
///
/// Nodes that make different choices need no vote. Each choice is a term of its own, and the
/// highest one counts for everybody who hears of it.
class Election {
 public:
  explicit Election(const SessionConfig& config) : config_(config) {}

  /// The coordinator of `term` is lost. `is_back`: it answers again, without what it knew.
  /// The term to follow, or nothing yet.
  std::optional<Term> begin(const Term& term, bool is_back, Instant now);
  void stop() { group_.clear(); }
  bool under_way() const { return !group_.empty(); }
  /// This node has said something that is newer than the question.
  std::optional<Term> on_heard(api::NodeId node);
  std::optional<Term> tick(Instant now);
  Instant next_deadline() const { return under_way() ? answer_by_ : Instant::never(); }
  /// Since when an answer counts.
  Instant asked_at() const { return asked_at_; }
  /// Marks those that are asked.
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
  api::NodeId next_ = 0;  // whom to ask after the present group
  std::size_t size_ = kFirstAsked;
  std::vector<Asked> group_;  // in order; empty: no election is under way
  Instant asked_at_;
  Instant answer_by_;
};

}  // namespace gradplane::session
