// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/session_manager.h"

#include <algorithm>
#include <utility>

#include "control/session/text.h"
#include "dataplane/base/assert.h"

namespace gradplane::session {

SessionManager::SessionManager(SessionConfig config)
    : config_(std::move(config)),
      member_(config_, outbox_),
      coordinator_(config_, outbox_),
      election_(config_) {
  outbox_.term = {0, config_.coordinator};
  GP_ASSERT(config_.node_names.size() <= kMaxNodes);
  GP_ASSERT(config_.self < config_.node_names.size());
  GP_ASSERT(config_.coordinator < config_.node_names.size());
  GP_ASSERT(config_.check_plan);
}

Status SessionManager::attach(const NewRank& rank, Instant now) {
  const Status status = member_.attach(rank, now);
  deliver(now);
  return status;
}

void SessionManager::detach(RankHandle handle, bool clean, Instant now) {
  member_.detach(handle, clean);
  deliver(now);
}

void SessionManager::on_job_error(std::uint32_t job_id, const std::string& text, Instant now) {
  member_.on_job_error(job_id, text);
  deliver(now);
}

void SessionManager::on_bucket_refused(std::uint32_t job_id, const std::string& text, Instant now) {
  member_.on_bucket_refused(job_id, text);
  deliver(now);
}

void SessionManager::on_plan_prepared(std::uint32_t job_id, std::uint32_t epoch,
                                      std::uint32_t horizon, Instant now) {
  member_.on_plan_prepared(job_id, epoch, horizon);
  deliver(now);
}

void SessionManager::on_plan_refused(std::uint32_t job_id, std::uint32_t epoch,
                                     const std::string& text, Instant now) {
  member_.on_plan_refused(job_id, epoch, text);
  deliver(now);
}

void SessionManager::on_plan_ended(std::uint32_t job_id, std::uint32_t epoch, Instant now) {
  member_.on_plan_ended(job_id, epoch);
  deliver(now);
}

void SessionManager::on_plan_made(std::uint64_t ticket, Result<PlanOffer> made, Instant now) {
  coordinator_.on_plan_made(ticket, std::move(made), now);
  involvement_changed_ = true;
  deliver(now);
}

void SessionManager::on_links(std::span<const protocol::LinkSample> samples, Instant now) {
  const auto link = links_.find(outbox_.coordinator());
  // A report can wait until there is room, so that other messages do not wait behind it.
  const bool has_room = link == links_.end() || link->second.has_room_for_table();
  if (!member_.has_jobs() || !has_room) return;
  std::vector<protocol::LinkSample> news = link_reporter_.select(samples, now);
  if (news.empty()) return;
  outbox_.tell_coordinator(protocol::ReportLinks{{}, std::move(news)});
  deliver(now);
}

Status SessionManager::replan(AskerHandle asker, std::uint32_t job_id, const PlanChoice& choice,
                              Instant now) {
  auto key = member_.key_of(job_id);
  if (!key) key = coordinator_.key_of(job_id);
  if (!key) {
    return Error{job_text("", job_id) + " has no part on " + node_text(config_, config_.self) +
                 "; ask a daemon whose gradplane status shows it"};
  }
  const Status asked = member_.replan(asker, *key, choice, now);
  deliver(now);
  return asked;
}

void SessionManager::describe_bucket(RankHandle handle, const api::BucketBounds& table,
                                     Instant now) {
  member_.describe(handle, table);
  deliver(now);
}

DatagramDrop SessionManager::on_datagram(std::span<const std::byte> bytes, Instant now) {
  Datagram datagram;
  DatagramDrop drop = decode_datagram(config_.cluster_key, bytes, datagram);
  if (drop == DatagramDrop::kCount &&
      (datagram.destination != config_.self || datagram.source == config_.self ||
       datagram.source >= config_.node_names.size()))
    drop = DatagramDrop::kNotForUs;
  if (drop != DatagramDrop::kCount) {
    count(drop);
    return drop;
  }
  PeerLink& link = touch(datagram.source, now);
  count(link.receive(datagram, now));
  if (link.connected() && link.heard_at() >= now) coordinator_.on_node_heard(datagram.source);
  if (election_.under_way() && link.heard_at() >= election_.asked_at()) {
    if (is_doubt_ && datagram.source == outbox_.coordinator())
      end_doubt(now);
    else
      follow_choice(election_.on_heard(datagram.source), now);
  }
  deliver(now);
  return DatagramDrop::kCount;
}

void SessionManager::tick(Instant now) {
  for (auto& [node, link] : links_) {
    if (link.next_deadline() > now) continue;
    link.tick(now);
    touched_.insert(node);
  }
  coordinator_.tick(now);
  member_.tick(now);
  tick_election(now);
  deliver(now);
}

void SessionManager::count(DatagramDrop drop) {
  if (drop != DatagramDrop::kCount) ++drops_[static_cast<std::size_t>(drop)];
}

PeerLink& SessionManager::touch(api::NodeId node, Instant now) {
  touched_.insert(node);
  const auto found = links_.find(node);
  if (found != links_.end()) return found->second;
  LinkConfig link;
  link.self = config_.self;
  link.peer = node;
  link.incarnation = config_.incarnation;
  link.key = config_.cluster_key;
  link.heartbeat = config_.heartbeat;
  link.suspect_after = config_.suspect_after;
  return links_.try_emplace(node, link, now).first->second;
}

void SessionManager::greet(Instant now) {
  if (coordinates()) return;
  greets_ = involvement_changed_ = true;
  deliver(now);
}

void SessionManager::say_goodbye(Instant now) {
  for (auto& [node, link] : links_) touch(node, now).say_goodbye(now);
  deliver(now);
}

void SessionManager::deliver(Instant now) {
  // Reports lead to letters, and a letter may lose a link whose queue is full, which leads to a
  // report. Each turn ends a job or empties a queue, so the loop ends.
  take_reports(now);
  do {
    deliver_letters(now);
    take_reports(now);
  } while (!outbox_.letters.empty() || send_table_parts());
  if (std::exchange(involvement_changed_, false)) watch_involved(now);
  for (const api::NodeId node : touched_)
    for (std::vector<std::byte>& bytes : links_.at(node).take_datagrams())
      outbox_.act(SendDatagram{node, std::move(bytes)});
  touched_.clear();
  keep_failures(now);
  drops_[static_cast<std::size_t>(DatagramDrop::kStalePlan)] = outbox_.stale_plan_messages;
  drops_[static_cast<std::size_t>(DatagramDrop::kBadSample)] = outbox_.bad_link_samples;
}

void SessionManager::take_reports(Instant now) {
  for (const api::NodeId node : touched_) on_report(node, links_.at(node).take_report(), now);
}

void SessionManager::on_report(api::NodeId node, const LinkReport& report, Instant now) {
  if (!report.lost.empty()) {
    outbox_.log(LogLevel::kWarn, node_text(config_, node) + " " + report.lost);
    coordinator_.on_node_lost(node, report.lost, report.connected, now);
    if (node == outbox_.coordinator()) on_coordinator_lost(report, now);
    involvement_changed_ = true;
  }
  if (report.connected) {
    outbox_.log(LogLevel::kDebug, node_text(config_, node) + " is in contact");
    coordinator_.on_node_connected(node);
    if (node == outbox_.coordinator()) {
      member_.on_coordinator_connected();
      if (std::exchange(greets_, false)) {
        outbox_.log(LogLevel::kInfo, node_text(config_, node) + ", which coordinates, answers");
        involvement_changed_ = true;
      }
    }
    if (is_rival(node)) tell_term(node, now);
  }
  for (const std::vector<std::byte>& bytes : report.messages) take_envelope(node, bytes, now);
}

void SessionManager::deliver_letters(Instant now) {
  while (!outbox_.letters.empty()) {
    const Outbox::Letter letter = std::move(outbox_.letters.front());
    outbox_.letters.pop_front();
    if (letter.term != outbox_.term) continue;
    involvement_changed_ = true;
    if (letter.node == config_.self)
      dispatch(config_.self, letter.to_coordinator, letter.message, now);
    else
      touch(letter.node, now).send(seal(letter.term, protocol::encode(letter.message)), now);
  }
}

bool SessionManager::send_table_parts() {
  const auto has_room = [this](api::NodeId node) {
    const auto link = links_.find(node);
    return link == links_.end() || link->second.has_room_for_table();
  };
  const bool described = has_room(outbox_.coordinator()) && member_.send_table_part();
  return coordinator_.send_table_parts(has_room) || described;
}

void SessionManager::keep_failures(Instant now) {
  for (FailureView& failure : outbox_.failures) {
    failure.at = now;
    failures_.push_back(std::move(failure));
    if (failures_.size() > kFailuresKept) failures_.pop_front();
  }
  outbox_.failures.clear();
}

void SessionManager::dispatch(api::NodeId from, bool to_coordinator,
                              const protocol::NodeMessage& message, Instant now) {
  involvement_changed_ = true;
  bool taken = false;
  if (to_coordinator)
    taken = coordinator_.on_message(from, message, now);
  else if (from == outbox_.coordinator())
    taken = member_.on_message(message, now);
  if (!taken) count(DatagramDrop::kNotExpected);
}

void SessionManager::watch_involved(Instant now) {
  std::vector<bool> involved(config_.node_names.size());
  coordinator_.mark_involved(involved);
  const bool greets = greets_ && outbox_.coordinator() == config_.coordinator;
  if (greets || member_.needs_coordinator()) involved[outbox_.coordinator()] = true;
  mark_rivals(involved);
  election_.mark_asked(involved);
  for (std::size_t i = 0; i < involved.size(); ++i) {
    const auto node = static_cast<api::NodeId>(i);
    if (node == config_.self) continue;
    const auto link = links_.find(node);
    const bool watched = link != links_.end() && link->second.watched();
    if (watched != involved[i]) touch(node, now).set_watched(involved[i], now);
    // A rival may have been watched before this node began to coordinate: as its own coordinator.
    if (!involved[i])
      told_rivals_.erase(node);
    else if (is_rival(node) && told_rivals_.insert(node).second)
      tell_term(node, now);
  }
}

std::optional<Action> SessionManager::next_action() {
  if (outbox_.actions.empty()) return std::nullopt;
  Action action = std::move(outbox_.actions.front());
  outbox_.actions.pop_front();
  return action;
}

Instant SessionManager::next_deadline() const {
  Instant deadline = std::min({coordinator_.next_deadline(), member_.next_deadline(),
                               election_.next_deadline(), doubt_at()});
  for (const auto& [node, link] : links_) deadline = std::min(deadline, link.next_deadline());
  return deadline;
}

std::vector<JobView> SessionManager::jobs() const {
  std::vector<JobView> views = coordinator_.views();
  for (JobView& mine : member_.views()) {
    const bool known = std::any_of(views.begin(), views.end(),
                                   [&](const JobView& view) { return view.job_id == mine.job_id; });
    if (!known) views.push_back(std::move(mine));
  }
  return views;
}

std::vector<PeerView> SessionManager::peers(Instant now) const {
  std::vector<PeerView> views;
  for (const auto& [node, link] : links_) {
    const bool is_heard = link.heard_at() != Instant();
    views.push_back({node, link.connected(), link.watched(),
                     is_heard ? std::optional(now - link.heard_at()) : std::nullopt, link.rtt(),
                     link.retransmissions()});
  }
  return views;
}

}  // namespace gradplane::session
