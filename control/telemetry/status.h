// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/result.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/traffic_counts.h"

/// What one daemon knows, at one moment: plain values that the daemon fills, and that go to JSON,
/// to a person and to a metrics collector. Counters never go back while a daemon (of a job: the
/// job) lives. Control thread only.
namespace gradplane::telemetry {

inline constexpr std::uint32_t kStatusVersion = 1;
/// Missing ranks that a report names; missing_count counts the others too.
inline constexpr std::size_t kMaxMissingNamed = 64;
/// Jobs that a report lists: those that live, and as many that ended lately.
inline constexpr std::size_t kMaxJobsReported = 2 * kMaxJobs;
/// Different reasons in one drop table.
inline constexpr std::size_t kMaxReasons = 64;
inline constexpr std::size_t kMaxTextBytes = 512;
/// A report that is longer than this was not made by a daemon.
inline constexpr std::size_t kMaxStatusBytes = std::size_t{1} << 20;

/// Why something was dropped or refused, by name, and how often.
using ReasonCounts = std::map<std::string, std::uint64_t>;

struct PortStatus {
  std::string kind;       // as in the configuration: "af_packet"
  std::string interface;  // interface, PCI address or socket; what the kind calls its device
  std::string address;    // "10.77.0.1/24"
  std::uint64_t mtu_bytes = 0;
  std::uint64_t rx_datagrams = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_datagrams = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t rx_missed = 0;     // dropped by the device before the daemon saw them
  std::uint64_t handed_over = 0;   // came by another queue than that of their poll core
  std::uint64_t groups = 0;        // that it is in
  std::uint64_t igmp_version = 0;  // in which a switch or router asked for them last; 0: none has
  ReasonCounts drops;              // port_drop_name() -> count
};

/// A poll core, its engine and its queue of the port.
struct CoreStatus {
  std::uint64_t cpu = 0;
  std::uint64_t udp_port = 0;
  std::uint64_t busy_ns = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t sleeps = 0;
  std::uint64_t rx_datagrams = 0;
  std::uint64_t tx_datagrams = 0;
  std::uint64_t jobs = 0;  // that it has a part in

  double busy_share() const;
};

struct PollStatus {
  std::string idle;  // "busy" or "adaptive"
  std::uint64_t iterations = 0;
  std::uint64_t busy_ns = 0;   // in iterations that found work
  std::uint64_t total_ns = 0;  // since the loop started, sleep included
  std::uint64_t sleeps = 0;
  std::uint64_t wakes = 0;      // sleeps that a doorbell ended; the others ended by the clock
  std::uint64_t rx_bursts = 0;  // receive calls that brought datagrams
  std::uint64_t tx_bursts = 0;  // transmit calls
  /// Of iterations that found work, by part of the loop: estimated from one iteration in 61.
  std::map<std::string, std::uint64_t> stage_ns;
  /// Of a daemon with several poll cores; the rest is about all of them together.
  std::vector<CoreStatus> cores;
  std::string why_one_core;  // why each job has one of them alone; empty: they share all jobs

