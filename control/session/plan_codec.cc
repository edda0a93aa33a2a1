// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/plan_codec.h"

#include <cstdint>
#include <string>
#include <utility>

#include "control/protocol/node_messages.h"
#include "dataplane/base/bytes.h"
#include "dataplane/model/limits.h"

namespace gradplane::session {

namespace {

struct Run {
  std::uint16_t length;
  api::NodeId parent;
};

std::vector<Run> runs_of(const std::vector<api::NodeId>& parents) {
  std::vector<Run> runs;
  for (const api::NodeId parent : parents) {
    if (runs.empty() || runs.back().parent != parent)
      runs.push_back({1, parent});
    else
      ++runs.back().length;
  }
  return runs;
}

bool within_limits(const api::Plan& plan) {
  if (plan.members.empty() || plan.members.size() > kMaxNodes) return false;
  if (plan.trees.empty() || plan.trees.size() > kMaxTrees) return false;
  for (const api::Member& member : plan.members)
    if (member.ranks.size() > kMaxLocalRanks) return false;
  for (const api::Route& route : plan.routes)
    if (route.via.empty() || route.via.size() > kMaxRelays) return false;
  for (const api::Tree& tree : plan.trees)
    if (tree.parent.size() != plan.members.size()) return false;
  return true;
}

void write_tree(ByteWriter& out, const api::Tree& tree) {
  out.write(tree.weight);
  out.write(tree.root);
  const std::vector<Run> runs = runs_of(tree.parent);
  const bool as_runs = runs.size() * 2 < tree.parent.size();
  out.write(static_cast<std::uint16_t>(as_runs ? runs.size() : 0));
  if (as_runs) {
    for (const Run& run : runs) {
      out.write(run.length);
      out.write(run.parent);
    }
  } else {
    for (const api::NodeId parent : tree.parent) out.write(parent);
  }
}

/// Routes come last, and not at all where a plan has none: so such a plan has the bytes that it had
/// before there were routes.
void write_routes(ByteWriter& out, const std::vector<api::Route>& routes) {
  if (routes.empty()) return;
  out.write(static_cast<std::uint16_t>(routes.size()));
  for (const api::Route& route : routes) {
    out.write(route.from);
    out.write(route.to);
    out.write(static_cast<std::uint8_t>(route.via.size()));
    for (const api::NodeId relay : route.via) out.write(relay);
  }
}

class PlanReader {
 public:
  explicit PlanReader(std::span<const std::byte> bytes) : in_(bytes) {}

  Result<api::Plan> read() {
    api::Plan plan;
    plan.epoch = in_.read<std::uint32_t>();
    plan.activation_round = in_.read<std::uint32_t>();
    const std::uint8_t kind = in_.read<std::uint8_t>();
    check(kind < kPlanKindNames.size(), "kind");
    plan.kind = static_cast<PlanKind>(kind);
    const std::size_t member_count = in_.read<std::uint16_t>();
    check(member_count >= 1 && member_count <= kMaxNodes, "number of members");
    for (std::size_t i = 0; i < member_count && ok(); ++i) read_member(plan);
    const std::size_t tree_count = in_.read<std::uint8_t>();
    check(tree_count >= 1 && tree_count <= kMaxTrees, "number of trees");
    for (std::size_t i = 0; i < tree_count && ok(); ++i) read_tree(plan);
    if (ok() && !in_.rest().empty()) read_routes(plan);
    check(in_.ok(), "end: it is cut short");
    check(in_.rest().empty(), "end: it goes on");
    if (!ok()) return Error{std::string("the plan has a wrong ") + wrong_};
    return plan;
  }

 private:
  bool ok() const { return wrong_ == nullptr && in_.ok(); }
  void check(bool condition, const char* what) {
    if (!condition && wrong_ == nullptr) wrong_ = what;
  }
  bool is_member(api::NodeId node) const { return node < kMaxNodes && is_member_[node]; }

