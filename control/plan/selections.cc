// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/selections.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "control/plan/capacities.h"
#include "control/plan/selection.h"
#include "dataplane/base/assert.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/operation.h"

namespace gradplane::plan {
namespace {

constexpr std::uint64_t kWhole = 1'000'000;
constexpr std::size_t kLeastMembers = 2;
/// The seed for random receivers. The epoch is added, so that each plan has other receivers.
constexpr std::uint64_t kRandomSeed = 1;

/// SelectionRequest::filled. It leaves a part of each link's time free, so that a link that is
/// faster than believed is noticed.
constexpr double kFilled = 0.75;

/// For messages: what makes training selective, and what to do where that is not possible.
constexpr const char* kMode = "a selective training.mode";
constexpr const char* kRemedy = ", or set training.mode: exact";

/// A generator of random numbers (Steele, Lea and Flood, OOPSLA 2014). The same seed gives the same
/// numbers on every machine.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }

 private:
  std::uint64_t state_;
};

/// The least number of receivers that is at least the wanted share of the others.
std::uint32_t least_receivers(const SelectionsWanted& wanted, std::size_t others) {
  return static_cast<std::uint32_t>((std::uint64_t{wanted.receivers_ppm} * others + kWhole - 1) /
                                    kWhole);
}

/// Meetings as if the pairs had met in turn in the steps before, with equally many pairs of each
/// rank in each step. So freshness demands about as many pairs of each rank in each selection.
/// Otherwise it would demand most of them in the last one.
Meetings meetings_in_turn(std::size_t ranks, std::uint32_t freshness) {
  Meetings meetings(ranks);
  for (std::uint32_t step = 1; step <= freshness; ++step) {
    for (std::size_t from = 0; from < ranks; ++from) {
      Bitmap met(ranks);
      met.reset(ranks);
      for (std::size_t distance = 1; distance < ranks; ++distance)
        if (distance % (freshness + 1) == step) met.set((from + distance) % ranks);
      meetings.on_update(from, met);
    }
  }
  return meetings;
}

SelectionRequest selection_request(const api::Plan& plan, const PlanRequest& request) {
  const SelectionsWanted& wanted = *request.selections;
  SelectionRequest made;
  made.ranks = capacities_of(plan.members, request).members;
  made.update_bytes = std::max<std::uint64_t>(request.traffic.bytes, 1);
  made.receivers = least_receivers(wanted, plan.members.size() - 1);
  made.freshness = wanted.freshness;
  made.replication = wanted.replication;
  made.filled = kFilled;
  return made;
}

/// The link that takes longest in an exchange, and its seconds for each bit of an update.
struct Busiest {
  double s_per_bit = 0;
  std::size_t member = 0;
  bool is_up = false;
};

Busiest busiest_of(const api::Plan& plan, const api::Selection& selection,
                   const Capacities& capacities, Replication replication) {
  Busiest busiest;
  const auto add = [&](std::size_t member, bool is_up, std::size_t updates, std::uint64_t rate) {
    const double s_per_bit = static_cast<double>(updates) / static_cast<double>(rate);
    if (s_per_bit > busiest.s_per_bit) busiest = {s_per_bit, member, is_up};
  };
  std::vector<std::size_t> received(kMaxNodes);
  for (std::size_t m = 0; m < plan.members.size(); ++m) {
    for (const api::NodeId to : selection.receivers[m]) ++received[to];
    const std::size_t sent = selection.receivers[m].size();
    const bool once = replication == Replication::kNetwork && sent > 1;
    add(m, true, once ? 1 : sent, capacities.members[m].up_bits_per_s);
  }
  for (std::size_t m = 0; m < plan.members.size(); ++m)
    add(m, false, received[plan.members[m].node], capacities.members[m].down_bits_per_s);
  return busiest;
}

api::Selection named(const api::Plan& plan, const Selection& selection) {
  api::Selection named;
  for (const Bitmap& those : selection.receivers) {
    std::vector<api::NodeId>& nodes = named.receivers.emplace_back();
    for (std::size_t to = those.next_set(0); to != Bitmap::kNone; to = those.next_set(to + 1))
      nodes.push_back(plan.members[to].node);
  }
  return named;
}

Error shape_error(const std::string& what) {
  return Error{"a plan with selections " + what};
}

std::string text_of(api::NodeId node) {
  return "node " + std::to_string(node);
}

/// Checks that each member has one rank and is the root of one tree, whose leaves are all others.
Status validate_shape(const api::Plan& plan) {
  const std::size_t members = plan.members.size();
  if (members < kLeastMembers) return shape_error("needs at least 2 members");
  if (plan.trees.size() != members) {
    return shape_error("has " + std::to_string(plan.trees.size()) + " trees for " +
                       std::to_string(members) + " members; it needs one for each");
  }
  for (const api::Member& member : plan.members) {
    if (member.ranks.size() != 1)
      return shape_error("has " + std::to_string(member.ranks.size()) + " ranks on " +
                         text_of(member.node) + "; it needs one");
  }
  std::vector<bool> is_root(kMaxNodes, false);
  for (const api::Tree& tree : plan.trees) {
    if (is_root[tree.root]) return shape_error("has two trees of " + text_of(tree.root));
    is_root[tree.root] = true;
    for (std::size_t m = 0; m < members; ++m) {
      const api::NodeId node = plan.members[m].node;
      if (node != tree.root && tree.parent[m] != tree.root)
        return shape_error("has a tree of " + text_of(tree.root) + " in which " + text_of(node) +
                           " is no child of the root");
    }
  }
  return Nothing{};
}

Status validate_receivers(const api::Selection& selection, std::size_t number,
                          const std::vector<api::Member>& members,
                          const std::vector<bool>& is_member) {
  const auto error = [number](const std::string& what) {
    return Error{"selection " + std::to_string(number) + " " + what};
  };
  if (selection.receivers.size() != members.size()) {
    return error("has receivers of " + std::to_string(selection.receivers.size()) + " of " +
                 std::to_string(members.size()) + " members");
  }
  for (std::size_t m = 0; m < members.size(); ++m) {
    const std::string sender = text_of(members[m].node);
    const std::vector<api::NodeId>& those = selection.receivers[m];
    for (std::size_t i = 0; i < those.size(); ++i) {
      const api::NodeId to = those[i];
      if (to >= kMaxNodes || !is_member[to])
        return error("has a receiver of " + sender + " that is no member");
      if (to == members[m].node) return error("has " + sender + " as a receiver of itself");
      if (i > 0 && those[i - 1] >= to)
        return error("has receivers of " + sender + " that do not ascend");
    }
  }
  return Nothing{};
}

}  // namespace

