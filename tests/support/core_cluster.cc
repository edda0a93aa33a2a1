// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/support/core_cluster.h"

#include <algorithm>
#include <utility>

#include "dataplane/engine/local_plan.h"

namespace gradplane::testing {

CoreCluster::CoreCluster(const api::Plan& plan, const ClusterOptions& options)
    : plan_(plan), options_(options), random_(options.seed), now_(options.start) {
  for (std::size_t m = 0; m < plan.members.size(); ++m) {
    job::JobConfig config;
    config.job = 1;
    config.epoch = plan.epoch;
    config.self = plan.members[m].node;
    config.block_bytes = options.block_bytes;
    config.round_bytes = options.round_bytes;
    config.authenticate = options.authenticate;
    config.stall_after = job::kMinStall;
    engine::fill_local_plan(config, plan, config.self, {});
    for (const std::uint16_t rank : plan.members[m].ranks) {
      ranks_.push_back({.member = m, .local = config.local_ranks.size(), .done = {}});
      config.local_ranks.push_back({.arena = nullptr, .rank = rank});
    }
    nodes_.push_back(std::make_unique<CoreNode>(std::move(config)));
  }
}

std::string CoreCluster::run(const std::vector<std::uint32_t>& elements) {
  elements_ = elements;
  for (Rank& rank : ranks_) rank.done.resize(elements.size());
  const Instant end = now_ + options_.limit;
  while (failure_.empty()) {
    submit_all();
    bool worked = true;
    while (worked) {
      worked = false;
      for (std::size_t m = 0; m < nodes_.size(); ++m) worked = turn(m) || worked;
    }
    if (settled()) return failure_;
    Instant next = flights_.empty() ? Instant::never() : flights_.top().at;
    for (const auto& n : nodes_) next = std::min(next, n->node().next_deadline(now_));
    for (const Order& o : orders_) next = std::min(next, o.at);
    now_ = std::max(now_ + Duration::ns(1), next);
    if (now_ > end) return "no end: " + std::to_string(ranks_[0].completed) + " rounds completed";
    arrive_all();
    coordinate();
    for (const auto& n : nodes_) n->node().tick(now_);
  }
  return failure_;
}

void CoreCluster::submit_all() {
  for (Rank& rank : ranks_) {
    while (rank.submitted < elements_.size() &&
           rank.submitted - rank.completed < options_.in_flight) {
      const std::uint32_t round = plan_.activation_round + rank.submitted;
      const auto result = nodes_[rank.member]->submit(rank.local, round, elements_[rank.submitted]);
      if (result == job::SubmitResult::kBusy) break;
      if (result != job::SubmitResult::kAccepted) failure_ = "a submission was rejected";
      ++rank.submitted;
    }
  }
}

bool CoreCluster::turn(std::size_t member) {
  CoreNode& node = *nodes_[member];
  const std::vector<Sent> packets = node.drain(now_);
  for (const Sent& packet : packets) send(plan_.members[member].node, packet);
  const std::vector<job::Event> events = node.events();
  for (const job::Event& event : events) complete(member, event);
  if (!events.empty()) submit_all();
  if (const char* broken = node.job().broken_invariant()) failure_ = broken;
  if (const auto plan = node.job().take_ended_plan()) on_ended(member, plan->epoch());
  return !packets.empty() || !events.empty();
}

void CoreCluster::complete(std::size_t member, const job::Event& event) {
  if (event.kind != job::Event::Kind::kRoundDone) {
    failure_ = "a mismatch or a stall was reported";
    return;
  }
  for (Rank& rank : ranks_) {
    if (rank.member != member || rank.local != event.local_rank) continue;
    const std::uint32_t index = event.round - plan_.activation_round;
    if (rank.done[index]) failure_ = "a round completed twice";
    rank.done[index] = true;
    while (rank.completed < rank.submitted && rank.done[rank.completed]) ++rank.completed;
    if (event.contributors != nodes_[member]->job().config().world_size) {
      failure_ = "a contribution is missing";
    }
    if (!nodes_[member]->holds_sum(rank.local, event.round, elements_[index])) {
      failure_ = "round " + std::to_string(event.round) + " holds a wrong sum";
    }
  }
}

/// When every node with ranks has ended a plan, the other nodes hear of it.
void CoreCluster::on_ended(std::size_t member, std::uint32_t epoch) {
  ++ended_plans_;
  if (plan_.members[member].ranks.empty()) return;
  const auto with_ranks = std::count_if(plan_.members.begin(), plan_.members.end(),
                                        [](const api::Member& m) { return !m.ranks.empty(); });
  if (++ended_with_ranks_[epoch] < with_ranks) return;
  for (const auto& n : nodes_) n->job().end_older_plan(epoch);
}

void CoreCluster::order(std::size_t member, Order::Kind kind) {
  const auto span = static_cast<std::uint64_t>((options_.delay * 8).count_ns()) + 1;
  const auto delay = Duration::ns(static_cast<std::int64_t>(random_() % span));
  orders_.push_back({.at = now_ + delay, .member = member, .kind = kind});
}

void CoreCluster::order_all(Order::Kind kind) {
  for (std::size_t m = 0; m < nodes_.size(); ++m) order(m, kind);
}

void CoreCluster::begin_flip() {
  flip_runs_ = true;
  flip_is_decided_ = false;
  prepared_ = 0;
  order_all(Order::Kind::kPrepare);
  // Some nodes hear of it before they hear that they should prepare it.
  if (!flips_[next_flip_].abort || random_() % 2 == 0) return;
  flip_is_decided_ = true;
  order_all(Order::Kind::kAbort);
}

void CoreCluster::coordinate() {
  const bool is_due = next_flip_ < flips_.size() && !flip_runs_ &&
                      ranks_[0].completed >= flips_[next_flip_].after_rounds;
  if (is_due) begin_flip();
  const std::vector<Order> all = std::exchange(orders_, {});
  for (const Order& o : all) {
    if (o.at > now_) {
      orders_.push_back(o);
    } else {
      obey(o);
    }
  }
  if (flip_runs_ && prepared_ == nodes_.size() && !flip_is_decided_) {
    flip_is_decided_ = true;
    order_all(flips_[next_flip_].abort ? Order::Kind::kAbort : Order::Kind::kCommit);
  }
  if (flip_runs_ && flip_is_decided_ && orders_.empty()) {
    for (const auto& n : nodes_) (void)n->job().abort(flips_[next_flip_].plan.epoch);
    flip_runs_ = false;
    ++next_flip_;
  }
}

void CoreCluster::obey(const Order& o) {
  const std::uint32_t epoch = flips_[next_flip_].plan.epoch;
  job::Job& job = nodes_[o.member]->job();
  switch (o.kind) {
    case Order::Kind::kPrepare:
      return prepare(o.member);
    case Order::Kind::kAbort:
      (void)job.abort(epoch);
      return;
    case Order::Kind::kCommit:
      if (!job.commit(epoch, activation_)) failure_ = "a node refused to commit";
      return;
  }
}

void CoreCluster::prepare(std::size_t member) {
  const api::Plan& plan = flips_[next_flip_].plan;
  job::Job& job = nodes_[member]->job();
  auto local = std::make_unique<job::Plan>(
      engine::local_plan(plan, plan_.members[member].node, {}, false), job.config());
  const job::Prepared answer = nodes_[member]->node().prepare(&job, local);
  if (answer.refusal == job::PlanRefusal::kTooMany) {  // an older round has not ended there
    if (!flip_is_decided_) order(member, Order::Kind::kPrepare);
    return;
  }
  if (answer.refusal != job::PlanRefusal::kNone) failure_ = "a node refused a plan";
  if (prepared_ == 0 || job::is_older(activation_, answer.horizon)) activation_ = answer.horizon;
  ++prepared_;
}

void CoreCluster::readdress(std::uint16_t from, const Sent& packet) {
  const wire::PacketType type = packet.seen().type;
  if (type == wire::PacketType::kPush || type == wire::PacketType::kResult) return;
  for (const api::Member& member : plan_.members) {
    if (member.node == from || member.node == packet.to) continue;
    flights_.push({.at = now_ + options_.delay,
                   .order = order_++,
                   .from = from,
                   .packet = {member.node, packet.bytes}});
  }
}

void CoreCluster::send(std::uint16_t from, const Sent& packet) {
  if (options_.readdress) readdress(from, packet);
  for (int copies = chance(options_.duplication) ? 2 : 1; copies > 0; --copies) {
    if (chance(options_.loss)) continue;
    Duration delay = options_.delay;
    if (options_.jitter > Duration{}) {
      const auto span = static_cast<std::uint64_t>(options_.jitter.count_ns());
      delay += Duration::ns(static_cast<std::int64_t>(random_() % span));
    }
    flights_.push({.at = now_ + delay, .order = order_++, .from = from, .packet = packet});
  }
}

void CoreCluster::arrive_all() {
  while (!flights_.empty() && flights_.top().at <= now_) {
    const Flight flight = flights_.top();
    flights_.pop();
    for (std::size_t m = 0; m < nodes_.size(); ++m) {
      if (plan_.members[m].node != flight.packet.to) continue;
      nodes_[m]->deliver(flight.from, flight.packet.bytes, now_);
    }
  }
}

bool CoreCluster::settled() const {
  for (const Rank& rank : ranks_) {
    if (rank.completed != elements_.size()) return false;
  }
  for (const auto& node : nodes_) {
    if (node->job().waiting().any) return false;
    for (const hop::Peer& peer : node->job().peers()) {
      if (peer.flow.in_flight() > 0) return false;
    }
  }
  return true;
}

}  // namespace gradplane::testing
