// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/flip_coordinator.h"

#include <algorithm>
#include <utility>

namespace gradplane::sim {
FlipCoordinator::FlipCoordinator(const Scenario& scenario, MakePlan make_plan)
    : scenario_(scenario), make_plan_(std::move(make_plan)), dice_(scenario.seed + 1) {}

void FlipCoordinator::send(std::size_t host, Message::Kind kind, std::uint32_t round, Instant now) {
  if (is_stopped_) return;
  const std::int64_t most_us = scenario_.flip_message_max.count_ns() / 1000;
  const auto us = static_cast<std::int64_t>(dice_.below(static_cast<std::uint64_t>(most_us)));
  messages_.push_back(
      {.at = now + Duration::us(us + 1), .host = host, .kind = kind, .round = round});
}

void FlipCoordinator::send_all(Message::Kind kind, std::uint32_t round, Instant now) {
  answers_ = 0;
  for (std::size_t h = 0; h < hosts_.size(); ++h) send(h, kind, round, now);
}

Instant FlipCoordinator::next_deadline() const {
  Instant next = Instant::never();
  for (const Message& message : messages_) next = std::min(next, message.at);
  return next;
}

bool FlipCoordinator::step(std::uint32_t completed, Instant now) {
  const bool is_due = !is_stopped_ && !is_under_way_ && next_ < scenario_.flips.size() &&
                      completed >= scenario_.flip_every * (next_ + 1) - kMaxActivationMarginRounds;
  if (is_due) {
    is_under_way_ = true;
    latest_horizon_.reset();
    send_all(Message::Kind::kPrepare, 0, now);
  }
  bool any = false;
  for (const Message& message : std::exchange(messages_, {})) {
    if (message.at > now) {
      messages_.push_back(message);
    } else {
      arrive(message, now);
      any = true;
    }
  }
  return any;
}

void FlipCoordinator::stop() {
  is_stopped_ = true;
  messages_.clear();
}

void FlipCoordinator::arrive(const Message& message, Instant now) {
  switch (message.kind) {
    case Message::Kind::kPrepare:
      return command(message.host, api::Command::Kind::kPreparePlan, 0);
    case Message::Kind::kCommit:
      return command(message.host, api::Command::Kind::kCommitPlan, message.round);
    case Message::Kind::kPrepared:
      if (!latest_horizon_ || job::is_older(*latest_horizon_, message.round)) {
        latest_horizon_ = message.round;
      }
      if (++answers_ < hosts_.size()) return;
      activations_.push_back(*latest_horizon_);
      return send_all(Message::Kind::kCommit, *latest_horizon_, now);
    case Message::Kind::kEnded:
      if (++answers_ < hosts_.size()) return;
      is_under_way_ = false;
      ++next_;
      return;
  }
}

void FlipCoordinator::command(std::size_t host, api::Command::Kind kind, std::uint32_t round) {
  const api::Plan& plan = scenario_.flips[next_];
  engine::JobRuntime& runtime = *hosts_[host].runtime;
  api::Command command;
  command.kind = kind;
  command.job = &runtime;
  command.epoch = plan.epoch;
  command.round = round;
  if (kind == api::Command::Kind::kPreparePlan) {
    auto made = runtime.make_plan(make_plan_(plan, runtime.job().config().self));
    if (made == nullptr) failure_ = "there is no memory for the residual of a plan";
    command.plan = made.release();
  }
  if (!hosts_[host].commands->push(command)) failure_ = "a command queue is full";
}

bool FlipCoordinator::on_event(std::size_t host, const api::Event& event, Instant now) {
  switch (event.kind) {
    case api::Event::Kind::kPlanPrepared:
      send(host, Message::Kind::kPrepared, event.round, now);
      return true;
    case api::Event::Kind::kPlanReturned:
      hosts_[host].runtime->destroy_plan(event.plan);
      send(host, Message::Kind::kEnded, 0, now);
      return true;
    case api::Event::Kind::kPlanRefused:
      hosts_[host].runtime->destroy_plan(event.plan);
      if (!is_stopped_) failure_ = "host " + std::to_string(host) + " refused a plan";
      return true;
    default:
      return false;
  }
}

}  // namespace gradplane::sim
