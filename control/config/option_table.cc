// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/option_table.h"

#include <algorithm>
#include <array>

#include "control/config/key.h"
#include "dataplane/model/core_part.h"

namespace gradplane::config {
namespace {

using enum OptionType;
using enum OptionScope;

constexpr std::array<std::string_view, 2> kIdlePolicies = {"busy", "adaptive"};
constexpr std::array<std::string_view, 2> kRoundOrders = {"submitted", "forward"};
constexpr std::array<std::string_view, 4> kLogLevels = {"error", "warn", "info", "debug"};
static_assert(kLogLevels.size() == static_cast<std::size_t>(LogLevel::kDebug) + 1);

constexpr std::int64_t kMs = 1000000;
constexpr std::int64_t kSecond = 1000 * kMs;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kMaxPathBytes = 4095;
// Only root may bind ports below 1024. The ports above kMaxUdpPort leave room for one UDP port per
// poll core.
constexpr std::int64_t kMinUdpPort = 1024;
constexpr std::int64_t kMaxUdpPort = 65000;
static_assert(kMaxUdpPort + kMaxCores - 1 <= UINT16_MAX, "each poll core has one");
constexpr std::int64_t kMaxCpu = 4095;
constexpr std::int64_t kMaxGroupBytes = 32;  // what groupadd accepts
constexpr std::int64_t kMaxUid = 0xfffffffe;
constexpr std::int64_t kArenaAlignBytes = 4096;
static_assert(kMaxRoundBytes % kArenaAlignBytes == 0);

// One row per option, in the order of the reference page.
constexpr Option kOptions[] = {
    {.path = "node.name",
     .type = kNodeName,
     .default_note = "the host name",
     .summary = "Which entry of cluster.nodes this host is. `--node NAME` overrides it.",
     .store = [](const Target& t, const Value& v) { t.references->self = v.text; }},
    {.path = "control.socket",
     .type = kPath,
     .min = 2,
     .max = kMaxSocketPathBytes,
     .default_text = "/run/gradplane/gradplaned.sock",
     .summary = "Unix socket on which the daemon serves trainers and operators.",
     .store = [](const Target& t, const Value& v) { t.config->control.socket = v.text; }},
    {.path = "control.group",
     .type = kGroup,
     .max = kMaxGroupBytes,
     .default_note = "none: root, the daemon's own user and control.allow_uids alone",
     .summary = "Group whose members may connect: the socket belongs to it, with mode 0660. Others "
                "are refused by the kernel.",
     .store = [](const Target& t, const Value& v) { t.config->control.group = v.text; }},
    {.path = "control.allow_uids",
     .type = kIntegerList,
     .max = kMaxUid,
     .default_text = "[]",
     .summary = "Users that may connect besides root, the daemon's own user and `control.group`. "
                "They stand in the socket's access list (ACL), so its file system must have these "
                "(tmpfs, ext4 and xfs do).",
     .store = [](const Target& t, const Value& v) { t.config->control.allow_uids = v.list; }},
    {.path = "cluster.udp_port",
     .type = kInteger,
     .min = kMinUdpPort,
     .max = kMaxUdpPort,
     .default_text = "47000",
     .summary = "First UDP port of the dataplane, the same on every node.",
     .store = [](const Target& t,
                 const Value& v) { t.config->cluster.udp_port = as<std::uint16_t>(v); }},
    {.path = "cluster.key",
     .type = kSecret,
     .default_note = "none; this or cluster.key_file is required with more than one node",
     .summary = "Shared secret that authenticates control messages between nodes. Make one with "
                "`openssl rand -hex 16`.",
     .store = [](const Target& t, const Value& v) { t.config->cluster.key = parse_key(v.text); }},
    {.path = "cluster.key_file",
     .type = kPath,
     .min = 2,
     .max = kMaxPathBytes,
     .default_note = "none",
     .summary = "File that holds the key instead, readable by its owner alone.",
     .store = [](const Target& t, const Value& v) { t.config->cluster.key_file = v.text; }},
    {.path = "cluster.coordinator",
     .type = kNodeName,
     .default_note = "the first node",
     .summary = "Node that admits ranks and distributes plans. When it dies, the first node in the "
                "list that answers does so, by its own file. So `plan`, `network`, `gather`, "
                "`quotas` and `ranks.elastic` should be the same in all.",
     .store = [](const Target& t, const Value& v) { t.references->coordinator = v.text; }},
    {.path = "name",
     .scope = kNode,
     .type = kNodeName,
     .required = true,
     .summary = "Name of the node, unique in the list.",
     .store = [](const Target& t, const Value& v) { t.node->name = v.text; }},
    {.path = "site",
     .scope = kNode,
     .type = kNodeName,
     .default_note = "a site of its own, with the node's name",
     .summary = "Site of the node, for plans that know the [network](#network).",
     .store = [](const Target& t, const Value& v) { t.node->site = v.text; }},
    {.path = "address",
     .scope = kNode,
     .type = kAddressPrefix,
     .required = true,
     .summary = "Dataplane address and subnet of the node, unique in the list. It belongs to "
                "gradplane: do not configure it in the kernel.",
     .store =
         [](const Target& t, const Value& v) {
           t.node->address = Ipv4{as<std::uint32_t>(v)};
           t.node->prefix_length = v.prefix_length;
         }},
    {.path = "aggregate",
     .scope = kNode,
     .type = kBoolean,
     .default_text = "false",
     .summary = "Whether plans may make this node a root although it hosts no rank.",
     .store = [](const Target& t, const Value& v) { t.node->aggregate = v.number != 0; }},
    {.path = "poll.idle",
     .type = kChoice,
     .choices = kIdlePolicies,
     .default_text = "adaptive",
     .summary = "`busy` polls for ever and owns its core; `adaptive` spins, then sleeps with "
                "pauses of a sixteenth of the time since the last work.",
     .store = [](const Target& t, const Value& v) { t.config->poll.idle = as<IdlePolicy>(v); }},
    {.path = "poll.core",
     .type = kInteger,
     .max = kMaxCpu,
     .default_note = "none: any CPU that the process may use",
     .summary = "CPU that the poll thread is pinned to.",
     .store = [](const Target& t, const Value& v) { t.config->poll.core = as<std::uint32_t>(v); }},
    {.path = "poll.cores",
     .type = kIntegerList,
     .max = kMaxCpu,
     .default_text = "[]",
     .summary = "CPUs with a poll thread each, at most 16, instead of `poll.core`: they share the "
                "blocks of "
                "each job, and UDP ports from `cluster.udp_port` on. As many on every node. Empty: "
                "one poll thread. See [cores](cores.md).",
     .store = [](const Target& t, const Value& v) { t.config->poll.cores = v.list; }},
    {.path = "poll.spin",
     .type = kTime,
     .max = kSecond,
     .default_text = "50 us",
     .summary =
         "With adaptive: how long the loop looks for work before it sleeps. In between it lets "
         "ordinary threads run, except with real_time. Where one packet takes the link longer than "
         "this, it sleeps at once.",
     .store = [](const Target& t,
                 const Value& v) { t.config->poll.spin = Duration::ns(v.number); }},
    {.path = "poll.max_sleep",
     .type = kTime,
     .min = 10000,
     .max = 100 * kMs,
     .default_text = "2 ms",
     .summary = "With adaptive: the longest pause; an idle node answers a packet that much later.",
     .store = [](const Target& t,
                 const Value& v) { t.config->poll.max_sleep = Duration::ns(v.number); }},
    {.path = "poll.real_time",
     .type = kBoolean,
     .default_text = "false",
     .summary = "With adaptive: poll threads go before ordinary threads (SCHED_RR). Needs "
                "CAP_SYS_NICE. See [cores](cores.md#a-core-that-is-shared).",
     .store = [](const Target& t, const Value& v) { t.config->poll.real_time = v.number != 0; }},
    {.path = "rounds.bytes",
     .type = kSizeOrAuto,
     .min = 64 * kKiB,
     .max = kMaxRoundBytes,
     .multiple_of = kArenaAlignBytes,
     .default_text = "auto",
     .summary =
         "Memory of one round in a rank's arena; larger buckets are cut into rounds. `auto`: "
         "256 KiB where all nodes have memif or loopback, so that the rounds under way fit "
         "the processor's caches, else 4 MiB.",
     .store = [](const Target& t, const Value& v) { t.config->round_bytes = as<std::size_t>(v); }},
    {.path = "rounds.order",
     .type = kChoice,
     .choices = kRoundOrders,
     .default_text = "submitted",
     .summary = "Which of several rounds that wait goes first. `submitted`: the oldest; `forward`: "
                "of an iteration the newest, because the next forward pass begins with the layers "
                "whose gradients come last. DDP waits for all of them, so that nothing is gained "
                "there. Every node should have the same.",
     .store = [](const Target& t, const Value& v) { t.config->forward_order = v.number != 0; }},
    {.path = "block.bytes",
     .type = kSizeOrAuto,
     .min = kMinBlockBytes,
     .max = kMaxBlockBytes,
     .multiple_of = kBlockAlignBytes,
     .default_text = "auto",
     .summary = "Payload of one packet. `auto`: the largest that fits the MTU of every node.",
     .store = [](const Target& t, const Value& v) { t.config->block_bytes = as<std::size_t>(v); }},
    {.path = "liveness.heartbeat",
     .type = kTime,
     .min = 10 * kMs,
     .max = kMinute,
     .default_text = "250 ms",
     .summary = "Pause between the signs of life that nodes exchange.",
     .store = [](const Target& t,
                 const Value& v) { t.config->liveness.heartbeat = Duration::ns(v.number); }},
    {.path = "liveness.suspect_after",
     .type = kTime,
     .min = 100 * kMs,
     .max = 10 * kMinute,
     .default_text = "3 s",
     .summary = "Silence after which a node counts as dead; at least three heartbeats. A round in "
                "which nothing moves for twice as long, and at least 5 s, although no rank is "
                "waited for, ends its job.",
     .store = [](const Target& t,
                 const Value& v) { t.config->liveness.suspect_after = Duration::ns(v.number); }},
    {.path = "ranks.require",
     .type = kBoolean,
     .default_text = "false",
     .summary = "Whether a job with a rank on this node fails instead of falling back to its "
                "original collectives. `gradplane run --config FILE` heeds it also where no daemon "
                "answers.",
     .store = [](const Target& t, const Value& v) { t.config->require = v.number != 0; }},
    {.path = "ranks.elastic",
     .type = kBoolean,
     .default_text = "false",
     .summary = "Whether ranks may leave and join a job that runs: `gradplane replan --without` "
                "takes the ranks of a node out, and ranks that are missing may attach again. Only "
                "programs of the C interface can take part: the torch adapter cannot. The "
                "coordinator's value counts. A rank that is lost ends its job in any case, since "
                "nobody can supply its part of the rounds that are open.",
     .store = [](const Target& t, const Value& v) { t.config->elastic = v.number != 0; }},
    {.path = "security.authenticate",
     .type = kBoolean,
     .default_text = "true",
     .summary = "Whether data packets carry a tag keyed by the job's key; packets without a "
                "valid one are dropped and counted.",
     .store = [](const Target& t, const Value& v) { t.config->authenticate = v.number != 0; }},
    {.path = "log.level",
     .type = kChoice,
     .choices = kLogLevels,
     .default_text = "info",
     .summary = "How much the daemon logs to stderr. Under systemd the journal adds times.",
     .store = [](const Target& t, const Value& v) { t.config->log_level = as<LogLevel>(v); }},
};

}  // namespace

std::span<const Option> options() {
  static const std::vector<Option> all = [] {
    std::vector<Option> rows(std::begin(kOptions), std::end(kOptions));
    const auto cluster = std::find_if(rows.begin(), rows.end(), [](const Option& option) {
      return option.path.starts_with("cluster.");
    });
    rows.insert(cluster, port_options().begin(), port_options().end());
    // Plan and network options come after the nodes that they name.
    const auto poll = std::find_if(rows.begin(), rows.end(), [](const Option& option) {
      return option.path.starts_with("poll.");
    });
    const auto network = rows.insert(poll, network_options().begin(), network_options().end());
    rows.insert(network, plan_options().begin(), plan_options().end());
    rows.insert(rows.end(), gather_options().begin(), gather_options().end());
    rows.insert(rows.end(), congestion_options().begin(), congestion_options().end());
    rows.insert(rows.end(), multicast_options().begin(), multicast_options().end());
    rows.insert(rows.end(), training_options().begin(), training_options().end());
    rows.insert(rows.end(), quota_options().begin(), quota_options().end());
    return rows;
  }();
  return all;
}

std::string_view name_of(LogLevel level) {
  return kLogLevels[static_cast<std::size_t>(level)];
}

}  // namespace gradplane::config
