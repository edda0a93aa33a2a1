// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/engine/local_plan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "dataplane/base/assert.h"

namespace gradplane::engine {
namespace {

/// Looks nodes of a plan up by their place among its members.
class Members {
 public:
  explicit Members(const api::Plan& plan) : plan_(plan) {}

  std::optional<std::size_t> find(api::NodeId node) const {
    for (std::size_t m = 0; m < plan_.members.size(); ++m) {
      if (plan_.members[m].node == node) return m;
    }
    return std::nullopt;
  }

  std::size_t index_of(api::NodeId node) const {
    const auto member = find(node);
    GP_ASSERT(member && "a plan that names a node which is no member passed validate()");
    return *member;
  }

  /// The number of ranks at and below a member in a tree.
  std::size_t ranks_below(const api::Tree& tree, std::size_t member) const {
    std::size_t ranks = plan_.members[member].ranks.size();
    for (std::size_t m = 0; m < plan_.members.size(); ++m) {
      if (tree.parent[m] == plan_.members[member].node) ranks += ranks_below(tree, m);
    }
    return ranks;
  }

  /// Adds the members with ranks at or below `member` in a tree, as indices into the plan's hosts.
  void add_hosts_below(const api::Tree& tree, std::size_t member,
                       std::vector<std::uint16_t>& hosts) const {
    if (!plan_.members[member].ranks.empty()) hosts.push_back(host_of(member));
    for (std::size_t m = 0; m < plan_.members.size(); ++m) {
      if (tree.parent[m] == plan_.members[member].node) add_hosts_below(tree, m, hosts);
    }
  }

  /// The number of edges on the longest way from a member down to a leaf.
  std::uint16_t height(const api::Tree& tree, std::size_t member) const {
    std::uint16_t highest = 0;
    for (std::size_t m = 0; m < plan_.members.size(); ++m) {
      if (tree.parent[m] != plan_.members[member].node) continue;
      highest = std::max(highest, static_cast<std::uint16_t>(height(tree, m) + 1));
    }
    return highest;
  }

  bool in_tree(const api::Tree& tree, std::size_t member) const {
    return tree.root == plan_.members[member].node || tree.parent[member] != api::kNoNode;
  }

  /// The most nodes that send their updates to `node` in one step.
  std::size_t selected_to(api::NodeId node) const {
    std::size_t selected = 0;
    for (const api::Selection& selection : plan_.selections) {
      selected = std::max(selected, senders_in(selection, node));
    }
    return selected;
  }

  /// The number of nodes that send blocks to `member`, in any tree and direction.
  std::size_t senders_to(std::size_t member) const {
    const api::NodeId node = plan_.members[member].node;
    std::set<api::NodeId> senders;
    for (const api::Tree& tree : plan_.trees) {
      if (tree.parent[member] != api::kNoNode) senders.insert(tree.parent[member]);
      for (std::size_t m = 0; m < plan_.members.size(); ++m) {
        if (tree.parent[m] == node) senders.insert(plan_.members[m].node);
      }
    }
    return senders.size();
  }

  static std::size_t senders_in(const api::Selection& selection, api::NodeId node) {
    return static_cast<std::size_t>(std::count_if(
        selection.receivers.begin(), selection.receivers.end(), [node](const auto& receivers) {
          return std::count(receivers.begin(), receivers.end(), node) > 0;
        }));
  }

  /// The place of a member among the hosts, which are the members with ranks.
  std::uint16_t host_of(std::size_t member) const {
    const auto end = plan_.members.begin() + static_cast<std::ptrdiff_t>(member);
    return static_cast<std::uint16_t>(std::count_if(
        plan_.members.begin(), end, [](const api::Member& other) { return !other.ranks.empty(); }));
  }

 private:
  const api::Plan& plan_;
};

class Builder {
 public:
  Builder(const api::Plan& plan, api::NodeId self, const std::vector<std::uint64_t>& rates,
          bool grants, bool multicast, CorePart core)
      : plan_(plan),
        members_(plan),
        self_(self),
        rates_(rates),
        grants_(grants),
        multicast_(multicast),
        core_(core) {}

