// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/api/stage.h"
#include "dataplane/model/group_hearing.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/rank_fault.h"
#include "dataplane/model/traffic_counts.h"

namespace gradplane::api {

/// Room for one counter per reason, in the order of hop::Drop and port::PortDrop.
inline constexpr std::size_t kDropReasons = 24;
inline constexpr std::size_t kPortDropReasons = 16;
/// The most peers and silent nodes that a snapshot names for each job; further ones are only
/// counted.
inline constexpr std::size_t kSnapshotPeers = 64;
/// The most incoming links that a snapshot names. If there are more, later snapshots name the
/// others.
inline constexpr std::size_t kSnapshotLinks = 64;

struct TrafficSnapshot : TrafficCounts {
  std::array<std::uint64_t, kDropReasons> drops{};
};

struct PeerSnapshot {
  std::uint16_t node = 0;
  std::int64_t silence_ns = -1;  // time since its last valid packet; negative: none has come
  std::uint32_t window_blocks = 0;
  std::uint32_t in_flight_blocks = 0;
  bool granted = false;              // whether the peer grants credit
  std::uint32_t credit_blocks = 0;   // granted blocks that have not been sent
  std::int64_t smoothed_rtt_ns = 0;  // 0: never measured
  std::int64_t min_rtt_ns = 0;
  std::uint64_t blocks_sent = 0;
  std::uint64_t blocks_retransmitted = 0;
  std::uint64_t blocks_suspected_lost = 0;
  std::uint64_t rate_bits_per_second = 0;    // sent in the last second
  std::uint64_t pacing_bits_per_second = 0;  // the controller's; 0: not paced
  std::uint8_t controller = 0;               // ControllerKind
  std::uint8_t reason = 0;                   // congestion::Reason, for window and pacing
  std::uint8_t limit = 0;                    // job::FlowLimit
  double gain = 1;                           // MLTCP's
};

struct JobSnapshot {
  std::uint32_t job = 0;         // the id on the wire
  std::uint32_t epoch = 0;       // epoch of its first plan here, which identifies the job
  std::uint32_t plan_epoch = 0;  // epoch of the plan in force
  TrafficSnapshot traffic;
  std::uint32_t open_rounds = 0;        // rounds whose result is not complete here
  std::uint32_t oldest_round = 0;       // the oldest of these
  LocalRankBits local_missing = 0;      // ranks that have not submitted the oldest round
  std::uint32_t silent_node_count = 0;  // children that have sent nothing for the oldest round
  std::array<std::uint16_t, kSnapshotPeers> silent_nodes{};
  GroupHearing groups;
  std::uint32_t flow_count = 0;  // peers, including those that are not named
  std::uint32_t peer_count = 0;
  std::array<PeerSnapshot, kSnapshotPeers> peers{};
};

/// What this node has measured about the directed link from another node. A confidence of 0 means
/// that the value is not known. An age is the time since the value was last measured.
struct LinkSnapshot {
  std::uint16_t node = 0;  // the sender
  std::uint64_t rate_bits_per_second = 0;
  bool rate_is_lower_bound = false;  // the link has not been filled and may be faster
  std::uint8_t rate_confidence_percent = 0;
  std::int64_t rate_age_ns = 0;
  std::int64_t rtt_ns = 0;  // 0: not known
  std::int64_t rtt_age_ns = 0;
  std::uint32_t loss_ppm = 0;
  std::uint8_t loss_confidence_percent = 0;
  std::int64_t loss_age_ns = 0;
};

struct PortSnapshot {
  std::uint64_t rx_datagrams = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_datagrams = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t tx_lent = 0;
  std::uint64_t rx_missed = 0;
  std::uint64_t handed_over = 0;
  std::uint64_t igmp_version = 0;  // as in port::PortCounters
  std::array<std::uint64_t, kPortDropReasons> drops{};
};

/// The state of the poll loop at one moment. The poll loop fills it on command, and control reads
/// it.
struct EngineSnapshot {
  TrafficSnapshot node;  // drops that belong to no job
  PortSnapshot port;
  std::uint64_t polls = 0;       // turns of the loop
  std::uint64_t busy_polls = 0;  // turns with work
  std::uint64_t sleeps = 0;
  std::uint64_t rx_bursts = 0;     // receive calls that brought datagrams
  std::uint64_t tx_bursts = 0;     // transmit calls
  StageTimes stage_ns{};           // of busy turns, estimated from samples
  std::uint64_t control_lost = 0;  // control datagrams dropped because a queue was full
  // Sessions that ended because of each fault.
  std::array<std::uint64_t, kRankFaults> rank_faults{};
  std::uint32_t job_count = 0;
  std::array<JobSnapshot, kMaxJobs> jobs{};
  std::uint32_t links_heard = 0;  // links from nodes that have ever sent to this node
  std::uint32_t link_count = 0;   // links in this snapshot
  std::array<LinkSnapshot, kSnapshotLinks> links{};
};

}  // namespace gradplane::api