  /// Share of the time spent on work, from 0 to 1.
  double busy_share() const;
};

/// Another node, as seen from this one.
struct PeerStatus {
  std::string node;
  std::string address;
  /// "alive": heard within liveness.suspect_after, by the session or with blocks and acks of a job;
  /// "silent": heard before that; "unknown": never heard.
  std::string state;
  std::uint64_t silence_ns = 0;  // since it was heard last; 0 also where it never was
  std::uint64_t rtt_ns = 0;      // smoothed; 0: not measured yet
  std::uint64_t rtt_min_ns = 0;
  std::uint64_t window_blocks = 0;
  std::uint64_t blocks_sent = 0;
  std::uint64_t blocks_retransmitted = 0;
  std::uint64_t blocks_lost = 0;  // suspected lost by the acknowledgements
};

/// What this node has measured of the link from another one. A confidence of 0 says that the value
/// is not known, and an age is the time since it was last measured.
struct LinkStatus {
  std::string node;  // the sender
  std::uint64_t rate_bits_per_second = 0;
  bool rate_is_lower_bound = false;  // the link has not been filled, and may be faster
  std::uint32_t rate_confidence_percent = 0;
  std::uint64_t rate_age_ns = 0;
  std::uint64_t rtt_ns = 0;  // the least of the last minute; 0: not known
  std::uint64_t rtt_age_ns = 0;
  std::uint32_t loss_ppm = 0;
  std::uint32_t loss_confidence_percent = 0;
  std::uint64_t loss_age_ns = 0;
};

struct RankStatus {
  std::uint32_t rank = 0;
  std::string node;
  bool joined = false;    // the coordinator counts it in
  bool attached = false;  // a process of this host holds its session now
  std::uint32_t pid = 0;  // of that process; 0: not on this host
  std::uint64_t rounds_completed = 0;
};

/// How far the parameters of a rank of this node were from their mean over all ranks, when the
/// ranks took the mean last.
struct DriftStatus {
  std::uint32_t rank = 0;
  std::uint64_t averages = 0;  // that it has told of
  std::uint64_t step = 0;      // of the last one, as the rank counts
  double distance = 0;         // norm of the difference
  double norm = 0;             // of the mean
  double relative = 0;         // distance over norm
};

/// What a job sends to one other node, and what limits it at this moment.
struct FlowStatus {
  std::string node;
  std::uint64_t rtt_ns = 0;  // smoothed; 0: not measured yet
  std::uint64_t rtt_min_ns = 0;
  std::uint64_t rate_bits_per_second = 0;  // in the last second, with all overhead of the wire
  std::uint64_t window_blocks = 0;
  std::uint64_t in_flight_blocks = 0;
  std::uint64_t pacing_bits_per_second = 0;  // the controller's; 0: not paced
  bool granted = false;                      // the peer gives credit
  std::uint64_t grant_blocks = 0;            // what is left of it
  std::string controller;                    // as in the configuration: "delay"
  double gain = 1;                           // what MLTCP multiplies its increase by
  std::string limit;   // "application", "peer", "window", "grant", "pacing", ...
  std::string reason;  // why the controller's window and pacing are what they are: "loss"
};

enum class JobState : std::uint8_t { kWaiting, kReady, kFailed, kEnded };
std::string_view job_state_name(JobState state);

struct JobStatus : TrafficCounts {
  std::uint32_t id = 0;
  std::string label;
  std::string run_id;
  std::uint32_t epoch = 0;  // 0: no plan yet
  std::string plan_kind;
  std::string plan_change;       // the plan that is to come, and what it waits for; empty: none
  std::string mode;              // of training, as in the configuration: "selective-bsp"
  std::uint32_t selections = 0;  // of the plan in force
  /// No rank waits for one that is at most so many steps behind; 0: all wait in each step.
  std::uint32_t staleness = 0;
  JobState state = JobState::kWaiting;
  std::string reason;  // why it waits or failed
  /// False at a coordinator without a part in the plan in force. What it counts is of parts before.
  bool has_part = true;
  std::uint32_t groups = 0;                  // to which this node sends under the newest plan
  std::uint32_t group_receivers = 0;         // of all of them
  std::uint32_t group_receivers_hear = 0;    // those for which the network copies
  std::uint32_t group_receivers_listen = 0;  // of those: for now too slow for the others
  std::uint32_t world_size = 0;
  std::uint32_t joined_count = 0;
  std::vector<std::uint32_t> missing;  // the first kMaxMissingNamed
  std::uint32_t missing_count = 0;
  std::vector<RankStatus> ranks;    // those that this daemon knows of
  std::uint32_t ranks_omitted = 0;  // known, but left out to keep the report short
  std::vector<DriftStatus> drifts;  // of ranks of this node that have told any
  std::string grant_policy;         // as in the configuration; empty: this node grants nothing
  double grant_weight = 1;          // of this node's link; counts where the policy goes by weight
  std::vector<FlowStatus> flows;
  std::uint32_t flows_omitted = 0;

  std::uint64_t blocks_duplicate = 0;  // received again and not counted again
  ReasonCounts drops;                  // packets of this job that were refused
};

/// Of a job, what gradplane flows prints.
struct JobFlows {
  std::uint32_t id = 0;
  std::string label;
  std::string grant_policy;
  double grant_weight = 1;
  std::vector<FlowStatus> flows;
  std::uint32_t flows_omitted = 0;
};

struct StatusReport {
  std::uint32_t version = kStatusVersion;
  std::string node;
  std::string software;  // "gradplaned 0.1.0"
  std::string role;      // who coordinates: "follows agg (term 0, for 12 s)"
  std::uint32_t pid = 0;
  std::uint64_t uptime_ns = 0;
  PortStatus port;
  PollStatus poll;
  std::vector<PeerStatus> peers;
  std::uint32_t peers_omitted = 0;
  std::vector<LinkStatus> links;  // to this node, of which something is known
  std::uint32_t links_omitted = 0;
  std::vector<JobStatus> jobs;
  ReasonCounts drops;             // datagrams that belong to no job, by reason
  ReasonCounts control_rejected;  // refused connections, messages, ranks and jobs, by reason
};

/// One JSON object of at most `max_bytes` (0: no limit). When all does not fit, flows are left out,
/// then ranks, peers and links evenly, and counted in *_omitted. Bytes that are not UTF-8 are
/// replaced.
std::string to_json(const StatusReport& report, std::size_t max_bytes = 0);

/// The report in a JSON text that somebody else wrote. Unknown members are tolerated, missing ones
/// keep their default, so that versions may differ; a wrong type, a value out of range or more
/// entries than a daemon can have is an error that names the member.
Result<StatusReport> from_json(std::string_view text);

struct TextOptions {
  bool color = false;
  std::size_t width = 100;
};
/// For a person: aligned tables. Control characters in texts are replaced.
std::string to_text(const StatusReport& report, const TextOptions& options = {});

/// OpenMetrics 1.0, with the final "# EOF".
std::string to_openmetrics(const StatusReport& report);

}  // namespace gradplane::telemetry
