// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/plan_codec.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "control/protocol/node_messages.h"
#include "control/session/bit_stream.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/operation.h"

namespace gradplane::session {

namespace {

constexpr unsigned bits_for(std::size_t largest) {
  return static_cast<unsigned>(std::bit_width(largest));
}
constexpr unsigned kNumberBits = 32;
constexpr unsigned kKindBits = bits_for(kPlanKindNames.size());
constexpr unsigned kNodeBits = bits_for(kMaxNodes);
constexpr unsigned kRankBits = bits_for(kMaxRanks);
constexpr unsigned kRankCountBits = bits_for(kMaxLocalRanks);
constexpr unsigned kTreeCountBits = bits_for(kMaxTrees);
constexpr unsigned kRelayCountBits = bits_for(kMaxRelays);
constexpr unsigned kRouteCountBits = 16;
constexpr unsigned kSoundingCountBits = bits_for(kMaxSoundings);
constexpr unsigned kSelectionCountBits = bits_for(kMaxSelections);
/// The most members of a plan with selections, because it has a tree for each.
constexpr std::size_t kMaxSelectingMembers = kMaxTrees;
constexpr std::size_t kMaxSelectionsBytes =
    kMaxSelections * kMaxSelectingMembers * (kMaxSelectingMembers - 1) / 8;
/// The size of one tree of such a plan: its weight, its root, and at most three runs of two places,
/// where a place takes one byte.
constexpr std::size_t kStarBytes = 4 + 2 + 3 * 2;
static_assert(kMaxSelectionsBytes + kMaxSelectingMembers * (kStarBytes + 4) + 4 * kMaxSoundings +
                      64 <
                  protocol::kMaxPlanBytes,
              "the largest plan with selections fits, beside members and soundings");
/// The most neighbours that are remembered of each member.
constexpr std::size_t kMaxNeighbours = 31;
static_assert(bits_for(kMaxNeighbours) + kNodeBits <= 8 * sizeof(api::NodeId),
              "no parent takes more than a node's number, as planners count on");

/// The member that is expected next: the next node, with the next rank only. Most members are as
/// expected, and take one bit.
struct Foretold {
  std::uint32_t node = 0;
  std::uint32_t rank = 0;
};

/// The index of a member in the plan. For no parent it is the number of members.
using Place = std::size_t;
constexpr Place kNoPlace = SIZE_MAX;

/// The neighbours of members in the trees so far. Trees over one network use the same edges again,
/// in either direction, so most parents can be named by a number among a few neighbours.
class Neighbours {
 public:
  explicit Neighbours(std::size_t members) : of_(members) {}

  const std::vector<Place>& of(Place member) const { return of_[member]; }
  void add_edge(Place child, Place parent) {
    add(child, parent);
    if (parent < of_.size()) add(parent, child);
  }

 private:
  void add(Place member, Place other) {
    std::vector<Place>& known = of_[member];
    const bool is_new = std::find(known.begin(), known.end(), other) == known.end();
    if (is_new && known.size() < kMaxNeighbours) known.push_back(other);
  }

  std::vector<std::vector<Place>> of_;
};

class PlanWriter {
 public:
  explicit PlanWriter(const api::Plan& plan)
      : plan_(plan),
        place_bits_(bits_for(plan.members.size())),
        place_of_(kMaxNodes, kNoPlace),
        neighbours_(plan.members.size()) {}

  /// The encoded plan; nothing if it breaks a bound, or names a node that is no member.
  std::optional<std::vector<std::byte>> write() {
    if (!within_limits()) return std::nullopt;
    out_.write(plan_.epoch, kNumberBits);
    out_.write(plan_.activation_round, kNumberBits);
    out_.write(static_cast<std::uint32_t>(plan_.kind), kKindBits);
    out_.write(static_cast<std::uint32_t>(plan_.members.size()), kNodeBits);
    for (Place m = 0; m < plan_.members.size(); ++m) write_member(m);
    out_.write(static_cast<std::uint32_t>(plan_.trees.size()), kTreeCountBits);
    for (const api::Tree& tree : plan_.trees) write_tree(tree);
    write_routes();
    write_soundings();
    write_selections();
    if (!good_) return std::nullopt;
    return out_.take();
  }

 private:
  struct Run {
    std::size_t length;
    Place parent;
  };

