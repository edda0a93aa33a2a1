// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/support/core_cluster.h"

#include <algorithm>
#include <utility>

#include "dataplane/engine/local_plan.h"

namespace gradplane::testing {
namespace {

wire::Key key_of(const api::Plan& plan) {
  wire::Key key;
  key.fill(static_cast<std::byte>(plan.epoch));
  return key;
}

std::vector<std::uint16_t> ranks_of(const api::Plan& plan) {
  std::vector<std::uint16_t> ranks;
  for (const api::Member& member : plan.members) {
    ranks.insert(ranks.end(), member.ranks.begin(), member.ranks.end());
  }
  return ranks;
}

}  // namespace

CoreCluster::CoreCluster(const api::Plan& plan, const ClusterOptions& options)
    : options_(options),
      random_(options.seed),
      first_round_(plan.activation_round),
      members_(plan.members),
      plans_{{0, plan}},
      now_(options.start) {
  for (std::size_t m = 0; m < members_.size(); ++m) {
    add_ranks(m);
    nodes_.push_back(make_node(plan, m, false));
    join_at(m, 0);
  }
}

void CoreCluster::add_ranks(std::size_t member) {
  for (std::size_t r = 0; r < members_[member].ranks.size(); ++r) {
    ranks_.push_back({.member = member, .local = r, .done = {}});
  }
}

void CoreCluster::join_at(std::size_t member, std::uint32_t index) {
  for (Rank& rank : ranks_) {
    if (rank.member != member) continue;
    rank.is_here = true;
    rank.submitted = rank.completed = index;
  }
}

/// Removes a node, and checks that its ranks have completed exactly the rounds in which they took
/// part.
void CoreCluster::leave(std::size_t member) {
  for (Rank& rank : ranks_) {
    if (rank.member != member) continue;
    rank.is_here = false;
    if (rank.completed != plans_.back().first) failure_ = "a rank left at another round";
  }
  nodes_[member].reset();
  ++left_;
}

const api::Plan& CoreCluster::plan_of(std::uint32_t index) const {
  const auto at = std::find_if(plans_.rbegin(), plans_.rend(),
                               [index](const auto& plan) { return plan.first <= index; });
  return at->second;
}

std::unique_ptr<CoreNode> CoreCluster::make_node(const api::Plan& plan, std::size_t member,
                                                 bool joins) {
  job::JobConfig config;
  config.job = 1;
  config.epoch = plan.epoch;
  config.self = members_[member].node;
  config.joins = joins;
  config.block_bytes = options_.block_bytes;
  config.round_bytes = options_.round_bytes;
  config.authenticate = options_.authenticate;
  config.stall_after = job::kMinStall;
  config.key = key_of(plan);
  engine::fill_local_plan(config, plan, config.self, {});
  use_groups(config);
  for (const std::uint16_t rank : members_[member].ranks) {
    config.local_ranks.push_back({.arena = nullptr, .rank = rank});
  }
  return std::make_unique<CoreNode>(std::move(config));
}

void CoreCluster::flip(std::vector<PlanFlip> flips) {
  flips_ = std::move(flips);
  for (const PlanFlip& flip : flips_) {
    for (const api::Member& member : flip.plan.members) {
      const auto known = std::find_if(members_.begin(), members_.end(),
                                      [&](const api::Member& m) { return m.node == member.node; });
      if (known != members_.end()) continue;
      members_.push_back(member);
      add_ranks(members_.size() - 1);
      nodes_.push_back(nullptr);
    }
  }
}

bool CoreCluster::has_part(const api::Plan& plan, std::size_t member) const {
  return std::any_of(plan.members.begin(), plan.members.end(),
                     [&](const api::Member& m) { return m.node == members_[member].node; });
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
    for (const auto& n : nodes_) {
      if (n != nullptr) next = std::min(next, n->node().next_deadline(now_));
    }
    for (const Order& o : orders_) next = std::min(next, o.at);
    now_ = std::max(now_ + Duration::ns(1), next);
    if (now_ > end) return "no end: " + std::to_string(ranks_[0].completed) + " rounds completed";
    arrive_all();
    coordinate();
    for (const auto& n : nodes_) {
      if (n != nullptr) n->node().tick(now_);
    }
  }
  return failure_;
}

void CoreCluster::submit_all() {
  for (Rank& rank : ranks_) {
    while (rank.is_here && rank.submitted < elements_.size() &&
           rank.submitted - rank.completed < options_.in_flight) {
      const std::uint32_t round = first_round_ + rank.submitted;
      const auto result = nodes_[rank.member]->submit(rank.local, round, elements_[rank.submitted]);
      if (result == job::SubmitResult::kBusy) break;
      if (result != job::SubmitResult::kAccepted) failure_ = "a submission was rejected";
      ++rank.submitted;
    }
  }
}

