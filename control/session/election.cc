// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/election.h"

#include <algorithm>

namespace gradplane::session {

Duration election_patience(const SessionConfig& config) {
  return config.suspect_after / 2;
}

std::optional<Term> Election::begin(const Term& term, bool is_back, Instant now) {
  if (under_way()) return std::nullopt;
  lost_ = term;
  if (is_back) return choose(term.coordinator);
  next_ = 0;
  size_ = kFirstAsked;
  return ask_next(now);
}

/// Asks the next group of nodes with lower numbers than this one.
std::optional<Term> Election::ask_next(Instant now) {
  group_.clear();
  for (; next_ < config_.self && group_.size() < size_; ++next_)
    if (next_ != lost_.coordinator) group_.push_back({next_, false});
  if (group_.empty()) return choose(config_.self);
  size_ *= 2;
  asked_at_ = now;
  answer_by_ = now + election_patience(config_);
  return std::nullopt;
}

std::optional<Term> Election::choose(api::NodeId node) {
  group_.clear();
  return Term{lost_.number + 1, node};
}

std::optional<Term> Election::on_heard(api::NodeId node) {
  const auto asked =
      std::find_if(group_.begin(), group_.end(), [node](const Asked& a) { return a.node == node; });
  if (asked == group_.end()) return std::nullopt;
  asked->answered = true;
  // No node with a lower number is left that could still answer.
  if (asked == group_.begin()) return choose(node);
  return std::nullopt;
}

std::optional<Term> Election::tick(Instant now) {
  if (!under_way() || now < answer_by_) return std::nullopt;
  // If this node itself was stopped, others may have answered meanwhile, so it waits once more.
  if (now - answer_by_ > config_.suspect_after / 2) {
    asked_at_ = now;
    answer_by_ = now + election_patience(config_);
    return std::nullopt;
  }
  const auto first =
      std::find_if(group_.begin(), group_.end(), [](const Asked& a) { return a.answered; });
  return first == group_.end() ? ask_next(now) : choose(first->node);
}

void Election::mark_asked(std::vector<bool>& involved) const {
  for (const Asked& asked : group_) involved[asked.node] = true;
}

}  // namespace gradplane::session
