// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "control/config/draft.h"
#include "control/config/sizes.h"
#include "dataplane/model/core_part.h"

namespace gradplane::config {
namespace {

constexpr std::int64_t kMinHeartbeatsToSuspect = 3;

bool same_subnet(const NodeConfig& node, Ipv4 other) {
  const std::uint32_t mask = ~std::uint32_t{0} << (32 - node.prefix_length);
  return (node.address.value & mask) == (other.value & mask);
}

std::string address_text(Ipv4 a) {
  return fmt::format("{}.{}.{}.{}", a.value >> 24, (a.value >> 16) & 255, (a.value >> 8) & 255,
                     a.value & 255);
}

void check_unique_nodes(Draft& draft) {
  std::map<std::string, std::size_t> names;
  std::map<Ipv4, std::size_t> addresses;
  const auto& nodes = draft.config.cluster.nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (draft.has(node_key(i, "name"))) {
      const auto [first, fresh] = names.emplace(nodes[i].name, i);
      if (!fresh) {
        draft.error(node_key(i, "name"), fmt::format("is the name of {} already; names are unique",
                                                     node_section(first->second)));
      }
    }
    if (draft.has(node_key(i, "address"))) {
      const auto [first, fresh] = addresses.emplace(nodes[i].address, i);
      if (!fresh) {
        draft.error(node_key(i, "address"),
                    fmt::format("is the address of {} already; addresses are unique",
                                node_section(first->second)));
      }
    }
  }
}

void check_key(Draft& draft) {
  const bool key = draft.mentions("cluster.key");
  const bool file = draft.mentions("cluster.key_file");
  if (key && file) {
    draft.error("cluster.key_file", "cluster.key is given too; only one of them is accepted");
  }
  if (!key && !file && draft.node_count > 1) {
    draft.error("cluster.key_file",
                "missing; more than one node needs cluster.key_file or cluster.key, so that nobody "
                "else can join; make a key with: openssl rand -hex 16");
  }
}

/// A key of ports, and the kinds of port that use it or need it.
struct PortKindKey {
  std::string_view path;
  std::initializer_list<PortKind> kinds;
  bool required;
};

void check_port_kind(Draft& draft, std::size_t index) {
  using enum PortKind;
  static const PortKindKey kKeys[] = {
      {"port.interface", {kAfPacket, kAfXdp}, true},
      {"port.pci", {kPci}, true},
      {"port.memif.socket", {kMemif}, true},
      {"port.memif.role", {kMemif}, false},
      {"port.memif.id", {kMemif}, false},
      {"port.vlan", {kAfPacket, kAfXdp, kMemif, kPci}, false},
      {"port.huge_pages", {kAfPacket, kAfXdp, kMemif, kPci}, false},
      {"port.memory", {kAfPacket, kAfXdp, kMemif, kPci}, false},
      {"port.zero_copy", {kAfPacket, kMemif, kPci}, false},
  };
  const std::string kind_key = port_key(draft, index, "port.kind");
  if (!draft.has(kind_key)) {
    if (!draft.mentions(kind_key)) draft.error("port.kind", "missing; it has no default");
    return;
  }
  const PortKind kind = draft.config.cluster.nodes[index].port.kind;
  for (const PortKindKey& key : kKeys) {
    const bool wanted = std::find(key.kinds.begin(), key.kinds.end(), kind) != key.kinds.end();
    const std::string full_key = port_key(draft, index, key.path);
    if (wanted && key.required && !draft.mentions(full_key)) {
      draft.error(full_key, fmt::format("missing; port.kind {} of node {} needs it", name_of(kind),
                                        draft.config.cluster.nodes[index].name));
    }
    // port.* may be meant for other nodes if this node has a kind of its own.
    const bool common_for_others = full_key == key.path && kind_key != "port.kind";
    if (!wanted && is_set(draft, full_key) && !common_for_others) {
      draft.error(full_key,
                  fmt::format("means nothing with port.kind {}; remove it", name_of(kind)));
    }
  }
  if (kind == kAfXdp && draft.config.cluster.nodes[index].port.mtu_bytes > kMaxAfXdpMtuBytes) {
    draft.error(port_key(draft, index, "port.mtu"),
                fmt::format("at most {} is accepted with port.kind af_xdp", kMaxAfXdpMtuBytes));
  }
  if (kind == kLoopback && draft.node_count > 1) {
    draft.error(kind_key,
                "a loopback port reaches no other node; a cluster of several nodes "
                "needs another kind");
  }
}

void check_reachable(Draft& draft, std::size_t index) {
  const auto& nodes = draft.config.cluster.nodes;
  const NodeConfig& node = nodes[index];
  if (!draft.has(node_key(index, "address"))) return;
  const std::string gateway_key = port_key(draft, index, "port.gateway");
  if (node.port.gateway) {
    const bool is_node = std::any_of(nodes.begin(), nodes.end(), [&](const NodeConfig& other) {
      return other.address == *node.port.gateway;
    });
    if (is_node) {
      draft.error(gateway_key, "is the address of a node; a gateway is a router");
    } else if (!same_subnet(node, *node.port.gateway)) {
      draft.error(gateway_key,
                  fmt::format("is not in the subnet {}/{} of node {}", address_text(node.address),
                              node.prefix_length, node.name));
    }
    return;
  }
  if (draft.mentions(gateway_key)) return;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!draft.has(node_key(i, "address")) || same_subnet(node, nodes[i].address)) continue;
    draft.error(node_key(index, "address"),
                fmt::format("node {} ({}) is outside this subnet and there is no port.gateway",
                            nodes[i].name, address_text(nodes[i].address)));
    return;
  }
}