bool CoreCluster::turn(std::size_t member) {
  if (nodes_[member] == nullptr) return false;
  CoreNode& node = *nodes_[member];
  const std::vector<Sent> packets = node.drain(now_);
  for (const Sent& packet : packets) send(members_[member].node, packet);
  const std::vector<job::Event> events = node.events();
  for (const job::Event& event : events) complete(member, event);
  if (!events.empty()) submit_all();
  if (const char* broken = node.job().broken_invariant()) failure_ = broken;
  if (node.job().take_ended_plan() != nullptr) on_ended(member);
  return !packets.empty() || !events.empty();
}

void CoreCluster::complete(std::size_t member, const job::Event& event) {
  if (event.kind != job::Event::Kind::kRoundDone) {
    failure_ = "a mismatch or a stall was reported";
    return;
  }
  for (Rank& rank : ranks_) {
    if (rank.member != member || rank.local != event.local_rank) continue;
    const std::uint32_t index = event.round - first_round_;
    if (rank.done[index]) failure_ = "a round completed twice";
    rank.done[index] = true;
    while (rank.completed < rank.submitted && rank.done[rank.completed]) ++rank.completed;
    if (is_too_far_ahead(index)) failure_ = "a rank completed a round far ahead of another rank";
    const std::vector<std::uint16_t> ranks = ranks_of(plan_of(index));
    if (event.contributors != ranks.size()) failure_ = "a contribution is missing";
    if (!nodes_[member]->holds_sum_of(ranks, rank.local, event.round, elements_[index])) {
      failure_ = "round " + std::to_string(event.round) + " holds a wrong sum";
    }
  }
}

/// Whether some rank has not completed a round that is at least kMaxLeadRounds older. No rank may
/// have completed this one then (I6).
bool CoreCluster::is_too_far_ahead(std::uint32_t index) const {
  return std::any_of(ranks_.begin(), ranks_.end(), [&](const Rank& rank) {
    return rank.is_here && index >= rank.completed + kMaxLeadRounds &&
           has_part(plan_of(rank.completed), rank.member);
  });
}

/// When all nodes with ranks have ended a plan, the coordinator tells the other nodes. When all
/// nodes have ended it, nodes without a part in the next plan may leave.
void CoreCluster::on_ended(std::size_t member) {
  ++ended_plans_;
  --ending_;
  if (has_ranks(member) && --ending_with_ranks_ == 0) order_all(Order::Kind::kEndOlder);
  if (ending_ == 0) order_all(Order::Kind::kDismiss);
}

void CoreCluster::order(std::size_t member, Order::Kind kind) {
  const auto span = static_cast<std::uint64_t>((options_.delay * 8).count_ns()) + 1;
  const auto delay = Duration::ns(static_cast<std::int64_t>(random_() % span));
  orders_.push_back({.at = now_ + delay, .member = member, .kind = kind});
}

/// Sends an order to all nodes with a part in either plan.
void CoreCluster::order_all(Order::Kind kind) {
  for (std::size_t m = 0; m < nodes_.size(); ++m) {
    if (nodes_[m] != nullptr || has_part(flips_[next_flip_].plan, m)) order(m, kind);
  }
}

void CoreCluster::begin_flip() {
  flip_runs_ = true;
  flip_is_decided_ = false;
  activation_.reset();
  order_all(Order::Kind::kPrepare);
  awaited_ = orders_.size();
  ending_ = static_cast<std::size_t>(std::count_if(
      nodes_.begin(), nodes_.end(), [](const auto& node) { return node != nullptr; }));
  ending_with_ranks_ = 0;
  for (std::size_t m = 0; m < nodes_.size(); ++m) {
    if (nodes_[m] != nullptr && has_ranks(m)) ++ending_with_ranks_;
  }
  // Sends the aborts at once, so that some nodes get one before the order to prepare.
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
  if (flip_runs_ && awaited_ == 0 && !flip_is_decided_) {
    flip_is_decided_ = true;
    const PlanFlip& flip = flips_[next_flip_];
    order_all(flip.abort ? Order::Kind::kAbort : Order::Kind::kCommit);
    if (!flip.abort) plans_.emplace_back(*activation_ - first_round_, flip.plan);
  }
  const bool may_end = flip_runs_ && flip_is_decided_ && orders_.empty();
  if (may_end && (ending_ == 0 || flips_[next_flip_].abort)) end_flip();
}

void CoreCluster::end_flip() {
  for (std::size_t m = 0; m < nodes_.size() && flips_[next_flip_].abort; ++m) {
    if (nodes_[m] != nullptr) obey({.at = now_, .member = m, .kind = Order::Kind::kAbort});
  }
  flip_runs_ = false;
  ++next_flip_;
}