Status check_for_selections(const PlanRequest& request) {
  if (!request.selections) return Nothing{};
  const SelectionsWanted& wanted = *request.selections;
  GP_ASSERT(wanted.receivers_ppm >= 1 && wanted.receivers_ppm <= kWhole);
  GP_ASSERT(wanted.freshness < kMaxSelections);
  if (request.planner != PlanKind::kSharded) {
    return Error{std::string("a ") + std::string(plan_kind_name(request.planner)) +
                 " plan carries no selections of receivers, which " + kMode +
                 " needs; use the planner sharded" + kRemedy};
  }
  std::vector<api::NodeId> nodes;
  for (const api::Member& member : request.members) {
    nodes.push_back(member.node);
    if (member.ranks.size() == 1) continue;
    return Error{
        node_text(request, member.node) + " has " + std::to_string(member.ranks.size()) +
        " ranks of the job, and " + kMode +
        " needs one on each node, because a node sends the update of its rank alone; start "
        "one rank on each node" +
        kRemedy};
  }
  if (nodes.size() < kLeastMembers || nodes.size() > kMaxTrees) {
    return Error{"the job has ranks on " + std::to_string(nodes.size()) +
                 (nodes.size() == 1 ? " node, and " : " nodes, and ") + kMode + " needs 2 to " +
                 std::to_string(kMaxTrees) +
                 ", because each is the root of a tree; start ranks on so many nodes" + kRemedy};
  }
  std::sort(nodes.begin(), nodes.end());
  std::vector<api::NodeId> roots = request.root_candidates;
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  if (!roots.empty() && roots != nodes) {
    return Error{std::string("only some nodes, or others, may be roots, and ") + kMode +
                 " needs a tree of each node with a rank; set plan.roots: training and name no "
                 "roots" +
                 kRemedy};
  }
  return Nothing{};
}

void add_selections(api::Plan& plan, const PlanRequest& request) {
  const SelectionRequest wanted = selection_request(plan, request);
  Meetings meetings = meetings_in_turn(plan.members.size(), wanted.freshness);
  const bool at_random = request.selections->choice == SelectionsWanted::Choice::kRandom;
  SplitMix64 random(kRandomSeed + request.epoch);
  const auto draw = [&random] { return random.next(); };
  for (std::uint32_t step = 0; step <= wanted.freshness; ++step) {
    const Selection selection = at_random ? select_receivers_at_random(wanted, meetings, draw)
                                          : select_receivers(wanted, meetings);
    meetings.on_round(selection);
    plan.selections.push_back(named(plan, selection));
  }
}

bool selections_follow_network(const SelectionsWanted& wanted) {
  return wanted.choice == SelectionsWanted::Choice::kLinks && wanted.freshness > 0;
}

std::optional<ExchangePrediction> predict_exchanges(const api::Plan& plan,
                                                    const PlanRequest& request) {
  if (!request.selections || plan.selections.empty()) return std::nullopt;
  const Capacities capacities = capacities_of(plan.members, request);
  if (!capacities.is_known) return std::nullopt;
  const Traffic& traffic = request.traffic;
  const double on_wire =
      1 + static_cast<double>(traffic.overhead_bytes) / static_cast<double>(traffic.block_bytes);
  const double bits = 8 * static_cast<double>(traffic.bytes) * on_wire;
  ExchangePrediction prediction;
  prediction.is_measured = capacities.is_measured;
  double all_s = 0;
  double longest_s = 0;
  for (const api::Selection& selection : plan.selections) {
    const Busiest busiest =
        busiest_of(plan, selection, capacities, request.selections->replication);
    all_s += bits * busiest.s_per_bit;
    if (busiest.s_per_bit <= longest_s) continue;
    longest_s = busiest.s_per_bit;
    prediction.bottleneck = "the link " + std::string(busiest.is_up ? "from " : "to ") +
                            node_text(request, plan.members[busiest.member].node);
  }
  const double mean_s = all_s / static_cast<double>(plan.selections.size());
  prediction.time = Duration::us(std::llround(mean_s * 1e6));
  return prediction;
}

Status validate_selections(const api::Plan& plan) {
  if (plan.selections.empty()) return Nothing{};
  if (plan.selections.size() > kMaxSelections) {
    return Error{"a plan with " + std::to_string(plan.selections.size()) +
                 " selections; it may have " + std::to_string(kMaxSelections)};
  }
  if (Status status = validate_shape(plan); !status.ok()) return status;
  std::vector<bool> is_member(kMaxNodes, false);
  for (const api::Member& member : plan.members) is_member[member.node] = true;
  for (std::size_t s = 0; s < plan.selections.size(); ++s) {
    const Status status = validate_receivers(plan.selections[s], s, plan.members, is_member);
    if (!status.ok()) return status;
  }
  return Nothing{};
}

}  // namespace gradplane::plan
