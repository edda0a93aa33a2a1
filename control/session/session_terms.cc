// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How a node follows terms: its own choice, and what others say.
#include <algorithm>
#include <vector>

#include "control/session/session_manager.h"
#include "control/session/text.h"

namespace gradplane::session {

void SessionManager::take_envelope(api::NodeId from, std::span<const std::byte> bytes,
                                   Instant now) {
  const std::optional<Envelope> envelope = open_envelope(bytes);
  if (!envelope || envelope->term.coordinator >= config_.node_names.size() ||
      envelope->term.number > outbox_.term.number + kMaxTermStep) {
    count(DatagramDrop::kBadMessage);
    return;
  }
  if (envelope->term > outbox_.term) follow(envelope->term, now);
  if (envelope->term < outbox_.term) {
    if (!envelope->message.empty()) count(DatagramDrop::kStaleTerm);
    tell_term(from, now);
    return;
  }
  if (envelope->message.empty()) return;
  const auto parsed = protocol::parse_node_message(envelope->message);
  if (parsed.ok())
    dispatch(from, coordinates(), *parsed.message, now);
  else
    count(DatagramDrop::kBadMessage);
}

void SessionManager::tell_term(api::NodeId node, Instant now) {
  touch(node, now).send(seal(outbox_.term, {}), now);
}

void SessionManager::on_coordinator_lost(const LinkReport& report, Instant now) {
  const bool needed = member_.has_jobs();
  is_doubt_ = false;
  member_.on_coordinator_lost(report.lost);
  if (!needed || election_.under_way()) return;
  outbox_.log(LogLevel::kWarn, node_text(config_, outbox_.coordinator()) +
                                   ", which coordinates the jobs, is lost: looking for another "
                                   "node; jobs that run go on under their plans");
  follow_choice(election_.begin(outbox_.term, report.connected, now), now);
  involvement_changed_ = true;
}

/// When this node doubts its coordinator: it has been silent too long, and rounds wait for it.
Instant SessionManager::doubt_at() const {
  if (coordinates() || election_.under_way() || !member_.waits_for_word()) return Instant::never();
  const auto link = links_.find(outbox_.coordinator());
  return link == links_.end() ? Instant::never() : link->second.doubtful_at(doubt_since_);
}

void SessionManager::tick_election(Instant now) {
  std::optional<Term> choice = election_.tick(now);
  if (choice && is_doubt_ && choice->coordinator == config_.self) {
    // No node answers, so this node may be the one that is cut off.
    end_doubt(now);
    choice.reset();
  }
  follow_choice(choice, now);
  const Instant due = doubt_at();
  if (due > now) return;
  // If this node itself was stopped, its own pause must not count as silence of the coordinator.
  if (now - due > config_.heartbeat)
    doubt_since_ = now;
  else
    doubt_coordinator(now);
}

/// Looks for another coordinator. That one will ask all members what they have, and then either all
/// have the plan or none. The link to the silent coordinator stays as it is: if the coordinator
/// lives, it must not take this node for lost.
void SessionManager::doubt_coordinator(Instant now) {
  is_doubt_ = true;
  outbox_.log(LogLevel::kWarn, node_text(config_, outbox_.coordinator()) +
                                   ", which coordinates the jobs, is silent while rounds wait for "
                                   "its word on another plan: looking for another node");
  follow_choice(election_.begin(outbox_.term, false, now), now);
  involvement_changed_ = true;
}

/// Waits for the coordinator again, for as long as before.
void SessionManager::end_doubt(Instant now) {
  is_doubt_ = false;
  doubt_since_ = now;
  election_.stop();
  involvement_changed_ = true;
}

void SessionManager::follow_choice(const std::optional<Term>& choice, Instant now) {
  if (!choice) return;
  involvement_changed_ = true;
  follow(*choice, now);
}

/// Follows a term: from now on, messages of lower terms are ignored.
void SessionManager::follow(const Term& term, Instant now) {
  std::vector<bool> involved(config_.node_names.size());
  if (coordinates()) coordinator_.mark_involved(involved);
  coordinator_.resign();
  election_.stop();
  outbox_.term = term;
  term_since_ = now;
  told_rivals_.clear();
  involvement_changed_ = true;
  outbox_.log(LogLevel::kInfo, node_text(config_, term.coordinator) +
                                   " coordinates from now on (term " + std::to_string(term.number) +
                                   ")");
  if (term.number == 0)
    outbox_.log(LogLevel::kWarn, "another node's configuration lets " +
                                     node_text(config_, term.coordinator) +
                                     " coordinate first, and that of this node " +
                                     node_text(config_, config_.coordinator) +
                                     " (cluster.coordinator); use one configuration on all nodes");
  // The members of jobs that were coordinated here must report them to the new coordinator.
  for (std::size_t i = 0; i < involved.size(); ++i) {
    const auto node = static_cast<api::NodeId>(i);
    if (involved[i] && node != config_.self) tell_term(node, now);
  }
  member_.on_new_term();
  link_reporter_.forget();
}

/// Whether a node may coordinate besides this one: the coordinator of the configuration, and all
/// nodes with lower numbers, which an election prefers.
bool SessionManager::is_rival(api::NodeId node) const {
  if (!coordinates() || node == config_.self) return false;
  return node < config_.self || node == config_.coordinator;
}

void SessionManager::mark_rivals(std::vector<bool>& involved) const {
  if (!coordinator_.has_jobs()) return;
  for (std::size_t i = 0; i < involved.size(); ++i)
    if (is_rival(static_cast<api::NodeId>(i))) involved[i] = true;
}

}  // namespace gradplane::session
