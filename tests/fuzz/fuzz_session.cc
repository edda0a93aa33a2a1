// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "control/session/session_manager.h"
#include "dataplane/base/assert.h"
#include "dataplane/base/bytes.h"

using namespace gradplane;
using namespace gradplane::session;

namespace {

constexpr api::NodeId kSelf = 0;
constexpr api::NodeId kPeer = 1;
constexpr std::uint64_t kPeerIncarnation = 99;
/// Choices from this value on are events of plans: what an engine or an operator says.
constexpr std::uint8_t kPlanEvents = 240;
/// Choices from this value on describe a bucket.
constexpr std::uint8_t kDescribe = 250;
/// A size beyond this one stands for another term.
constexpr std::size_t kLongestMessage = 223;

/// A peer that has the cluster's key and sends what the input says. The manager coordinates or does
/// not. Meanwhile ranks attach and detach, and time passes.
class Machine {
 public:
  explicit Machine(bool coordinates) : manager_(config(coordinates)) {}

  void step(ByteReader& in) {
    const auto op = in.read<std::uint8_t>();
    now_ = now_ + Duration::us(in.read<std::uint16_t>());
    switch (op < kPlanEvents ? op % 6 : op < kDescribe ? 7 : 6) {
      case 0:
        attach(in);
        break;
      case 1:
        leave(in.read<std::uint8_t>() % 8, op >= 128);
        break;
      case 2:
        datagram(in, true);
        break;
      case 3:
        datagram(in, false);
        break;
      case 4:
        now_ = now_ + Duration::ms(in.read<std::uint16_t>() % 4096);
        manager_.tick(now_);
        break;
      case 5:
        manager_.on_job_error(installed_.empty() ? 1 : installed_.begin()->first, "e", now_);
        break;
      case 6:
        describe(in);
        break;
      case 7:
        plan_event(in);
    }
    take_actions();
  }

 private:
  void leave(RankHandle handle, bool clean) {
    manager_.detach(handle, clean, now_);
    // Some ranks keep their memory until they detach a second time.
    if (clean) manager_.memory_freed(handle);
  }

  static SessionConfig config(bool coordinates) {
    SessionConfig c;
    c.self = kSelf;
    c.coordinator = coordinates ? kSelf : kPeer;
    c.node_names = {"self", "peer"};
    c.incarnation = 5;
    // The quotas are small, so that inputs reach them.
    c.quotas = {.jobs = 2, .ranks = 2, .wait = Duration::seconds(5)};
    c.resolve_bounds = [](const std::vector<api::BucketBounds>& tables) {
      return ResolvedBounds{tables, 0.1F, {.summary = "fuzz"}};
    };
    c.check_plan = [](const api::Plan&) -> Status { return Nothing{}; };
    return c;
  }

  static Result<PlanOffer> make_plan(const PlanInput& input) {
    api::Plan plan;
    plan.epoch = input.epoch;
    plan.members = input.members;
    plan.trees.push_back({1, input.members[0].node, {}});
    for (const api::Member& member : input.members)
      plan.trees[0].parent.push_back(member.node == input.members[0].node ? api::kNoNode
                                                                          : input.members[0].node);
    return PlanOffer{.plan = std::move(plan), .planner = PlanKind::kAuto, .time = Duration::ms(1)};
  }

  void attach(ByteReader& in) {
    protocol::JobKey key{};
    key[0] = static_cast<std::byte>(in.read<std::uint8_t>() % 3);
    const std::uint8_t rank = in.read<std::uint8_t>() % 4;
    const RankHandle handle = 1 + in.read<std::uint8_t>() % 8;
    const auto user = static_cast<std::uint32_t>(handle % 3);
    (void)manager_.attach({handle, user, key, rank, 1U + rank % 3, "f"}, now_);
  }

  void describe(ByteReader& in) {
    const std::uint64_t handle = 1 + in.read<std::uint8_t>() % 8;
    const std::uint32_t bucket = 1 + in.read<std::uint8_t>() % 16;
    manager_.describe_bucket(
        handle, {bucket, ElementType::kFloat32, 9, {{"t", 0, 9, 0, api::BoundReason::kExact, ""}}},
        now_);
  }

  /// `honest`: in the right conversation and sequence, so that the body reaches the state machines.
  void datagram(ByteReader& in, bool honest) {
    Datagram d;
    d.source = kPeer;
    d.destination = kSelf;
    d.source_incarnation = kPeerIncarnation;
    d.destination_incarnation = heard_incarnation_;
    d.timestamp = static_cast<std::uint64_t>(now_.count_ns());
    d.echo = d.timestamp;
    d.flags = kHasFrame | kFirstFrame | kLastFrame;
    d.acknowledged = acknowledge_;
    d.sequence = sequence_;
    if (!honest) {
      d.flags = in.read<std::uint8_t>();
      d.sequence += in.read<std::uint8_t>() % 40;
      d.acknowledged = in.read<std::uint32_t>();
      d.selective = in.read<std::uint32_t>();
      d.source_incarnation += in.read<std::uint8_t>() % 4 == 0 ? 1 : 0;
    } else {
      ++sequence_;
    }
    const std::size_t size = in.read<std::uint8_t>();
    const std::span<const std::byte> message = in.rest().first(std::min(size, in.rest().size()));
    // The term is the newest one, unless the size is beyond that of messages. Then it is another
    // one.
    Term term = manager_.term().term;
    if (size > kLongestMessage) {
      if ((size & 1) != 0) ++term.number;
      if ((size & 2) != 0 && term.number > 0) --term.number;
      term.coordinator = (size & 4) != 0 ? kPeer : kSelf;
    }
    const std::vector<std::byte> sealed = seal(term, message);
    d.body = honest ? std::span<const std::byte>(sealed) : message;
    manager_.on_datagram(encode_datagram({}, d), now_);
    for (std::size_t i = 0; i < message.size(); ++i) (void)in.read<std::uint8_t>();
  }

