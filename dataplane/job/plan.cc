// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/plan.h"

#include <algorithm>

#include "dataplane/base/assert.h"

namespace gradplane::job {
namespace {

std::vector<aggregate::Partition::TreePart> parts_of(const PlanConfig& plan, CorePart core) {
  std::vector<aggregate::Partition::TreePart> parts;
  for (std::size_t t = 0; t < plan.trees.size(); ++t)
    parts.push_back({plan.trees[t].share, plan.trees[t].root_host, core.has_tree(t),
                     plan.trees[t].root_children});
  return parts;
}

bool has_streams(const PlanConfig& plan, const JobConfig& job) {
  return job.staleness_steps > 0 && !plan.selections.empty();
}

std::vector<aggregate::Tree> make_trees(const PlanConfig& plan, const JobConfig& job,
                                        const aggregate::HostTable& hosts,
                                        const aggregate::Partition& partition) {
  GP_ASSERT(plan.trees.size() <= kMaxTrees);
  std::vector<aggregate::Tree> trees;
  trees.reserve(plan.trees.size());
  for (std::size_t t = 0; t < plan.trees.size(); ++t) {
    const aggregate::TreeConfig& tree = plan.trees[t];
    trees.emplace_back(tree, aggregate::Tree::Limits{.epoch = plan.epoch,
                                                     .number = static_cast<std::uint8_t>(t),
                                                     .first_round = job.first_round,
                                                     .max_blocks = partition.capacity(t),
                                                     .block_bytes = job.block_bytes,
                                                     .local_ranks = job.local_ranks.size(),
                                                     .world_size = plan.world_size,
                                                     .has_streams = has_streams(plan, job),
                                                     .hosts = &hosts,
                                                     .partition = &partition,
                                                     .own_host = hosts.find(job.self)});
  }
  return trees;
}

/// The longest packet with a block on a route that a relay may receive; 0 if this node relays
/// nothing.
std::size_t relayed_bytes(const RouteTable& routes, const JobConfig& job) {
  return routes.relays() ? job.block_bytes + kMaxHeaderBytes + coverage_bytes(kMaxNodes) : 0;
}

std::vector<std::uint16_t> peers_beside_trees(const PlanConfig& plan, const RouteTable& routes) {
  const auto neighbours = routes.neighbours();
  std::vector<std::uint16_t> nodes(neighbours.begin(), neighbours.end());
  for (const hop::PeerIndex peer : plan.sounded) nodes.push_back(plan.peers[peer.index()].node);
  for (const hop::PeerIndex peer : plan.sounders) nodes.push_back(plan.peers[peer.index()].node);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

std::uint16_t ranks_of(std::uint16_t node, const PlanConfig& plan) {
  const auto host =
      std::find_if(plan.hosts.begin(), plan.hosts.end(),
                   [node](const aggregate::Host& candidate) { return candidate.node == node; });
  return host == plan.hosts.end() ? std::uint16_t{0} : host->ranks;
}

}  // namespace

Plan::Plan(const PlanConfig& plan, const JobConfig& job)
    : epoch_(plan.epoch),
      world_size_(plan.world_size),
      key_(job.authenticate ? std::make_shared<const wire::Gmac>(plan.key) : nullptr),
      has_all_ranks_(plan.has_all_ranks),
      own_ranks_(ranks_of(job.self, plan)),
      hosts_(plan.hosts, plan.host_of_rank),
      own_host_(hosts_.find(job.self)),
      hosts_before_(hosts_.words()),
      partition_(hosts_, parts_of(plan, job.core), job.max_blocks(), plan.selections),
      trees_(make_trees(plan, job, hosts_, partition_)),
      group_packets_(trees_.size()),
      routes_(plan, job.self),
      relayed_(relayed_bytes(routes_, job)),
      beside_trees_(peers_beside_trees(plan, routes_)),
      follows_network_(plan.follows_network),
      sounded_(plan.sounded),
      rates_(plan.peers),
      peer_names_(plan.peers.size()),
      acks_(edge_count()) {
  GP_ASSERT(hosts_.rank_count() == world_size_);
  peers_.reserve(plan.peers.size());
  for (const hop::PeerConfig& peer : plan.peers) {
    peers_.emplace_back(peer, key_, job.congestion, job.block_bytes);
  }
  for (aggregate::Tree& tree : trees_) {
    if (tree.group() != nullptr) groups_.push_back(tree.group());
    for (hop::OutEdge& edge : tree.out()) {
      edge.routes = routes_.routes_to(plan.peers[edge.peer.index()].node);
    }
  }
  add_update_groups(plan);
}

/// Each receiver of an update sums it in a tree of its own, and each such tree has all blocks. So
/// the members of a group for updates are this node's edges in other trees. Its packets name the
/// tree in which all receivers know this node as their parent.
void Plan::add_update_groups(const PlanConfig& plan) {
  if (plan.selections.empty() || own_host_ == aggregate::HostTable::kNone) return;
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    if (trees_[t].config().is_root()) own_tree_ = static_cast<std::uint8_t>(t);
  }
  if (!plan.multicasts_updates || !own_tree_) return;
  updates_.reserve(plan.selections.size());
  for (std::size_t s = 0; s < plan.selections.size(); ++s) {
    std::vector<hop::OutEdge*> receivers;
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      if (t == *own_tree_) continue;
      const bool sends = partition_.selections().sends(s, own_host_, partition_.root_host(t));
      if (sends) receivers.push_back(&trees_[t].push());
    }
    if (receivers.size() < kMinGroupMembers) continue;
    groups_.push_back(
        &updates_.emplace_back(hop::Group::Config{.max_blocks = partition_.capacity(*own_tree_),
                                                  .tree = *own_tree_,
                                                  .selection = static_cast<std::uint8_t>(s)},
                               receivers));
  }
}