  void read_member(api::Plan& plan) {
    api::Member& member = plan.members.emplace_back();
    member.node = in_.read<api::NodeId>();
    check(member.node < kMaxNodes && !is_member(member.node), "member");
    if (!ok()) return;
    is_member_[member.node] = true;
    const std::size_t rank_count = in_.read<std::uint8_t>();
    check(rank_count <= kMaxLocalRanks, "number of ranks");
    for (std::size_t i = 0; i < rank_count && ok(); ++i) {
      const auto rank = in_.read<std::uint16_t>();
      check(rank < kMaxRanks && !rank_seen_[rank], "rank");
      if (!ok()) return;
      rank_seen_[rank] = true;
      member.ranks.push_back(rank);
    }
  }

  void read_tree(api::Plan& plan) {
    api::Tree& tree = plan.trees.emplace_back();
    tree.weight = in_.read<std::uint32_t>();
    check(tree.weight > 0, "weight");
    tree.root = in_.read<api::NodeId>();
    check(is_member(tree.root), "root");
    const std::size_t run_count = in_.read<std::uint16_t>();
    const std::size_t size = plan.members.size();
    if (run_count == 0) {
      while (tree.parent.size() < size && ok()) add_parents(tree, 1, in_.read<api::NodeId>(), size);
      return;
    }
    for (std::size_t i = 0; i < run_count && ok(); ++i) {
      const auto length = in_.read<std::uint16_t>();
      add_parents(tree, length, in_.read<api::NodeId>(), size);
    }
    check(tree.parent.size() == size, "number of parents");
  }

  void add_parents(api::Tree& tree, std::size_t count, api::NodeId parent, std::size_t size) {
    check(count >= 1 && count <= size - tree.parent.size(), "number of parents");
    check(parent == api::kNoNode || is_member(parent), "parent");
    if (ok()) tree.parent.insert(tree.parent.end(), count, parent);
  }

  void read_routes(api::Plan& plan) {
    const std::size_t count = in_.read<std::uint16_t>();
    check(count > 0, "number of routes");
    for (std::size_t i = 0; i < count && ok(); ++i) {
      api::Route& route = plan.routes.emplace_back();
      route.from = in_.read<api::NodeId>();
      route.to = in_.read<api::NodeId>();
      check(is_member(route.from) && is_member(route.to), "end of a route");
      const std::size_t relays = in_.read<std::uint8_t>();
      check(relays >= 1 && relays <= kMaxRelays, "number of relays");
      for (std::size_t r = 0; r < relays && ok(); ++r) {
        route.via.push_back(in_.read<api::NodeId>());
        check(is_member(route.via.back()), "relay");
      }
    }
  }

  ByteReader in_;
  const char* wrong_ = nullptr;
  std::vector<bool> is_member_ = std::vector<bool>(kMaxNodes);
  std::vector<bool> rank_seen_ = std::vector<bool>(kMaxRanks);
};

}  // namespace

Result<std::vector<std::byte>> encode_plan(const api::Plan& plan) {
  if (!within_limits(plan)) return Error{"the plan has more members, ranks or trees than allowed"};
  std::vector<std::byte> bytes(protocol::kMaxPlanBytes);
  ByteWriter out(bytes);
  out.write(plan.epoch);
  out.write(plan.activation_round);
  out.write(static_cast<std::uint8_t>(plan.kind));
  out.write(static_cast<std::uint16_t>(plan.members.size()));
  for (const api::Member& member : plan.members) {
    out.write(member.node);
    out.write(static_cast<std::uint8_t>(member.ranks.size()));
    for (const std::uint16_t rank : member.ranks) out.write(rank);
  }
  out.write(static_cast<std::uint8_t>(plan.trees.size()));
  for (const api::Tree& tree : plan.trees) write_tree(out, tree);
  write_routes(out, plan.routes);
  if (!out.ok())
    return Error{"the plan has more than " + std::to_string(protocol::kMaxPlanBytes) +
                 " bytes; use a planner with fewer or simpler trees"};
  bytes.resize(out.size());
  return bytes;
}

Result<api::Plan> decode_plan(std::span<const std::byte> bytes) {
  return PlanReader(bytes).read();
}

}  // namespace gradplane::session