  job::PlanConfig build() {
    config_.epoch = plan_.epoch;
    std::uint64_t begin = 0;
    std::vector<std::uint16_t> ranks;
    for (const api::Member& member : plan_.members) {
      ranks.insert(ranks.end(), member.ranks.begin(), member.ranks.end());
    }
    // A plan may lack ranks of its job, so a rank's index here is its place among the plan's ranks.
    std::sort(ranks.begin(), ranks.end());
    config_.host_of_rank.resize(ranks.size());
    config_.has_all_ranks = !ranks.empty() && ranks.back() + std::size_t{1} == ranks.size();
    for (const api::Member& member : plan_.members) {
      if (member.ranks.empty()) continue;
      for (const std::uint16_t rank : member.ranks) {
        const auto place = std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
        config_.host_of_rank[static_cast<std::size_t>(place)] =
            static_cast<std::uint16_t>(config_.hosts.size());
      }
      config_.hosts.push_back(
          {.node = member.node, .ranks = static_cast<std::uint16_t>(member.ranks.size())});
    }
    config_.world_size = static_cast<std::uint16_t>(ranks.size());
    me_ = members_.find(self_);
    for (const api::Tree& tree : plan_.trees) {
      const bool is_here = core_.has_tree(config_.trees.size());
      config_.trees.push_back(place_in(tree, begin));
      // A tree of another part sends to that part's groups.
      config_.trees.back().multicasts_results &= is_here;
      begin += tree.weight;
    }
    for (std::size_t r = 0; r < plan_.routes.size(); ++r) add_route(r);
    for (const api::Selection& selection : plan_.selections) add_selection(selection);
    config_.multicasts_updates = multicast_ && !grants_ && !plan_.selections.empty();
    config_.follows_network = plan_needs_network(plan_.kind);
    // Soundings are sent without credit, so nobody sends them if receivers grant.
    if (!grants_ && core_.index == 0) add_soundings();
    return std::move(config_);
  }

 private:
  /// In a plan with selections every member has ranks, so a member's place is its host index.
  void add_selection(const api::Selection& selection) {
    aggregate::Receivers& receivers = config_.selections.emplace_back();
    for (const std::vector<api::NodeId>& nodes : selection.receivers) {
      std::vector<std::uint16_t>& hosts = receivers.emplace_back();
      for (const api::NodeId node : nodes) {
        hosts.push_back(static_cast<std::uint16_t>(members_.index_of(node)));
      }
    }
  }

  void add_soundings() {
    for (const api::Sounding& sounding : plan_.soundings) {
      if (sounding.from == self_) config_.sounded.push_back(peer(sounding.to));
      if (sounding.to == self_) config_.sounders.push_back(peer(sounding.from));
    }
  }

  /// Adds a route if this node is on it, and makes peers of the nodes before and after it.
  void add_route(std::size_t index) {
    const api::Route& route = plan_.routes[index];
    std::vector<api::NodeId> nodes = route.via;
    nodes.push_back(route.to);
    nodes.insert(nodes.begin(), route.from);
    const auto at = std::find(nodes.begin(), nodes.end(), self_);
    if (at == nodes.end()) return;
    if (at != nodes.begin()) (void)peer(*(at - 1));
    if (at + 1 != nodes.end()) (void)peer(*(at + 1));
    if (route.from == self_) config_.peers[peer(route.to).index()].has_routes = true;
    const auto before = plan_.routes.begin() + static_cast<std::ptrdiff_t>(index);
    const auto earlier =
        std::count_if(plan_.routes.begin(), before, [&route](const api::Route& other) {
          return other.from == route.from && other.to == route.to;
        });
    config_.routes.push_back({.from = route.from,
                              .nodes = {nodes.begin() + 1, nodes.end()},
                              .path = static_cast<std::uint8_t>(earlier + 1)});
  }

