// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What a simulated daemon does for the actions of its session.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/sim/session_node.h"

namespace gradplane::sim {

class SessionNode::Actor {
 public:
  Actor(SessionNode& node, Instant now) : node_(node), now_(now) {}

  void operator()(const session::SendDatagram& action);
  void operator()(const session::InstallJob& action);
  void operator()(const session::RemoveJob& action) {
    node_.jobs_->remove(action.job_id, action.first_epoch);
  }
  void operator()(const session::PreparePlan& action);
  void operator()(const session::CommitPlan& action);
  void operator()(const session::AbortPlan& action) { node_.jobs_->abort_plan(action); }
  void operator()(const session::EndOlderPlan& action) { node_.jobs_->end_older_plan(action); }
  void operator()(const session::InstallBounds& action);
  void operator()(const session::NotifyRank& action);
  void operator()(const session::AnswerReplan& action) {
    if (!action.committed) node_.fail("no other plan: " + action.text);
  }
  void operator()(const session::MakePlan& action);
  void operator()(const session::LogLine& action);

 private:
  SessionNode& node_;
  const Instant now_;
};

void SessionNode::Actor::operator()(const session::SendDatagram& action) {
  ++node_.control_.datagrams;
  node_.control_.bytes += action.bytes.size();
  api::Command send;
  send.kind = api::Command::Kind::kSendControl;
  send.control.node = action.node;
  send.control.length_bytes = static_cast<std::uint16_t>(action.bytes.size());
  std::memcpy(send.control.bytes.data(), action.bytes.data(), action.bytes.size());
  // If the queue is full, the session sends the message again later.
  api::CommandQueue& commands = node_.queues_[0]->commands;
  if (commands.room() > 2 * kMaxJobs) (void)commands.push(send);
}

void SessionNode::Actor::operator()(const session::InstallJob& action) {
  node_.watch_.on_plan(node_.id(), action.plan);
  node_.checker_.on_job(node_.id());
  const Status installed = node_.jobs_->install(action, node_.ranks_);
  if (!installed.ok()) node_.session_->on_job_error(action.job_id, installed.error().message, now_);
}

void SessionNode::Actor::operator()(const session::PreparePlan& action) {
  node_.watch_.on_plan(node_.id(), action.plan);
  const Status ordered = node_.jobs_->prepare_plan(action);
  if (ordered.ok()) return;
  node_.session_->on_plan_refused(action.job_id, action.plan.epoch, ordered.error().message, now_);
}

void SessionNode::Actor::operator()(const session::CommitPlan& action) {
  node_.jobs_->commit_plan(action);
  node_.watch_.on_commit(node_.id(), action.epoch, action.activation_round, now_);
}

void SessionNode::Actor::operator()(const session::InstallBounds& action) {
  const Status installed = node_.jobs_->install_bounds(action);
  if (!installed.ok()) node_.fail(installed.error().message);
  if (node_.is_exact_) node_.make_exact();
}

void SessionNode::Actor::operator()(const session::NotifyRank& action) {
  if (const auto* failed = std::get_if<protocol::JobFailed>(&action.notice))
    node_.fail("a rank is told: " + failed->reason);
  if (std::holds_alternative<protocol::Ready>(action.notice)) ++node_.ready_;
}

void SessionNode::Actor::operator()(const session::MakePlan& action) {
  node_.watch_.on_order(node_.id(), action, now_);
  node_.orders_.push_back({now_ + node_.pace_.planning_takes, action});
}

void SessionNode::Actor::operator()(const session::LogLine& action) {
  node_.watch_.on_line(node_.id(), action.text, now_);
  if (std::getenv("GRADPLANE_LOG") == nullptr) return;
  std::fprintf(stderr, "%9.3f n%u %s\n", (now_ - Instant()).to_seconds(), node_.id(),
               action.text.c_str());
}

bool SessionNode::run_actions(Instant now) {
  bool any = false;
  while (!watch_.has_struck()) {
    const auto action = session_->next_action();
    if (!action) break;
    std::visit(Actor(*this, now), *action);
    any = true;
  }
  jobs_->ask_back();
  (void)jobs_->hand_over_buckets();
  return any;
}

}  // namespace gradplane::sim