GroupHearing Plan::group_hearing() const {
  GroupHearing found{.groups = static_cast<std::uint32_t>(groups_.size())};
  for (const hop::Group* group : groups_) {
    for (const hop::GroupMember& member : group->members()) {
      ++found.receivers;
      if (!member.hears) continue;
      ++found.hear;
      if (member.rests > 0) ++found.listen;
    }
  }
  return found;
}

bool Plan::has_group_over(const hop::OutEdge& edge) {
  return edge.is_push() ? !updates_.empty() : trees_[edge.id.tree].group() != nullptr;
}

hop::Group* Plan::receivers_of(const aggregate::Round& round) {
  if (round.geometry.operation != Operation::kExchange) return nullptr;
  const auto at = std::find_if(updates_.begin(), updates_.end(), [&round](const auto& group) {
    return group.selection() == round.geometry.source;
  });
  return at == updates_.end() ? nullptr : &*at;
}

bool Plan::receives_from(std::uint16_t node, std::size_t selection) const {
  const std::size_t from = hosts_.find(node);
  return own_host_ != aggregate::HostTable::kNone && from != aggregate::HostTable::kNone &&
         has_selection(selection) && partition_.selections().sends(selection, from, own_host_);
}

bool Plan::suits(std::size_t local_ranks) const {
  if (own_ranks_ == local_ranks) return true;
  return own_ranks_ == 0 && std::none_of(trees_.begin(), trees_.end(),
                                         [](const auto& tree) { return tree.config().member; });
}

std::size_t Plan::edge_count() const {
  std::size_t edges = 0;
  for (const aggregate::Tree& tree : trees_) edges += tree.in().size();
  return edges;
}

void Plan::follow(const Plan& before) {
  std::fill(hosts_before_.begin(), hosts_before_.end(), 0);
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const bool was_host = before.hosts_.find(hosts_[host].node) != aggregate::HostTable::kNone;
    if (was_host) aggregate::add_host(hosts_before_, host);
  }
}

void Plan::activate(std::uint32_t round) {
  activation_ = round;
  for (aggregate::Tree& tree : trees_) tree.begin_at(round);
}