/// "plan.kind star", or "star in plan.jobs" where only some jobs have this kind.
std::string asked_for(const Draft& draft, PlanKind kind) {
  const std::string_view name = plan_kind_name(kind);
  return draft.config.plan.kind == kind ? fmt::format("plan.kind {}", name)
                                        : fmt::format("{} in plan.jobs", name);
}

void check_star(Draft& draft, std::size_t aggregators) {
  if (!draft.mentions("plan.root") && aggregators == 0) {
    draft.error("plan.root", fmt::format("missing; {} needs plan.root, or a node with aggregate: "
                                         "true",
                                         asked_for(draft, PlanKind::kStar)));
  }
}

void check_sharded(Draft& draft, std::size_t aggregators) {
  if (draft.config.plan.roots != ShardRoots::kAggregators) return;
  if (aggregators == 0) {
    draft.error("plan.roots",
                "aggregators: no node has aggregate: true; mark one, or use training");
  }
  if (aggregators > kMaxTrees) {
    draft.error("plan.roots", fmt::format("{} nodes have aggregate: true; at most {} may",
                                          aggregators, kMaxTrees));
  }
}

void check_manual(Draft& draft) {
  if (draft.tree_count == 0 && !draft.failed.contains("plan.trees")) {
    draft.error("plan.trees",
                fmt::format("missing; {} needs at least one tree with its root and parents",
                            asked_for(draft, PlanKind::kManual)));
  }
}

/// The kinds in plan.kind and plan.jobs.
std::set<PlanKind> kinds_in_use(const Draft& draft) {
  std::set<PlanKind> kinds = {draft.config.plan.kind};
  for (const JobPlan& job : draft.config.plan.jobs) kinds.insert(job.kind);
  return kinds;
}

/// Complains of keys that no kind of plan in use reads.
void check_unread_roots(Draft& draft, const std::set<PlanKind>& kinds) {
  for (const auto& [key, reader] :
       {std::pair("plan.root", PlanKind::kStar), std::pair("plan.roots", PlanKind::kSharded)}) {
    if (is_set(draft, key) && !kinds.contains(reader)) {
      draft.error(key, fmt::format("means nothing with plan.kind {}",
                                   plan_kind_name(draft.config.plan.kind)));
    }
  }
}

void check_plan(Draft& draft) {
  check_trees(draft);
  std::size_t aggregators = 0;
  for (std::size_t i = 0; i < draft.node_count; ++i) {
    if (draft.failed.contains(node_key(i, "aggregate"))) return;
    if (draft.config.cluster.nodes[i].aggregate) ++aggregators;
  }
  for (const char* key : {"plan.kind", "plan.roots", "plan.jobs"}) {
    if (draft.failed.contains(key)) return;
  }
  const std::set<PlanKind> kinds = kinds_in_use(draft);
  check_unread_roots(draft, kinds);
  if (kinds.contains(PlanKind::kStar)) check_star(draft, aggregators);
  if (kinds.contains(PlanKind::kSharded)) check_sharded(draft, aggregators);
  if (kinds.contains(PlanKind::kManual)) check_manual(draft);
}

void check_poll_cores(Draft& draft) {
  const PollConfig& poll = draft.config.poll;
  if (draft.failed.contains("poll.cores") || poll.cores.empty()) return;
  if (poll.core) {
    draft.error("poll.core", "poll.cores is given too; only one of them is accepted");
  }
  if (poll.cores.size() > kMaxCores) {
    draft.error("poll.cores", fmt::format("names {} CPUs; a daemon has {} poll threads at most",
                                          poll.cores.size(), kMaxCores));
  }
  const std::set<std::uint32_t> cpus(poll.cores.begin(), poll.cores.end());
  if (cpus.size() < poll.cores.size()) {
    draft.error("poll.cores", "names a CPU twice; each poll thread needs its own");
  }
}

