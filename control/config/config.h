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
#include "control/config/shared_sections.h"
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

/// The operator's YAML as typed values. All values of a Config that parse_config() returns are in
/// range and consistent with each other, and no value that the operator wrote has been changed.
/// Control thread only.
namespace gradplane::config {

/// A configuration file is at most this long.
inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;
/// The IPv4 and UDP headers, which an MTU holds besides our datagram.
inline constexpr std::size_t kIpUdpHeaderBytes = 28;
/// One frame must hold any control message, and a block of the smallest size.
inline constexpr std::size_t kMinMtuBytes = kIpUdpHeaderBytes + kMinMtuPayloadBytes;
inline constexpr std::size_t kMaxMtuBytes = 9216;
/// An AF_XDP frame lies in one 4 KiB page, in which the kernel and DPDK reserve room before it.
inline constexpr std::size_t kMaxAfXdpMtuBytes = 3400;
/// The exact length of a cluster's shared secret.
inline constexpr std::size_t kClusterKeyBytes = 16;
static_assert(kMinMtuBytes <= 1500);
static_assert(kMinMtuBytes >= kIpUdpHeaderBytes + kMaxHeaderBytes + kMinBlockBytes);

enum class PortKind : std::uint8_t { kAfPacket, kAfXdp, kMemif, kPci, kLoopback };
enum class MemifRole : std::uint8_t { kServer, kClient };
enum class HugePages : std::uint8_t { kAuto, kNever, kRequire };
enum class ShardRoots : std::uint8_t { kAggregators, kTraining };
enum class IdlePolicy : std::uint8_t { kBusy, kAdaptive };
enum class LogLevel : std::uint8_t { kError, kWarn, kInfo, kDebug };

/// The name that the YAML has for a value.
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
  bool has_default_mtu = false;  // the operator has not chosen mtu_bytes
  std::optional<std::uint16_t> vlan;
  std::optional<Ipv4> gateway;
  HugePages huge_pages = HugePages::kAuto;
  std::size_t memory_bytes = 0;
  bool zero_copy = true;
  /// Without a value packets are not paced, and only the window limits them.
  std::optional<std::uint64_t> link_rate_bits_per_s;
  /// Size of the switch's queue before this node's link. Without a value it is not known.
  std::optional<std::size_t> buffer_bytes;
};

/// One entry of cluster.nodes. Its index is the node's api::NodeId.
struct NodeConfig {
  std::string name;
  Ipv4 address;
  std::uint8_t prefix_length = 0;
  bool aggregate = false;
  std::string site;  // empty: the node is a site of its own
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
  /// Set only if the key itself is in the file; load_cluster_key() also reads key_file.
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

/// One line of plan.jobs. The first whose pattern matches a job's name decides.
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
  /// With star: the root of every block. Otherwise kNoNode.
  api::NodeId root = api::kNoNode;
  /// With sharded: the nodes that are roots, each of one share.
  ShardRoots roots = ShardRoots::kAggregators;
  /// For plan.kind manual and `gradplane replan --plan manual`.
  std::vector<PlanTree> trees;
  bool auxiliary = false;  // plans get auxiliary routes
  RedrawConfig redraw;
};

/// network.*, for the planners.
struct NetworkConfig {
  /// The network of the file, where the access of a node has the rate of its link. Without a value
  /// the file names no sites and no links, and lacks the link's rate of some node.
  std::optional<plan::Network> network;
  /// How much an all_reduce carries when planners predict its time.
  std::uint64_t bytes = 0;
};

struct PollConfig {
  IdlePolicy idle = IdlePolicy::kAdaptive;
  std::optional<std::uint32_t> core;  // the CPU of the only poll thread; none: the kernel's choice
  std::vector<std::uint32_t> cores;   // one poll thread on each; empty: there is one in all
  Duration spin;
  Duration max_sleep;
  bool real_time = false;  // poll threads go before ordinary threads
};

struct LivenessConfig {
  Duration heartbeat;
  Duration suspect_after;
};

/// gather.*: how much of a round may be missing when it is summed. Only the coordinator's `rules`
/// are used; the rest must be the same on every node.
struct GatherConfig {
  bounds::Rules rules;
  Compensation compensation = Compensation::kRescale;
  /// How many first rounds of each bucket are exact.
  std::uint32_t strict_rounds = 0;
  /// The smallest share of every rank's blocks with which a round may close early, in millionths.
  std::uint32_t floor_ppm = 0;
  /// The time from the largest threshold to the deadline. Without a value it is learned.
  std::optional<Duration> slack;
  /// How long a round waits for a rank that sends nothing of it. Without a value it waits for ever.
  std::optional<Duration> absent_after;
};

