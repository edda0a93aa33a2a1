// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/bounds/rules.h"
#include "control/plan/network.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/endpoint.h"
#include "dataplane/base/result.h"
#include "dataplane/base/time.h"
#include "dataplane/model/congestion_settings.h"
#include "dataplane/model/grant_settings.h"
#include "dataplane/model/group_range.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/loss_bounds.h"
#include "dataplane/model/plan_kind.h"
#include "dataplane/model/quotas.h"

/// The operator's YAML as typed values. Everything here is checked: a Config that parse_config()
/// returns is in range and consistent, and every key that the operator wrote is in it unchanged.
/// Control thread only.
namespace gradplane::config {

/// A configuration file is at most this long.
inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;
/// IPv4 and UDP header, what an MTU holds besides our datagram.
inline constexpr std::size_t kIpUdpHeaderBytes = 28;
/// A control message must fit one frame; so must the smallest block.
inline constexpr std::size_t kMinMtuBytes = kIpUdpHeaderBytes + kMinMtuPayloadBytes;
inline constexpr std::size_t kMaxMtuBytes = 9216;
/// The shared secret of a cluster is exactly this long.
inline constexpr std::size_t kClusterKeyBytes = 16;
static_assert(kMinMtuBytes <= 1500);
static_assert(kMinMtuBytes >= kIpUdpHeaderBytes + kMaxHeaderBytes + kMinBlockBytes);

enum class PortKind : std::uint8_t { kAfPacket, kAfXdp, kMemif, kPci, kLoopback };
enum class MemifRole : std::uint8_t { kServer, kClient };
enum class HugePages : std::uint8_t { kAuto, kNever, kRequire };
enum class ShardRoots : std::uint8_t { kAggregators, kTraining };
enum class IdlePolicy : std::uint8_t { kBusy, kAdaptive };
enum class LogLevel : std::uint8_t { kError, kWarn, kInfo, kDebug };

/// The name in the YAML of a value above.
std::string_view name_of(PortKind kind);
std::string_view name_of(LogLevel level);
std::string_view name_of(Compensation compensation);
std::string_view name_of(ControllerKind kind);
std::string_view name_of(GrantPolicy policy);

struct MemifConfig {
  std::string socket;
  MemifRole role = MemifRole::kClient;
  std::uint32_t id = 0;
};

/// A node's NIC port. `interface` is set for af_packet and af_xdp, `pci` for pci, memif.socket for
/// memif.
struct PortConfig {
  PortKind kind = PortKind::kAfPacket;
  std::string interface;
  std::string pci;
  MemifConfig memif;
  std::size_t mtu_bytes = 0;
  std::optional<std::uint16_t> vlan;
  std::optional<Ipv4> gateway;
  HugePages huge_pages = HugePages::kAuto;
  std::size_t memory_bytes = 0;
  /// None: not paced, only the window limits.
  std::optional<std::uint64_t> link_rate_bits_per_s;
  /// Of the switch's queue before this node's link. None: not known.
  std::optional<std::size_t> buffer_bytes;
};

/// One entry of cluster.nodes. Its index is the node's api::NodeId.
struct NodeConfig {
  std::string name;
  Ipv4 address;
  std::uint8_t prefix_length = 0;
  bool aggregate = false;
  std::string site;  // empty: one of its own
  /// port.* with this node's overrides applied.
  PortConfig port;
};

struct ControlConfig {
  std::string socket;
  std::string group;
  std::vector<std::uint32_t> allow_uids;
};

struct ClusterConfig {
  std::uint16_t udp_port = 0;
  /// As written in the file; load_cluster_key() gives the key whichever way it is configured.
  std::optional<std::array<std::byte, kClusterKeyBytes>> key;
  std::string key_file;
  api::NodeId coordinator = 0;
  std::vector<NodeConfig> nodes;
};

/// One entry of plan.trees: each node in it with its parent. The root has none.
struct PlanTree {
  std::uint32_t weight = 1;
  api::NodeId root = api::kNoNode;
  std::vector<std::pair<api::NodeId, api::NodeId>> parents;
};

/// plan.jobs: the first line whose pattern fits a job's name decides.
struct JobPlan {
  std::string pattern;
  PlanKind kind = PlanKind::kStar;
};

/// plan.redraw.*: when a plan is made anew because the network has changed.
struct RedrawConfig {
  bool enabled = true;
  Duration every;
  /// Least gain, in millionths of the predicted time.
  std::uint32_t gain_ppm = 0;
};

struct PlanConfig {
  PlanKind kind = PlanKind::kStar;
  std::vector<JobPlan> jobs;
  /// With star: the root of every block. kNoNode otherwise.
  api::NodeId root = api::kNoNode;
  /// With sharded: who roots a share.
  ShardRoots roots = ShardRoots::kAggregators;
  /// With manual, and for `gradplane replan --plan manual`.
  std::vector<PlanTree> trees;
  bool auxiliary = false;  // plans get auxiliary routes
  RedrawConfig redraw;
};

/// network.*, for the planners.
struct NetworkConfig {
  /// With the rate of each node's link as its access. None: the file says nothing of the network,
  /// and not the rate of every node's link either.
  std::optional<plan::Network> network;
  /// What an all_reduce is taken to carry.
  std::uint64_t bytes = 0;
};

struct PollConfig {
  IdlePolicy idle = IdlePolicy::kAdaptive;
  std::optional<std::uint32_t> core;  // that the only poll thread is pinned to
  std::vector<std::uint32_t> cores;   // a poll thread on each; none: there is one poll thread
  Duration spin;
  Duration max_sleep;
};

struct LivenessConfig {
  Duration heartbeat;
  Duration suspect_after;
};

/// gather.*: how much of a round may be missing when it is summed. `rules` count on the coordinator
/// alone; the rest must be the same on every node.
struct GatherConfig {
  bounds::Rules rules;
  Compensation compensation = Compensation::kRescale;
  /// Rounds of each bucket that are gathered exactly at first.
  std::uint32_t strict_rounds = 0;
  /// Least share of every rank's blocks before an early close, in millionths.
  std::uint32_t floor_ppm = 0;
  /// Between the largest threshold and the deadline. None: learned.
  std::optional<Duration> slack;
  /// How long a round waits for a rank that sends nothing of it. None: for ever.
  std::optional<Duration> absent_after;
};

/// congestion.jobs: the first line whose pattern (bounds::matches) fits a job's name decides.
struct JobController {
  std::string pattern;
  ControllerKind controller = ControllerKind::kDelay;
};

/// grants.*
struct GrantsConfig {
  /// Whether who receives blocks says who may send them; the same on every node.
  bool enabled = false;
  GrantPolicy policy = GrantPolicy::kFair;
  struct Weight {
    std::string pattern;
    double weight = 1;
  };
  std::vector<Weight> weights;
};

/// multicast.*
struct MulticastConfig {
  bool enabled = false;
  GroupRange range;
};

enum class TrainingMode : std::uint8_t { kExact, kSelectiveBsp, kSelectiveSsp };
std::string_view name_of(TrainingMode mode);

enum class ReceiverSelection : std::uint8_t { kLinks, kRandom };

/// training.*: who gets the update of a rank. All but the mode counts in a selective mode alone.
struct TrainingConfig {
  TrainingMode mode = TrainingMode::kExact;
  /// Least share of the other ranks that receive each update, in millionths.
  std::uint32_t receivers_ppm = 0;
  ReceiverSelection selection = ReceiverSelection::kLinks;
  /// Each pair of ranks meets at least once in any freshness + 1 steps.
  std::uint32_t freshness = 0;
  std::uint32_t average_every = 0;  // steps; 0: never
  /// A rank waits for those that are more steps behind. With selective-ssp alone; see
  /// staleness_steps().
  std::uint32_t staleness = 0;
  /// Of the drift that a rank reports, relative to the norm of the parameters, in millionths.
  std::uint32_t drift_limit_ppm = 0;