  bool within_limits() const {
    if (plan_.members.empty() || plan_.members.size() > kMaxNodes) return false;
    if (plan_.trees.empty() || plan_.trees.size() > kMaxTrees) return false;
    if (plan_.routes.size() >> kRouteCountBits != 0) return false;
    if (plan_.soundings.size() > kMaxSoundings) return false;
    if (plan_.selections.size() > kMaxSelections) return false;
    if (!plan_.selections.empty() && plan_.members.size() > kMaxSelectingMembers) return false;
    for (const api::Member& member : plan_.members)
      if (member.ranks.size() > kMaxLocalRanks) return false;
    for (const api::Selection& selection : plan_.selections)
      if (selection.receivers.size() != plan_.members.size()) return false;
    for (const api::Route& route : plan_.routes)
      if (route.via.empty() || route.via.size() > kMaxRelays) return false;
    return std::all_of(plan_.trees.begin(), plan_.trees.end(), [this](const api::Tree& tree) {
      return tree.parent.size() == plan_.members.size();
    });
  }

  void write_member(Place place) {
    const api::Member& member = plan_.members[place];
    if (member.node < kMaxNodes) place_of_[member.node] = place;
    const bool is_foretold =
        member.node == next_.node && member.ranks.size() == 1 && member.ranks[0] == next_.rank;
    out_.write(is_foretold ? 1 : 0, 1);
    if (!is_foretold) {
      out_.write(member.node, kNodeBits);
      out_.write(static_cast<std::uint32_t>(member.ranks.size()), kRankCountBits);
      for (const std::uint16_t rank : member.ranks) out_.write(rank, kRankBits);
    }
    next_.node = member.node + 1U;
    if (!member.ranks.empty()) next_.rank = member.ranks.back() + 1U;
  }

  Place place_of(api::NodeId node) {
    const Place place = node < kMaxNodes ? place_of_[node] : kNoPlace;
    good_ = good_ && place != kNoPlace;
    return place == kNoPlace ? 0 : place;
  }
  Place place_of_parent(api::NodeId node) {
    return node == api::kNoNode ? plan_.members.size() : place_of(node);
  }
  void write_place(Place place) { out_.write(static_cast<std::uint32_t>(place), place_bits_); }

  std::vector<Run> runs_of(const std::vector<api::NodeId>& parents) {
    std::vector<Run> runs;
    for (const api::NodeId node : parents) {
      const Place parent = place_of_parent(node);
      if (runs.empty() || runs.back().parent != parent)
        runs.push_back({1, parent});
      else
        ++runs.back().length;
    }
    return runs;
  }

  void write_tree(const api::Tree& tree) {
    out_.write(tree.weight, kNumberBits);
    write_place(place_of(tree.root));
    const std::vector<Run> runs = runs_of(tree.parent);
    // A run takes two places, a single parent some bits or one place.
    const bool as_runs = runs.size() * 4 < tree.parent.size();
    write_place(as_runs ? runs.size() : 0);
    if (as_runs) {
      for (const Run& run : runs) {
        write_place(run.length);
        write_place(run.parent);
      }
      return;
    }
    for (Place m = 0; m < tree.parent.size(); ++m) write_parent(m, place_of_parent(tree.parent[m]));
  }

  void write_parent(Place member, Place parent) {
    const std::vector<Place>& known = neighbours_.of(member);
    const auto found = std::find(known.begin(), known.end(), parent) - known.begin();
    out_.write(static_cast<std::uint32_t>(found), bits_for(known.size()));
    if (static_cast<std::size_t>(found) < known.size()) return;
    write_place(parent);
    neighbours_.add_edge(member, parent);
  }

  void write_routes() {
    out_.write(static_cast<std::uint32_t>(plan_.routes.size()), kRouteCountBits);
    for (const api::Route& route : plan_.routes) {
      write_place(place_of(route.from));
      write_place(place_of(route.to));
      out_.write(static_cast<std::uint32_t>(route.via.size()), kRelayCountBits);
      for (const api::NodeId relay : route.via) write_place(place_of(relay));
    }
  }

  void write_soundings() {
    out_.write(static_cast<std::uint32_t>(plan_.soundings.size()), kSoundingCountBits);
    for (const api::Sounding& sounding : plan_.soundings) {
      write_place(place_of(sounding.from));
      write_place(place_of(sounding.to));
    }
  }

