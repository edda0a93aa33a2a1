// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/takeover.h"

#include <algorithm>
#include <iterator>

#include "control/session/admission.h"

namespace gradplane::session {
namespace {

std::size_t bytes_of(const protocol::NodeMessage& message) {
  return kHeldMessageBytes + protocol::encode(message).size();
}

bool names(const protocol::Report& report, std::uint32_t epoch) {
  return report.epoch == epoch || report.next_epoch == epoch || report.epoch_before == epoch;
}

}  // namespace

Duration takeover_limit(const SessionConfig& config) {
  constexpr int kSuspicions = 4;
  return config.suspect_after * kSuspicions;
}

void Takeover::on_report(api::NodeId from, const protocol::Report& report) {
  lost_.erase(from);
  reports_[from] = report;
}

bool Takeover::awaits_plan(std::uint32_t epoch, api::NodeId from) const {
  const auto asked = plan_asked_.find(epoch);
  return asked != plan_asked_.end() && asked->second == from && !plans_.contains(epoch);
}

void Takeover::on_plan(std::uint32_t epoch, api::Plan plan) {
  plans_.try_emplace(epoch, std::move(plan));
}

void Takeover::on_lost(api::NodeId node, const std::string& why, bool is_back) {
  const bool has_reported = reports_.erase(node) > 0;
  if (is_back && !has_reported)
    asked_.erase(node);
  else
    lost_[node] = why;
  std::erase_if(held_, [&](const Held& held) {
    if (held.from == node) held_bytes_ -= held.bytes;
    return held.from == node;
  });
  std::erase_if(plan_asked_, [node](const auto& entry) { return entry.second == node; });
}

void Takeover::on_refused(api::NodeId from, std::uint32_t epoch) {
  const auto report = reports_.find(from);
  if (report != reports_.end() && report->second.next_epoch == epoch) report->second.next_epoch = 0;
}

bool Takeover::hold(api::NodeId from, protocol::NodeMessage message) {
  const std::size_t bytes = bytes_of(message);
  if (held_bytes_ + bytes > kMaxHeldBytes) return false;
  held_bytes_ += bytes;
  held_.push_back({from, std::move(message), bytes});
  return true;
}

std::uint32_t Takeover::user() const {
  std::uint32_t least = kNoUser;
  for (const auto& [node, report] : reports_)
    if (report.has_job() && report.user != kRootUser) least = std::min(least, report.user);
  const bool root = std::any_of(reports_.begin(), reports_.end(), [](const auto& entry) {
    return entry.second.has_job() && entry.second.user == kRootUser;
  });
  return least == kNoUser && root ? kRootUser : least;
}

std::deque<Takeover::Held> Takeover::take_held() {
  held_bytes_ = 0;
  return std::exchange(held_, {});
}

std::set<std::uint32_t> Takeover::named_epochs() const {
  std::set<std::uint32_t> epochs;
  for (const auto& [node, report] : reports_)
    epochs.insert({report.epoch, report.next_epoch, report.epoch_before});
  epochs.erase(0);
  return epochs;
}

void Takeover::ask_plan(Outbox& outbox) {
  for (const auto& [epoch, node] : plan_asked_) {
    const auto asked = reports_.find(node);
    const bool has_it = asked != reports_.end() && names(asked->second, epoch);
    if (has_it && !plans_.contains(epoch)) return;  // it comes
  }
  for (const auto& [node, report] : reports_) {
    for (const std::uint32_t epoch : {report.epoch, report.next_epoch, report.epoch_before}) {
      if (epoch == 0 || plans_.contains(epoch)) continue;
      plan_asked_[epoch] = node;
      outbox.tell_member(node, protocol::AskPlan{key_, first_epoch_, epoch});
      return;
    }
  }
}

void Takeover::ask(Outbox& outbox) {
  ask_plan(outbox);
  for (const api::NodeId node : awaited())
    if (asked_.insert(node).second)
      outbox.tell_member(node, protocol::AskReport{key_, first_epoch_});
}

std::set<api::NodeId> Takeover::awaited() const {
  std::set<api::NodeId> awaited;
  std::set<std::uint32_t> live;
  for (const auto& [node, report] : reports_)
    live.insert({report.epoch, report.next_epoch, report.ending ? report.epoch_before : 0});
  for (const auto& [epoch, plan] : plans_)
    for (const api::Member& member : plan.members)
      if (live.contains(epoch) && !reports_.contains(member.node) && !lost_.contains(member.node))
        awaited.insert(member.node);
  return awaited;
}

std::set<api::NodeId> Takeover::silent() const {
  std::set<api::NodeId> silent = awaited();
  for (const auto& [epoch, node] : plan_asked_)
    if (!plans_.contains(epoch)) silent.insert(node);
  return silent;
}

bool Takeover::is_complete() const {
  const std::set<std::uint32_t> epochs = named_epochs();
  return awaited().empty() && std::all_of(epochs.begin(), epochs.end(),
                                          [this](std::uint32_t e) { return plans_.contains(e); });
}

const protocol::Report* Takeover::job_at(api::NodeId node) const {
  const auto report = reports_.find(node);
  return report == reports_.end() || !report->second.has_job() ? nullptr : &report->second;
}

std::string Takeover::why_not_at(api::NodeId node) const {
  const auto lost = lost_.find(node);
  return lost == lost_.end() ? "no longer has the job" : lost->second;
}

const api::Plan* Takeover::plan(std::uint32_t epoch) const {
  const auto plan = plans_.find(epoch);
  return plan == plans_.end() ? nullptr : &plan->second;
}

std::uint32_t Takeover::committed_epoch() const {
  std::uint32_t newest = 0;
  for (const auto& [node, report] : reports_) newest = std::max(newest, report.epoch);
  return newest;
}

std::uint32_t Takeover::newest_epoch() const {
  std::uint32_t newest = 0;
  for (const auto& [node, report] : reports_) newest = std::max(newest, report.newest_epoch);
  return newest;
}

const protocol::Join* Takeover::waiting_at(api::NodeId node) const {
  const protocol::Join* last = nullptr;
  for (const Held& held : held_) {
    const auto* join = std::get_if<protocol::Join>(&held.message);
    if (join != nullptr && held.from == node) last = join;
  }
  return last;
}

std::set<api::NodeId> Takeover::nodes() const {
  std::set<api::NodeId> nodes = asked_;
  for (const auto& [node, report] : reports_) nodes.insert(node);
  for (const auto& [node, why] : lost_) nodes.erase(node);
  for (const Held& held : held_) nodes.insert(held.from);
  return nodes;
}

}  // namespace gradplane::session