  bool is_selective() const { return mode != TrainingMode::kExact; }
  /// 0: every rank waits for all that send to it in a step.
  std::uint32_t staleness_steps() const {
    return mode == TrainingMode::kSelectiveSsp ? staleness : 0;
  }
};

struct Config {
  /// Index in cluster.nodes of the node that runs this daemon; kNoNode only with
  /// ParseOptions::any_node.
  api::NodeId self = api::kNoNode;
  ControlConfig control;
  ClusterConfig cluster;
  PlanConfig plan;
  NetworkConfig network;
  PollConfig poll;
  LivenessConfig liveness;
  /// Ranks that attach here must not go on over another transport.
  bool require = false;
  /// Coordinator: ranks may leave and join a job that runs.
  bool elastic = false;
  std::size_t round_bytes = 0;
  bool forward_order = false;  // rounds.order
  /// Payload of a block, the same on every node: with `auto` the largest that fits every node's
  /// MTU.
  std::size_t block_bytes = 0;
  bool authenticate = true;
  GatherConfig gather;
  CongestionSettings congestion;  // of jobs that job_controllers does not name; without mltcp
  std::vector<JobController> job_controllers;
  /// Whether controllers are decorated with MLTCP.
  bool mltcp_controllers = false;
  MltcpFunction mltcp;  // of controllers and of grants
  GrantsConfig grants;
  MulticastConfig multicast;
  TrainingConfig training;
  Quotas quotas;
  LogLevel log_level = LogLevel::kInfo;