  void write_selections() {
    out_.write(static_cast<std::uint32_t>(plan_.selections.size()), kSelectionCountBits);
    for (const api::Selection& selection : plan_.selections)
      for (Place m = 0; m < plan_.members.size(); ++m) write_receivers(m, selection.receivers[m]);
  }

  /// Writes a bit for each other member. Bits cannot express an order, so receivers must be
  /// ascending, without repetition and without the sender.
  void write_receivers(Place sender, const std::vector<api::NodeId>& receivers) {
    std::vector<bool> receives(plan_.members.size());
    for (const api::NodeId node : receivers) receives[place_of(node)] = true;
    const auto not_ascending = std::adjacent_find(receivers.begin(), receivers.end(),
                                                  [](auto a, auto b) { return a >= b; });
    good_ = good_ && not_ascending == receivers.end() && !receives[sender];
    for (Place m = 0; m < receives.size(); ++m)
      if (m != sender) out_.write(receives[m] ? 1 : 0, 1);
  }

  const api::Plan& plan_;
  unsigned place_bits_;
  std::vector<Place> place_of_;  // by node
  Neighbours neighbours_;
  Foretold next_;
  BitWriter out_;
  bool good_ = true;
};

class PlanReader {
 public:
  explicit PlanReader(std::span<const std::byte> bytes) : in_(bytes) {}

  Result<api::Plan> read() {
    api::Plan plan;
    plan.epoch = in_.read(kNumberBits);
    plan.activation_round = in_.read(kNumberBits);
    const std::uint32_t kind = in_.read(kKindBits);
    check(kind < kPlanKindNames.size(), "kind");
    plan.kind = static_cast<PlanKind>(kind);
    const std::size_t member_count = in_.read(kNodeBits);
    check(member_count >= 1 && member_count <= kMaxNodes, "number of members");
    for (std::size_t i = 0; i < member_count && ok(); ++i) read_member(plan);
    const std::size_t tree_count = in_.read(kTreeCountBits);
    check(tree_count >= 1 && tree_count <= kMaxTrees, "number of trees");
    place_bits_ = bits_for(plan.members.size());
    Neighbours neighbours(plan.members.size());
    for (std::size_t i = 0; i < tree_count && ok(); ++i) read_tree(plan, neighbours);
    const std::size_t route_count = ok() ? in_.read(kRouteCountBits) : 0;
    for (std::size_t i = 0; i < route_count && ok(); ++i) read_route(plan);
    const std::size_t sounding_count = ok() ? in_.read(kSoundingCountBits) : 0;
    check(sounding_count <= kMaxSoundings, "number of soundings");
    for (std::size_t i = 0; i < sounding_count && ok(); ++i) read_sounding(plan);
    const std::size_t selection_count = ok() ? in_.read(kSelectionCountBits) : 0;
    check(selection_count <= kMaxSelections, "number of selections");
    check(selection_count == 0 || plan.members.size() <= kMaxSelectingMembers,
          "number of members for selections");
    for (std::size_t i = 0; i < selection_count && ok(); ++i) read_selection(plan);
    check(in_.ok(), "end: it is cut short");
    check(in_.at_end(), "end: it goes on");
    if (!ok()) return Error{std::string("the plan has a wrong ") + wrong_};
    return plan;
  }

 private:
  bool ok() const { return wrong_ == nullptr && in_.ok(); }
  void check(bool condition, const char* what) {
    if (!condition && wrong_ == nullptr) wrong_ = what;
  }

  void read_member(api::Plan& plan) {
    const bool is_foretold = in_.read(1) == 1;
    const std::uint32_t node = is_foretold ? next_.node : in_.read(kNodeBits);
    check(node < kMaxNodes && !is_member_[node], "member");
    const std::size_t rank_count = is_foretold ? 1 : in_.read(kRankCountBits);
    check(rank_count <= kMaxLocalRanks, "number of ranks");
    if (!ok()) return;
    is_member_[node] = true;
    api::Member& member = plan.members.emplace_back();
    member.node = static_cast<api::NodeId>(node);
    for (std::size_t i = 0; i < rank_count && ok(); ++i) {
      const std::uint32_t rank = is_foretold ? next_.rank : in_.read(kRankBits);
      check(rank < kMaxRanks && !rank_seen_[rank], "rank");
      if (!ok()) return;
      rank_seen_[rank] = true;
      member.ranks.push_back(static_cast<std::uint16_t>(rank));
    }
    next_.node = node + 1;
    if (!member.ranks.empty()) next_.rank = member.ranks.back() + 1U;
  }