/// The number of contributions to a block that lacks nobody. In an exchange, only the contributions
/// that this node gets count.
std::uint16_t Plan::whole_ranks(const Geometry& geometry) const {
  if (!all_contribute(geometry.operation)) return 1;
  if (geometry.operation != Operation::kExchange || own_host_ == aggregate::HostTable::kNone) {
    return world_size_;
  }
  const auto senders = partition_.selections().senders_to(geometry.source, own_host_);
  return static_cast<std::uint16_t>(own_ranks_ + hosts_.ranks_in(senders));
}

void Plan::open(aggregate::Round& round) {
  round.partition = &partition_;
  round.whole_ranks = whole_ranks(round.geometry);
  round.min_contributors = round.whole_ranks;
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    trees_[t].open(round, range_of(t, round.id, round.geometry));
  }
  if (hop::Group* group = receivers_of(round)) {
    const Bitmap* critical = round.bucket != nullptr ? &round.bucket->critical() : nullptr;
    group->open(round.slot(), trees_[*own_tree_].range(round.slot()),
                aggregate::Tree::rotation_of(round), critical);
  }
}

std::size_t Plan::new_peers(const hop::PeerTable& peers) const {
  return static_cast<std::size_t>(
      std::count_if(peers_.begin(), peers_.end(),
                    [&peers](const hop::Peer& peer) { return !peers.is_in_use(peer.node); }));
}

void Plan::connect(hop::PeerTable& peers, const aggregate::Context& context) {
  GP_ASSERT(!context_);
  context_.emplace(context);
  for (std::size_t p = 0; p < peers_.size(); ++p) {
    const std::uint16_t node = peers_[p].node;
    const bool is_known = peers.is_in_use(node);
    peer_names_[p] = is_known ? peers.add_routes(peers_[p]) : peers.add(peers_[p]);
  }
  for (const std::uint16_t node : beside_trees_) ++peers[peers.find(node)].plans_beside_trees;
  for (hop::PeerIndex& peer : sounded_) peer = peer_names_[peer.index()];
  for (aggregate::Tree& tree : trees_) {
    tree.rename_peers(peer_names_);
    for (hop::OutEdge& edge : tree.out()) {
      peers[edge.peer].edges.push_back(&edge);
      edge.to_poll = &peers.to_poll();
    }
  }
}

void Plan::apply_rates(hop::PeerTable& peers, bool of_updates, Instant now) const {
  for (std::size_t p = 0; p < rates_.size(); ++p) {
    hop::Peer& peer = peers[peer_names_[p]];
    const hop::PeerRates& rates = of_updates ? rates_[p].rates_of_updates : rates_[p].rates;
    peer.flow.set_link_rate(now, rates.rate_bits_per_second);
    peer.credit.set_share(now, rates.unscheduled_bits_per_second, rates.senders());
  }
}

bool Plan::sends(const aggregate::Round& round) const {
  return std::any_of(trees_.begin(), trees_.end(), [&round](const aggregate::Tree& tree) {
    const std::span<const hop::OutEdge> out = tree.out();
    return std::any_of(out.begin(), out.end(), [&round](const hop::OutEdge& edge) {
      return !edge.senders[round.slot()].settled();
    });
  });
}

void Plan::begin_other_ways(hop::PeerTable& peers, const Plan& before) const {
  for (const hop::PeerIndex name : peer_names_) {
    hop::Peer& peer = peers[name];
    for (std::size_t r = 0; peer.detours != nullptr && r < kMaxRoutes; ++r) {
      const hop::Route* route = routes_.route_to(peer.node, r);
      const hop::Route* other = before.routes_.route_to(peer.node, r);
      const bool is_same = route == nullptr || (other != nullptr && *route == *other);
      if (!is_same) (*peer.detours)[r].on_other_way();
    }
  }
}

void Plan::disconnect(hop::PeerTable& peers) {
  for (hop::Peer& peer : peers.all()) {
    std::erase_if(peer.edges,
                  [this](const hop::OutEdge* edge) { return edge->id.epoch == epoch_; });
  }
  for (const std::uint16_t node : beside_trees_) --peers[peers.find(node)].plans_beside_trees;
}

}  // namespace gradplane::job