  /// An engine may give answers for which no one has asked.
  void plan_event(ByteReader& in) {
    const auto choice = in.read<std::uint8_t>();
    const std::uint32_t job = installed_.empty() ? 1 : installed_.begin()->first;
    Plans& plans = plans_[job];
    if (choice % 4 == 0) manager_.on_plan_prepared(job, plans.prepared, choice, now_);
    if (choice % 4 == 1) manager_.on_plan_refused(job, plans.prepared, "e", now_);
    if (choice % 4 == 2) manager_.on_plan_ended(job, plans.before, now_);
    if (choice % 4 == 3)
      (void)manager_.replan(choice, job, {PlanKind::kStar, {static_cast<api::NodeId>(choice % 2)}},
                            now_);
  }

  void take_plan_action(const Action& action) {
    if (const auto* plan = std::get_if<PreparePlan>(&action)) {
      GP_ASSERT(installed_.at(plan->job_id) == plan->first_epoch);
      GP_ASSERT(plan->plan.epoch > plans_[plan->job_id].prepared);
      plans_[plan->job_id].prepared = plan->plan.epoch;
    }
    if (const auto* plan = std::get_if<CommitPlan>(&action)) {
      GP_ASSERT(installed_.at(plan->job_id) == plan->first_epoch);
      GP_ASSERT(plan->epoch == plans_[plan->job_id].prepared);
      Plans& plans = plans_[plan->job_id];
      plans.before = std::exchange(plans.in_force, plan->epoch);
    }
    if (const auto* plan = std::get_if<AbortPlan>(&action)) {
      GP_ASSERT(installed_.at(plan->job_id) == plan->first_epoch);
      GP_ASSERT(plan->epoch == plans_[plan->job_id].prepared);
    }
  }

  void take_actions() {
    while (auto action = manager_.next_action()) {
      take_plan_action(*action);
      if (const auto* order = std::get_if<MakePlan>(&*action))
        manager_.on_plan_made(order->ticket, make_plan(order->input), now_);
      if (const auto* send = std::get_if<SendDatagram>(&*action)) heard(send->bytes);
      if (const auto* job = std::get_if<InstallJob>(&*action)) {
        GP_ASSERT(installed_.emplace(job->job_id, job->first_epoch).second);
        plans_[job->job_id] = {job->plan.epoch, job->joins() ? 0 : job->plan.epoch, 0};
        GP_ASSERT(installed_.size() <= kMaxJobs);
      }
      if (const auto* bounds = std::get_if<InstallBounds>(&*action)) {
        GP_ASSERT(installed_.contains(bounds->job_id));
        GP_ASSERT(installed_[bounds->job_id] == bounds->first_epoch);
        GP_ASSERT(bounded_[bounds->job_id].insert(bounds->table.bucket).second);
        GP_ASSERT(bounds->learn_budget >= 0 && bounds->learn_budget <= kMaxBound);
      }
      if (const auto* job = std::get_if<RemoveJob>(&*action)) {
        GP_ASSERT(installed_.contains(job->job_id));
        GP_ASSERT(installed_[job->job_id] == job->first_epoch);
        installed_.erase(job->job_id);
        plans_.erase(job->job_id);
        bounded_.erase(job->job_id);
      }
    }
  }

  void heard(const std::vector<std::byte>& bytes) {
    Datagram d;
    GP_ASSERT(decode_datagram({}, bytes, d) == DatagramDrop::kCount);
    GP_ASSERT(bytes.size() <= kMaxControlBytes);
    if (d.source_incarnation != heard_incarnation_) sequence_ = acknowledge_ = 0;
    heard_incarnation_ = d.source_incarnation;
    if (d.destination_incarnation == kPeerIncarnation) sequence_ = d.acknowledged;
    if ((d.flags & kHasFrame) != 0) acknowledge_ = d.sequence + 1;
  }

  SessionManager manager_;
  Instant now_ = Instant::from_ns(1000);
  std::map<std::uint32_t, std::uint32_t> installed_;
  struct Plans {
    std::uint32_t prepared = 0;  // the newest prepared epoch
    std::uint32_t in_force = 0;
    std::uint32_t before = 0;
  };
  std::map<std::uint32_t, Plans> plans_;  // of the installed jobs
  // Of the installed jobs: buckets with bounds.
  std::map<std::uint32_t, std::set<std::uint32_t>> bounded_;
  std::uint64_t heard_incarnation_ = 5;
  std::uint32_t sequence_ = 0;
  std::uint32_t acknowledge_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteReader in(std::as_bytes(std::span(data, size)));
  Machine machine((in.read<std::uint8_t>() & 1) != 0);
  while (in.ok() && !in.rest().empty()) machine.step(in);
  return 0;
}
