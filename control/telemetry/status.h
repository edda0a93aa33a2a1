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

/// What one daemon knows at one moment. The daemon fills these plain values, and they are written
/// as JSON, as text for a person, or as metrics. Counters never go back while the daemon lives;
/// those of a job, while the job lives. Control thread only.
namespace gradplane::telemetry {

inline constexpr std::uint32_t kStatusVersion = 1;
/// The most missing ranks that a report names; missing_count counts the others, too.
inline constexpr std::size_t kMaxMissingNamed = 64;
/// The most jobs that a report lists: those that live, and as many that have ended.
inline constexpr std::size_t kMaxJobsReported = 2 * kMaxJobs;
/// The most reasons in one table of counts.
inline constexpr std::size_t kMaxReasons = 64;
inline constexpr std::size_t kMaxTextBytes = 512;
/// A longer report was not made by a daemon.
inline constexpr std::size_t kMaxStatusBytes = std::size_t{1} << 20;

/// Why something was dropped or refused, by name, and how often.
using ReasonCounts = std::map<std::string, std::uint64_t>;

struct PortStatus {
  std::string kind;       // as in the configuration: "af_packet"
  std::string interface;  // interface, PCI address or socket, as the kind has it
  std::string address;    // "10.77.0.1/24"
  std::uint64_t mtu_bytes = 0;
  std::uint64_t rx_datagrams = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_datagrams = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t tx_lent = 0;       // frames whose payload was not copied into a packet buffer
  std::uint64_t rx_missed = 0;     // dropped by the device before the daemon saw them
  std::uint64_t handed_over = 0;   // came by another queue than that of their poll core
  std::uint64_t groups = 0;        // how many it has joined
  std::uint64_t igmp_version = 0;  // of the last question of a querier; 0: there was none
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
  std::uint64_t jobs = 0;  // those in which it has a part