/// One line of congestion.jobs. The first whose pattern (bounds::matches) matches a job's name
/// decides.
struct JobController {
  std::string pattern;
  ControllerKind controller = ControllerKind::kDelay;
};

/// grants.*
struct GrantsConfig {
  /// Whether a receiver of blocks grants credit to its senders. Nodes with other choices than
  /// kAuto must agree.
  GrantChoice enabled = GrantChoice::kAuto;
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

/// training.*: who gets the update of a rank. All but the mode is used only in selective modes.
struct TrainingConfig {
  TrainingMode mode = TrainingMode::kExact;
  /// The smallest share of the other ranks that receives each update, in millionths.
  std::uint32_t receivers_ppm = 0;
  ReceiverSelection selection = ReceiverSelection::kLinks;
  /// Each pair of ranks meets at least once in any freshness + 1 steps.
  std::uint32_t freshness = 0;
  std::uint32_t average_every = 0;  // steps; 0: never
  /// A rank waits for ranks that are more than so many steps behind it. Only with selective-ssp;
  /// see staleness_steps().
  std::uint32_t staleness = 0;
  /// A rank that reports more drift is warned of. Relative to the norm of the parameters, in
  /// millionths.
  std::uint32_t drift_limit_ppm = 0;

  bool is_selective() const { return mode != TrainingMode::kExact; }
  /// The staleness bound; 0: every rank waits for all that send to it in a step.
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
  /// Whether ranks may leave and join a job that runs. The coordinator's value counts.
  bool elastic = false;
  std::size_t round_bytes = 0;
  bool forward_order = false;  // rounds.order
  /// The payload of a block, the same on every node. `auto` gives the largest that fits every
  /// node's MTU.
  std::size_t block_bytes = 0;
  bool authenticate = true;
  GatherConfig gather;
  CongestionSettings congestion;  // for jobs that job_controllers does not name; without MLTCP
  std::vector<JobController> job_controllers;
  /// Whether controllers are decorated with MLTCP.
  bool mltcp_controllers = false;
  MltcpFunction mltcp;  // for controllers and for grants
  GrantsConfig grants;
  MulticastConfig multicast;
  TrainingConfig training;
  Quotas quotas;
  LogLevel log_level = LogLevel::kInfo;
  std::vector<SharedSection> shared_sections;

  const NodeConfig& self_node() const { return cluster.nodes[self]; }
  const PortConfig& port() const { return self_node().port; }
};

/// The congestion control of a job of this name, MLTCP included.
CongestionSettings congestion_of(const Config& config, std::string_view job);
/// The kind of plan of a job of this name, unless an operator asks for another one.
PlanKind plan_kind_of(const Config& config, std::string_view job);
/// What keeps every job from having grants by `grants.enabled: auto`, for people; empty: nothing.
std::string why_no_auto_grants(const Config& config);
/// The weight of a job of this name, for policies of grants that use weights.
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

/// A value in force and where it came from, for `check-config --effective`.
struct Setting {
  std::string key;     // "port.mtu", "cluster.nodes[2].port.mtu"
  std::string value;   // as YAML; a secret is hidden
  std::string origin;  // "default", "star.yaml:12", "--node", "host name", "derived: ..."
};

struct ParseOptions {
  /// The name of this node from the command line; empty: node.name of the file, else host_name.
  std::string node_override;
  /// The host's name; empty: ask the operating system.
  std::string host_name;
  /// Accept a file whose node list does not name this host (for a check on another machine).
  bool any_node = false;
};

/// A config, or none: then `errors` lists everything that is wrong, in the order of lines.
struct [[nodiscard]] ParsedConfig {
  std::optional<Config> config;
  std::vector<ConfigError> errors;
  std::vector<ConfigError> warnings;  // settings that are accepted, but probably not meant
  std::vector<Setting> settings;

  bool ok() const { return config.has_value(); }
};

/// Throws for no text, however wrong. `file_name` is only for messages.
ParsedConfig parse_config(std::string_view text, const std::string& file_name,
                          const ParseOptions& options = {});

/// Reads and parses a file; a file that cannot be read is one error.
ParsedConfig load_config(const std::string& path, const ParseOptions& options = {});

using ClusterKey = std::array<std::byte, kClusterKeyBytes>;

/// The cluster's key from cluster.key or cluster.key_file. It is all zero where neither is set,
/// which only a cluster of one node may do. Only its owner may have access to a key file.
Result<ClusterKey> load_cluster_key(const Config& config);

/// The whole configuration as YAML, with the origin of each value as a comment. Parsing it gives
/// the same configuration again, except for a key, which is hidden.
std::string effective_yaml(const ParsedConfig& parsed);

/// docs/config-reference.md, from the option table.
std::string reference_markdown();

}  // namespace gradplane::config