void check_poll(Draft& draft) {
  check_poll_cores(draft);
  if (draft.config.poll.idle != IdlePolicy::kBusy) return;
  for (const char* key : {"poll.spin", "poll.max_sleep", "poll.real_time"}) {
    if (is_set(draft, key)) draft.error(key, "means nothing with poll.idle busy; remove it");
  }
}

// LTP's slack (IWQoS 2023) for a data centre.
constexpr Duration kLtpSlack = Duration::ms(30);

void check_gather(Draft& draft) {
  using enum bounds::Preset;
  GatherConfig& gather = draft.config.gather;
  if (draft.failed.contains("gather.preset")) return;
  const bounds::Preset preset = gather.rules.preset;
  if (preset != kPlot && preset != kAuto && draft.has("gather.budget")) {
    draft.error("gather.budget",
                fmt::format("means nothing with gather.preset {}; remove it", name_of(preset)));
  }
  if (preset == kLtp && !draft.mentions("gather.slack")) gather.slack = kLtpSlack;
}

void check_congestion(Draft& draft) {
  if (draft.failed.contains("congestion.controller") || draft.failed.contains("congestion.mltcp")) {
    return;
  }
  const Config& config = draft.config;
  const CongestionSettings& congestion = config.congestion;
  const bool is_fixed = congestion.controller == ControllerKind::kFixed;
  const bool some_are =
      std::any_of(config.job_controllers.begin(), config.job_controllers.end(),
                  [](const auto& job) { return job.controller == ControllerKind::kFixed; });
  if ((is_fixed || some_are) && !draft.mentions("congestion.rate")) {
    draft.error("congestion.rate",
                fmt::format("missing; {} fixed needs it",
                            is_fixed ? "congestion.controller" : "congestion.jobs with"));
  }
  if (!is_fixed && !some_are && draft.has("congestion.rate")) {
    draft.error("congestion.rate",
                fmt::format("means nothing with congestion.controller {}; remove it",
                            name_of(congestion.controller)));
  }
  const bool all_are = is_fixed && std::all_of(config.job_controllers.begin(),
                                               config.job_controllers.end(), [](const auto& job) {
                                                 return job.controller == ControllerKind::kFixed;
                                               });
  if (all_are && config.mltcp_controllers) {
    draft.error("congestion.mltcp",
                "means nothing with congestion.controller fixed, which adds nothing that could be "
                "multiplied; remove one of them");
  }
  for (const char* key : {"congestion.mltcp_slope", "congestion.mltcp_intercept"}) {
    const bool used = config.mltcp_controllers || config.grants.policy == GrantPolicy::kMltcp;
    if (!used && is_set(draft, key)) {
      draft.error(
          key, "means nothing without congestion.mltcp: true or grants.policy: mltcp; remove it");
    }
  }
}

void check_liveness(Draft& draft) {
  if (draft.failed.contains("liveness.heartbeat") ||
      draft.failed.contains("liveness.suspect_after")) {
    return;
  }
  const LivenessConfig& liveness = draft.config.liveness;
  if (liveness.suspect_after >= liveness.heartbeat * kMinHeartbeatsToSuspect) return;
  const std::string key =
      draft.has("liveness.suspect_after") ? "liveness.suspect_after" : "liveness.heartbeat";
  draft.error(key,
              fmt::format("suspect_after must be at least {} heartbeats", kMinHeartbeatsToSuspect));
}

/// The common `port` may name a device for the nodes of its kind. Nodes of other kinds do not have
/// it.
void drop_other_devices(PortConfig& port) {
  if (port.kind != PortKind::kAfPacket && port.kind != PortKind::kAfXdp) port.interface.clear();
  if (port.kind != PortKind::kPci) port.pci.clear();
}

}  // namespace

void check_consistency(Draft& draft) {
  check_unique_nodes(draft);
  check_key(draft);
  choose_mtu(draft.config);
  for (std::size_t i = 0; i < draft.node_count; ++i) {
    check_port_kind(draft, i);
    check_reachable(draft, i);
    drop_other_devices(draft.config.cluster.nodes[i].port);
  }
  if (draft.node_count > 0) {
    check_block(draft);
    choose_round_bytes(draft.config);
    check_plan(draft);
  }
  check_poll(draft);
  check_gather(draft);
  check_congestion(draft);
  check_grants(draft);
  check_multicast(draft);
  check_training(draft);
  check_liveness(draft);
}

}  // namespace gradplane::config