  double busy_share() const;
};

struct PollStatus {
  std::string idle;  // "busy" or "adaptive"
  std::uint64_t iterations = 0;
  std::uint64_t busy_ns = 0;   // in iterations that found work
  std::uint64_t total_ns = 0;  // since the loop started, sleep included
  std::uint64_t sleeps = 0;
  std::uint64_t wakes = 0;      // sleeps that a doorbell ended; the clock ended the others
  std::uint64_t rx_bursts = 0;  // receive calls that brought datagrams
  std::uint64_t tx_bursts = 0;  // transmit calls
  /// Time in iterations that found work, by stage of the loop, estimated from one iteration in 61.
  std::map<std::string, std::uint64_t> stage_ns;
  /// Set if there are several poll cores. The other members are about all cores together.
  std::vector<CoreStatus> cores;
  std::string why_one_core;  // why only one core carries each job; empty: all cores share jobs

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
  std::uint64_t silence_ns = 0;  // since it was heard last; 0 if it never was
  std::uint64_t rtt_ns = 0;      // smoothed; 0: not measured yet
  std::uint64_t rtt_min_ns = 0;
  std::uint64_t window_blocks = 0;
  std::uint64_t blocks_sent = 0;
  std::uint64_t blocks_retransmitted = 0;
  std::uint64_t blocks_lost = 0;  // lost, as far as acks show
};

/// What this node has measured of the link from another one. A value with confidence 0 is not
/// known. An age is the time since the last measurement.
struct LinkStatus {
  std::string node;  // the sender
  std::uint64_t rate_bits_per_second = 0;
  bool rate_is_lower_bound = false;  // the link has not been filled, and may be faster
  std::uint32_t rate_confidence_percent = 0;
  std::uint64_t rate_age_ns = 0;
  std::uint64_t rtt_ns = 0;  // the smallest of the last minute; 0: not known
  std::uint64_t rtt_age_ns = 0;
  std::uint32_t loss_ppm = 0;
  std::uint32_t loss_confidence_percent = 0;
  std::uint64_t loss_age_ns = 0;
};

struct RankStatus {
  std::uint32_t rank = 0;
  std::string node;
  bool joined = false;    // the coordinator has it in the job
  bool attached = false;  // a process of this host is attached as this rank
  std::uint32_t pid = 0;  // of this process; 0: it is not on this host
  std::uint64_t rounds_completed = 0;
};

/// The drift of a rank of this node when the ranks last took the mean of their parameters.
struct DriftStatus {
  std::uint32_t rank = 0;
  std::uint64_t averages = 0;  // how many drifts it has reported
  std::uint64_t step = 0;      // of the last one, as the rank counts
  double distance = 0;         // norm of the difference
  double norm = 0;             // of the mean
  double relative = 0;         // distance over norm
};

/// The flow of a job to one other node, and what limits it now.
struct FlowStatus {
  std::string node;
  std::uint64_t rtt_ns = 0;  // smoothed; 0: not measured yet
  std::uint64_t rtt_min_ns = 0;
  std::uint64_t rate_bits_per_second = 0;  // in the last second, with all overhead of the wire
  std::uint64_t window_blocks = 0;
  std::uint64_t in_flight_blocks = 0;
  std::uint64_t pacing_bits_per_second = 0;  // the controller's; 0: not paced
  bool granted = false;                      // whether the peer gives credit
  std::uint64_t grant_blocks = 0;            // credit that is left
  std::string controller;                    // as in the configuration: "delay"
  double gain = 1;                           // MLTCP's factor on the controller's increase
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
  std::string plan_change;       // the next plan, and the nodes for which it waits; empty: none
  std::string mode;              // of training, as in the configuration: "selective-bsp"
  std::uint32_t selections = 0;  // of the plan in force
  /// The staleness bound: a rank waits only for ranks that are more steps behind it. 0: all wait in
  /// each step.
  std::uint32_t staleness = 0;
  JobState state = JobState::kWaiting;
  std::string reason;  // why it waits or failed
  /// False at a coordinator without a part in the plan in force. Its counters are from earlier
  /// plans.
  bool has_part = true;
  std::uint32_t groups = 0;                  // to which this node sends under the newest plan
  std::uint32_t group_receivers = 0;         // in all these groups
  std::uint32_t group_receivers_hear = 0;    // those to which the network brings the copies
  std::uint32_t group_receivers_listen = 0;  // among these, the ones that are too slow for now
  std::uint32_t world_size = 0;
  std::uint32_t joined_count = 0;
  std::vector<std::uint32_t> missing;  // the first kMaxMissingNamed
  std::uint32_t missing_count = 0;
  std::vector<RankStatus> ranks;    // those that this daemon knows of
  std::uint32_t ranks_omitted = 0;  // known, but left out to keep the report short
  std::vector<DriftStatus> drifts;  // of ranks of this node that have reported any
  std::string grant_policy;         // as in the configuration; empty: this node grants nothing
  double grant_weight = 1;          // the job's, if the policy uses weights
  std::vector<FlowStatus> flows;
  std::uint32_t flows_omitted = 0;

  std::uint64_t blocks_duplicate = 0;  // received again, and not in blocks_received
  ReasonCounts drops;                  // packets of this job that were refused
};

/// What gradplane flows prints of a job.
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
  std::uint32_t jobs_omitted = 0;
  ReasonCounts drops;             // datagrams that belong to no job, by reason
  ReasonCounts control_rejected;  // refused connections, messages, ranks and jobs, by reason
};

/// One JSON object of at most `max_bytes` (0: no limit). To make it fit, flows are left out first,
/// then most ranks, peers and links, evenly, then jobs; *_omitted counts them. Bytes that are not
/// UTF-8 are replaced.
std::string to_json(const StatusReport& report, std::size_t max_bytes = 0);

/// Reads a report from untrusted JSON. Versions may differ, so unknown members are ignored, and
/// missing ones keep their defaults. A wrong type, a value out of range or more entries than a
/// daemon can have is an error that names the member.
Result<StatusReport> from_json(std::string_view text);

struct TextOptions {
  bool color = false;
  std::size_t width = 100;
  /// An earlier report of the same daemon. If it is there, the poll loops are shown since then.
  const StatusReport* before = nullptr;
};
/// Text for a person, with aligned tables. Control characters in texts are replaced.
std::string to_text(const StatusReport& report, const TextOptions& options = {});

/// Metrics in the format OpenMetrics 1.0, with the final "# EOF".
std::string to_openmetrics(const StatusReport& report);

}  // namespace gradplane::telemetry
