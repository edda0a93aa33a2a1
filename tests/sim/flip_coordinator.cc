// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/flip_coordinator.h"

#include <algorithm>

namespace gradplane::sim {
namespace {

bool has_part(const api::Plan& plan, std::size_t host) {
  return member_of(plan, static_cast<api::NodeId>(host)) != nullptr;
}

}  // namespace

FlipCoordinator::FlipCoordinator(const Scenario& scenario, Actions actions)
    : scenario_(scenario),
      actions_(std::move(actions)),
      dice_(scenario.seed + 1),
      hosts_(everybody(scenario).size()) {}

bool FlipCoordinator::joins(std::size_t host) const {
  return has_part(plan(), host) && !has_part(plan_before(), host);
}

bool FlipCoordinator::leaves(std::size_t host) const {
  return !has_part(plan(), host) && has_part(plan_before(), host);
}

/// The number of nodes with a part in the current plan change or in the plan before.
std::size_t FlipCoordinator::count_of_nodes() const {
  std::size_t count = plan_before().members.size();
  for (std::size_t h = 0; h < hosts_.size(); ++h) count += joins(h) ? 1 : 0;
  return count;
}

void FlipCoordinator::send(std::size_t host, Message::Kind kind, std::uint32_t round, Instant now) {
  if (is_stopped_) return;
  const std::int64_t most_us = scenario_.flip_message_max.count_ns() / 1000;
  const auto us = static_cast<std::int64_t>(dice_.below(static_cast<std::uint64_t>(most_us)));
  messages_.push_back(
      {.at = now + Duration::us(us + 1), .host = host, .kind = kind, .round = round});
}

void FlipCoordinator::send_all(Message::Kind kind, std::uint32_t round, Instant now) {
  answers_ = 0;
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    if (has_part(plan(), h) || has_part(plan_before(), h)) send(h, kind, round, now);
  }
}

Instant FlipCoordinator::next_deadline() const {
  Instant next = Instant::never();
  for (const Message& message : messages_) next = std::min(next, message.at);
  return next;
}

bool FlipCoordinator::step(std::uint32_t completed, Instant now) {
  const bool is_due = !is_stopped_ && !is_under_way_ && next_ < scenario_.flips.size() &&
                      completed + kMaxActivationMarginRounds >= scenario_.flip_every * (next_ + 1);
  if (is_due) {
    is_under_way_ = true;
    latest_horizon_.reset();
    send_all(Message::Kind::kPrepare, 0, now);
  }
  bool any = false;
  for (std::size_t i = 0; i < messages_.size();) {
    const Message message = messages_[i];
    if (message.at > now) {
      ++i;
      continue;
    }
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(i));
    arrive(message, now);
    any = true;
  }
  begin_next();
  return any;
}

void FlipCoordinator::stop() {
  is_stopped_ = true;
  messages_.clear();
}

void FlipCoordinator::arrive(const Message& message, Instant now) {
  const auto node = static_cast<api::NodeId>(message.host);
  switch (message.kind) {
    case Message::Kind::kPrepare:
      if (joins(message.host)) return actions_.join(plan(), node);
      return command(message.host, api::Command::Kind::kPreparePlan, 0);
    case Message::Kind::kCommit:
      command(message.host, api::Command::Kind::kCommitPlan, message.round);
      if (joins(message.host)) actions_.begin(node, message.round);
      return;
    case Message::Kind::kEndOlder:
      return command(message.host, api::Command::Kind::kEndOlderPlan, message.round);
    case Message::Kind::kDismiss:
      return actions_.dismiss(node);
    case Message::Kind::kPrepared:
      return on_prepared(message, now);
    case Message::Kind::kEnded:
      return on_ended(now);
  }
}

/// A node that joins has no rounds, so its horizon does not count.
void FlipCoordinator::on_prepared(const Message& message, Instant now) {
  const bool is_later = !latest_horizon_ || job::is_older(*latest_horizon_, message.round);
  if (!joins(message.host) && is_later) latest_horizon_ = message.round;
  if (++answers_ < count_of_nodes()) return;
  activations_.push_back(*latest_horizon_);
  send_all(Message::Kind::kCommit, *latest_horizon_, now);
}

/// Counts a node that has ended the plan before. When all have, nodes that leave are dismissed.
/// Where ranks leave, the other nodes wait for the order to end that plan.
void FlipCoordinator::on_ended(Instant now) {
  if (++answers_ < plan_before().members.size()) return;
  for (std::size_t h = 0; h < hosts_.size(); ++h) leaving_ += leaves(h) ? 1 : 0;
  if (leaving_ == 0) return end_change();
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    if (has_part(plan_before(), h)) send(h, Message::Kind::kEndOlder, plan_before().epoch, now);
  }
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    if (leaves(h)) send(h, Message::Kind::kDismiss, 0, now);
  }
}

void FlipCoordinator::on_removed(api::NodeId node) {
  hosts_[node] = {};
  if (leaving_ > 0 && --leaving_ == 0) end_change();
}

void FlipCoordinator::end_change() {
  has_ended_ = true;
  begin_next();
}

/// Messages that are still on their way are about the plan that has ended, so they come first.
void FlipCoordinator::begin_next() {
  if (!has_ended_ || !messages_.empty()) return;
  has_ended_ = false;
  is_under_way_ = false;
  ++next_;
}

/// A host that has left meanwhile needs no command.
void FlipCoordinator::command(std::size_t host, api::Command::Kind kind, std::uint32_t round) {
  if (hosts_[host].host == nullptr) return;
  for (std::size_t c = 0; c < hosts_[host].host->cores(); ++c) command(host, c, kind, round);
}

void FlipCoordinator::command(std::size_t host, std::size_t core, api::Command::Kind kind,
                              std::uint32_t round) {
  engine::JobRuntime& runtime = hosts_[host].host->runtime(core);
  api::Command command;
  command.kind = kind;
  command.job = &runtime;
  command.epoch = plan().epoch;
  command.round = round;
  if (kind == api::Command::Kind::kEndOlderPlan) command.epoch = round;
  if (kind == api::Command::Kind::kPreparePlan) {
    const job::JobConfig& job = runtime.job().config();
    auto made = runtime.make_plan(actions_.make_plan(plan(), job.self, job.core));
    if (made == nullptr) failure_ = "there is no memory for the residual of a plan";
    command.plan = made.release();
  }
  if (!hosts_[host].host->commands(core).push(command)) failure_ = "a command queue is full";
}

bool FlipCoordinator::on_event(std::size_t host, const api::Event& event, Instant now) {
  using Kind = api::Event::Kind;
  const bool is_answer = event.kind == Kind::kPlanPrepared || event.kind == Kind::kPlanReturned ||
                         event.kind == Kind::kPlanRefused;
  if (!is_answer) return false;
  if (event.plan != nullptr) event.job->destroy_plan(event.plan);
  const auto told = hosts_[host].answers.take(event);
  if (!told) return true;
  if (told->kind == Kind::kPlanPrepared) send(host, Message::Kind::kPrepared, told->round, now);
  if (told->kind == Kind::kPlanReturned) send(host, Message::Kind::kEnded, 0, now);
  if (told->kind == Kind::kPlanRefused && !is_stopped_)
    failure_ = "host " + std::to_string(host) + " refused a plan";
  return true;
}

}  // namespace gradplane::sim