  aggregate::TreeConfig place_in(const api::Tree& tree, std::uint64_t begin) {
    aggregate::TreeConfig place;
    place.share = {begin, tree.weight};
    const std::size_t root = members_.index_of(tree.root);
    if (!plan_.members[root].ranks.empty()) place.root_host = members_.host_of(root);
    place.root_children =
        static_cast<std::size_t>(std::count(tree.parent.begin(), tree.parent.end(), tree.root));
    place.member = me_ && members_.in_tree(tree, *me_);
    if (!place.member) return place;
    place.height = members_.height(tree, *me_);
    place.tree_height = members_.height(tree, members_.index_of(tree.root));
    if (tree.parent[*me_] != api::kNoNode) place.parent = peer(tree.parent[*me_]);
    for (std::size_t m = 0; m < plan_.members.size(); ++m) {
      if (tree.parent[m] != self_) continue;
      aggregate::ChildConfig child{
          .peer = peer(plan_.members[m].node),
          .ranks = static_cast<std::uint16_t>(members_.ranks_below(tree, m)),
          .hosts = {}};
      members_.add_hosts_below(tree, m, child.hosts);
      place.children.push_back(std::move(child));
    }
    place.multicasts_results = multicast_ && !grants_ && place.children.size() >= kMinGroupMembers;
    return place;
  }

  hop::PeerIndex peer(api::NodeId node) {
    for (std::size_t p = 0; p < config_.peers.size(); ++p) {
      if (config_.peers[p].node == node) return hop::PeerIndex::from_index(p);
    }
    const std::size_t senders = members_.senders_to(members_.index_of(node));
    const std::size_t selected = members_.selected_to(node);
    config_.peers.push_back(
        {.node = node,
         .rates = rates_for(node, senders),
         .rates_of_updates = rates_for(node, selected > 0 ? selected : senders)});
    return hop::PeerIndex::from_index(config_.peers.size() - 1);
  }

  /// The number of parts of the job that have a tree with an edge between this node and `node`.
  /// They share the link to it. If only routes pass there, any part may use them.
  std::size_t parts_towards(api::NodeId node) const {
    std::set<std::size_t> parts;
    const auto other = members_.find(node);
    for (std::size_t t = 0; t < plan_.trees.size(); ++t) {
      const std::vector<api::NodeId>& parent = plan_.trees[t].parent;
      const bool is_parent = me_ && parent[*me_] == node;
      const bool is_child = other && parent[*other] == self_;
      if (is_parent || is_child) parts.insert(core_.part_of(t));
    }
    return parts.empty() ? core_.count : parts.size();
  }

  /// If no tree has an edge from `node`, it only relays for us: its senders count as one.
  hop::PeerRates rates_for(api::NodeId node, std::size_t senders) const {
    const std::uint64_t link = (node < rates_.size() ? rates_[node] : 0) / parts_towards(node);
    const std::uint64_t share = link / std::max<std::size_t>(1, senders);
    return {.rate_bits_per_second = grants_ ? link : share, .unscheduled_bits_per_second = share};
  }

  job::PlanConfig config_;
  const api::Plan& plan_;
  Members members_;
  api::NodeId self_;
  std::optional<std::size_t> me_;  // the place of self_ among the members, if it is one
  const std::vector<std::uint64_t>& rates_;
  bool grants_;
  bool multicast_;
  CorePart core_;
};

}  // namespace

job::PlanConfig local_plan(const api::Plan& plan, api::NodeId self,
                           const std::vector<std::uint64_t>& link_bits_per_second, bool grants,
                           bool multicast, CorePart core) {
  return Builder(split_trees(plan, core.count), self, link_bits_per_second, grants, multicast, core)
      .build();
}

void fill_local_plan(job::JobConfig& config, const api::Plan& plan, api::NodeId self,
                     const std::vector<std::uint64_t>& link_bits_per_second, bool multicast) {
  const std::uint32_t epoch = config.epoch;
  const wire::Key key = config.key;
  static_cast<job::PlanConfig&>(config) =
      local_plan(plan, self, link_bits_per_second, config.grants, multicast, config.core);
  config.epoch = epoch;
  config.key = key;
  config.first_round = plan.activation_round;
}

}  // namespace gradplane::engine