  std::size_t read_place() { return in_.read(place_bits_); }

  api::NodeId read_node(const api::Plan& plan, const char* what) {
    const Place place = read_place();
    check(place < plan.members.size(), what);
    return ok() ? plan.members[place].node : api::kNoNode;
  }

  void read_tree(api::Plan& plan, Neighbours& neighbours) {
    api::Tree& tree = plan.trees.emplace_back();
    tree.weight = in_.read(kNumberBits);
    check(tree.weight > 0, "weight");
    tree.root = read_node(plan, "root");
    const std::size_t run_count = read_place();
    const std::size_t size = plan.members.size();
    for (std::size_t i = 0; i < run_count && ok(); ++i) {
      const std::size_t length = read_place();
      add_parents(plan, tree, length, read_place());
    }
    for (Place m = 0; run_count == 0 && m < size && ok(); ++m)
      add_parents(plan, tree, 1, read_parent(m, neighbours));
    check(tree.parent.size() == size, "number of parents");
  }

  Place read_parent(Place member, Neighbours& neighbours) {
    const std::vector<Place>& known = neighbours.of(member);
    const std::size_t which = in_.read(bits_for(known.size()));
    check(which <= known.size(), "parent");
    if (which < known.size()) return known[which];
    const Place parent = read_place();
    neighbours.add_edge(member, parent);
    return parent;
  }

  void add_parents(const api::Plan& plan, api::Tree& tree, std::size_t count, Place parent) {
    const std::size_t size = plan.members.size();
    check(count >= 1 && count <= size - tree.parent.size(), "number of parents");
    check(parent <= size, "parent");
    if (!ok()) return;
    const api::NodeId node = parent == size ? api::kNoNode : plan.members[parent].node;
    tree.parent.insert(tree.parent.end(), count, node);
  }

  void read_route(api::Plan& plan) {
    api::Route& route = plan.routes.emplace_back();
    route.from = read_node(plan, "end of a route");
    route.to = read_node(plan, "end of a route");
    const std::size_t relays = in_.read(kRelayCountBits);
    check(relays >= 1 && relays <= kMaxRelays, "number of relays");
    for (std::size_t r = 0; r < relays && ok(); ++r) route.via.push_back(read_node(plan, "relay"));
  }

  void read_sounding(api::Plan& plan) {
    api::Sounding& sounding = plan.soundings.emplace_back();
    sounding.from = read_node(plan, "end of a sounding");
    sounding.to = read_node(plan, "end of a sounding");
  }

  void read_selection(api::Plan& plan) {
    api::Selection& selection = plan.selections.emplace_back();
    for (Place sender = 0; sender < plan.members.size() && ok(); ++sender) {
      std::vector<api::NodeId>& receivers = selection.receivers.emplace_back();
      for (Place m = 0; m < plan.members.size(); ++m)
        if (m != sender && in_.read(1) == 1) receivers.push_back(plan.members[m].node);
      std::sort(receivers.begin(), receivers.end());  // members may be in any order
    }
  }

  BitReader in_;
  const char* wrong_ = nullptr;
  unsigned place_bits_ = 0;
  Foretold next_;
  std::vector<bool> is_member_ = std::vector<bool>(kMaxNodes);
  std::vector<bool> rank_seen_ = std::vector<bool>(kMaxRanks);
};

}  // namespace

Result<std::vector<std::byte>> encode_plan(const api::Plan& plan) {
  std::optional<std::vector<std::byte>> bytes = PlanWriter(plan).write();
  if (!bytes)
    return Error{
        "the plan has more members, ranks, trees or selections than allowed, or names a node "
        "that is no member"};
  if (bytes->size() > protocol::kMaxPlanBytes)
    return Error{"the plan has more than " + std::to_string(protocol::kMaxPlanBytes) +
                 " bytes; use a planner with fewer or simpler trees"};
  return std::move(*bytes);
}

Result<api::Plan> decode_plan(std::span<const std::byte> bytes) {
  return PlanReader(bytes).read();
}

}  // namespace gradplane::session