void CoreCluster::obey(const Order& o) {
  const api::Plan& plan = flips_[next_flip_].plan;
  std::unique_ptr<CoreNode>& node = nodes_[o.member];
  if (o.kind == Order::Kind::kPrepare) return prepare(o.member);
  if (node == nullptr) return;
  switch (o.kind) {
    case Order::Kind::kAbort:
      if (node->job().is_joining()) return node.reset();
      (void)node->job().abort(plan.epoch);
      return;
    case Order::Kind::kCommit:
      return commit(o.member);
    case Order::Kind::kEndOlder:
      return node->job().end_older_plan(plans_[plans_.size() - 2].second.epoch);
    case Order::Kind::kDismiss:
      if (!has_part(plan, o.member)) leave(o.member);
      return;
    case Order::Kind::kPrepare:
      return;
  }
}

void CoreCluster::commit(std::size_t member) {
  job::Job& job = nodes_[member]->job();
  const api::Plan& plan = flips_[next_flip_].plan;
  const bool joins = job.is_joining();
  if (!job.commit(plan.epoch, *activation_)) failure_ = "a node refused to commit";
  if (joins) join_at(member, *activation_ - first_round_);
}

void CoreCluster::prepare(std::size_t member) {
  const api::Plan& plan = flips_[next_flip_].plan;
  --awaited_;
  if (nodes_[member] == nullptr) {
    nodes_[member] = make_node(plan, member, true);
    ++joined_;
    return;
  }
  job::Job& job = nodes_[member]->job();
  job::PlanConfig part = engine::local_plan(plan, members_[member].node, {}, false);
  part.key = key_of(plan);
  use_groups(part);
  auto local = std::make_unique<job::Plan>(part, job.config());
  const job::Prepared answer = nodes_[member]->node().prepare(&job, local);
  if (answer.refusal != PlanRefusal::kNone) failure_ = "a node refused a plan";
  if (!activation_ || job::is_older(*activation_, answer.horizon)) activation_ = answer.horizon;
}

void CoreCluster::readdress(std::uint16_t from, const Sent& packet) {
  const wire::PacketType type = packet.seen().type;
  if (type == wire::PacketType::kPush || type == wire::PacketType::kResult) return;
  for (const api::Member& member : members_) {
    if (member.node == from || member.node == packet.to) continue;
    flights_.push({.at = now_ + options_.delay,
                   .order = order_++,
                   .from = from,
                   .packet = {member.node, packet.bytes}});
  }
}

void CoreCluster::use_groups(job::PlanConfig& config) const {
  for (aggregate::TreeConfig& tree : config.trees)
    tree.multicasts_results = options_.copies_for != nullptr;
}

/// Whether a node is a child of the group's sender in the group's tree.
bool CoreCluster::is_in(std::uint16_t node, const GroupName& group) const {
  std::vector<const api::Plan*> plans;
  for (const auto& [first, plan] : plans_) plans.push_back(&plan);
  for (const PlanFlip& flip : flips_) plans.push_back(&flip.plan);
  return std::any_of(plans.begin(), plans.end(), [&](const api::Plan* plan) {
    if (plan->epoch != group.epoch) return false;
    for (std::size_t m = 0; m < plan->members.size(); ++m) {
      if (plan->members[m].node == node) {
        return plan->trees[group.tree].parent[m] == group.sender;
      }
    }
    return false;
  });
}

/// Sends a copy to each member; each copy may be lost or delayed by itself.
void CoreCluster::send_to_group(const Sent& packet) {
  for (const api::Member& member : members_) {
    const std::uint16_t node = member.node;
    if (!is_in(node, *packet.group) || !options_.copies_for(node, now_)) continue;
    send(packet.group->sender, {.to = node, .bytes = packet.bytes});
  }
}

void CoreCluster::send(std::uint16_t from, const Sent& packet) {
  if (packet.group) return send_to_group(packet);
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
      if (members_[m].node != flight.packet.to || nodes_[m] == nullptr) continue;
      nodes_[m]->deliver(flight.from, flight.packet.bytes, now_);
    }
  }
}

bool CoreCluster::settled() const {
  for (const Rank& rank : ranks_) {
    if (rank.is_here && rank.completed != elements_.size()) return false;
  }
  for (const auto& node : nodes_) {
    if (node == nullptr) continue;
    if (node->job().waiting().any) return false;
    for (const hop::Peer& peer : node->job().peers()) {
      if (peer.flow.in_flight() > 0) return false;
    }
  }
  return true;
}

}  // namespace gradplane::testing