  const NodeConfig& self_node() const { return cluster.nodes[self]; }
  const PortConfig& port() const { return self_node().port; }
};

/// What limits the sender of a job of this name.
CongestionSettings congestion_of(const Config& config, std::string_view job);
/// How a job of this name is planned when nobody asks for another plan.
PlanKind plan_kind_of(const Config& config, std::string_view job);
/// The weight of a job of this name where the policy of grants asks for it.
double weight_of(const Config& config, std::string_view job);

/// One thing wrong with a file, or worth a warning.
struct ConfigError {
  std::string file;
  std::size_t line = 0;  // from 1; 0: no line in particular
  std::string key;       // may be empty
  std::optional<std::string> value;
  std::string reason;  // what is accepted

  /// "file:line: key: value 'x': reason".
  std::string text() const;
  bool operator==(const ConfigError&) const = default;
};

/// A value in force and where it came from, for the effective dump.
struct Setting {
  std::string key;     // "port.mtu", "cluster.nodes[2].port.mtu"
  std::string value;   // as YAML; a secret is hidden
  std::string origin;  // "default", "star.yaml:12", "--node", "host name", "derived: ..."
};

struct ParseOptions {
  /// Who this host is, from the command line; empty: node.name of the file, else host_name.
  std::string node_override;
  /// Empty: ask the operating system.
  std::string host_name;
  /// Accept a file whose node list does not name this host (for a check on another machine).
  bool any_node = false;
};

/// Either a config, or why not: then `errors` lists everything that is wrong, by line.
struct [[nodiscard]] ParsedConfig {
  std::optional<Config> config;
  std::vector<ConfigError> errors;
  std::vector<ConfigError> warnings;  // what is in force and probably not meant
  std::vector<Setting> settings;

  bool ok() const { return config.has_value(); }
};

/// Never throws for what the text holds. `file_name` is only for messages.
ParsedConfig parse_config(std::string_view text, const std::string& file_name,
                          const ParseOptions& options = {});

/// Reads and parses a file; a file that cannot be read is one error.
ParsedConfig load_config(const std::string& path, const ParseOptions& options = {});

using ClusterKey = std::array<std::byte, kClusterKeyBytes>;

/// The cluster's key from cluster.key or cluster.key_file; all zero where a cluster of one node has
/// none. A key file must be readable by its owner alone.
Result<ClusterKey> load_cluster_key(const Config& config);

/// The whole configuration as YAML, each value with its origin as a comment. Loads again as the
/// same configuration, save for a hidden key.
std::string effective_yaml(const ParsedConfig& parsed);

/// docs/config-reference.md, from the option table.
std::string reference_markdown();

}  // namespace gradplane::config
