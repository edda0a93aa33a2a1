// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/node_snapshot.h"

#include <algorithm>
#include <span>

namespace gradplane::daemon {
namespace {

template <typename Counts>
void add_all(Counts& sum, const Counts& part) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
}

void add_traffic(api::TrafficSnapshot& sum, const api::TrafficSnapshot& part) {
  sum.add(part);
  add_all(sum.drops, part.drops);
}

/// The smaller of two measurements, where 0 stands for none.
std::int64_t smallest(std::int64_t a, std::int64_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

/// Adds one core's part of a peer. Values that cannot be added (why the flow sends no more, its
/// round trip) are those of the core with more blocks in flight.
void add_peer(api::PeerSnapshot& sum, const api::PeerSnapshot& part) {
  if (part.in_flight_blocks > sum.in_flight_blocks) {
    sum.controller = part.controller;
    sum.reason = part.reason;
    sum.limit = part.limit;
    sum.gain = part.gain;
    sum.smoothed_rtt_ns = part.smoothed_rtt_ns;
  }
  if (sum.silence_ns < 0 || (part.silence_ns >= 0 && part.silence_ns < sum.silence_ns))
    sum.silence_ns = part.silence_ns;
  sum.min_rtt_ns = smallest(sum.min_rtt_ns, part.min_rtt_ns);
  if (sum.smoothed_rtt_ns == 0) sum.smoothed_rtt_ns = part.smoothed_rtt_ns;
  sum.window_blocks += part.window_blocks;
  sum.in_flight_blocks += part.in_flight_blocks;
  sum.credit_blocks += part.credit_blocks;
  sum.blocks_sent += part.blocks_sent;
  sum.blocks_retransmitted += part.blocks_retransmitted;
  sum.blocks_suspected_lost += part.blocks_suspected_lost;
  sum.rate_bits_per_second += part.rate_bits_per_second;
  sum.pacing_bits_per_second += part.pacing_bits_per_second;
}

/// The node's oldest open round is the oldest of all cores, with the nodes for which it waits.
void add_waiting(api::JobSnapshot& sum, const api::JobSnapshot& part) {
  const auto ahead = static_cast<std::int32_t>(part.oldest_round - sum.oldest_round);
  if (part.open_rounds > 0 && (sum.open_rounds == 0 || ahead < 0)) {
    sum.oldest_round = part.oldest_round;
    sum.local_missing = part.local_missing;
    sum.silent_node_count = part.silent_node_count;
    sum.silent_nodes = part.silent_nodes;
  }
  sum.open_rounds = std::max(sum.open_rounds, part.open_rounds);
}

void add_job(api::JobSnapshot& sum, const api::JobSnapshot& part) {
  add_traffic(sum.traffic, part.traffic);
  add_waiting(sum, part);
  sum.groups.groups += part.groups.groups;
  sum.groups.receivers += part.groups.receivers;
  sum.groups.hear += part.groups.hear;
  sum.groups.listen += part.groups.listen;
  const std::span<const api::PeerSnapshot> peers(part.peers.data(), part.peer_count);
  for (const api::PeerSnapshot& peer : peers) {
    const auto end = sum.peers.begin() + sum.peer_count;
    const auto known = std::find_if(sum.peers.begin(), end,
                                    [&peer](const auto& p) { return p.node == peer.node; });
    if (known != end) {
      add_peer(*known, peer);
    } else if (sum.peer_count < sum.peers.size()) {
      sum.peers[sum.peer_count++] = peer;
    }
  }
  sum.flow_count = std::max({sum.flow_count, part.flow_count, sum.peer_count});
}

void add_port(api::PortSnapshot& sum, const api::PortSnapshot& part) {
  sum.rx_datagrams += part.rx_datagrams;
  sum.rx_bytes += part.rx_bytes;
  sum.tx_datagrams += part.tx_datagrams;
  sum.tx_bytes += part.tx_bytes;
  sum.tx_lent += part.tx_lent;
  sum.rx_missed += part.rx_missed;
  sum.handed_over += part.handed_over;
  sum.igmp_version = std::max(sum.igmp_version, part.igmp_version);
  add_all(sum.drops, part.drops);
}

}  // namespace

void add_part(hop::Counters& sum, const hop::Counters& part) {
  sum.add(part);
  add_all(sum.drops, part.drops);
}

void add_core(api::EngineSnapshot& sum, const api::EngineSnapshot& core) {
  add_traffic(sum.node, core.node);
  add_port(sum.port, core.port);
  sum.polls += core.polls;
  sum.busy_polls += core.busy_polls;
  sum.sleeps += core.sleeps;
  sum.rx_bursts += core.rx_bursts;
  sum.tx_bursts += core.tx_bursts;
  add_all(sum.stage_ns, core.stage_ns);
  sum.control_lost += core.control_lost;
  add_all(sum.rank_faults, core.rank_faults);
  for (const api::JobSnapshot& job : std::span(core.jobs).first(core.job_count)) {
    const auto end = sum.jobs.begin() + sum.job_count;
    const auto known = std::find_if(sum.jobs.begin(), end, [&job](const auto& other) {
      return other.job == job.job && other.epoch == job.epoch;
    });
    if (known != end) {
      add_job(*known, job);
    } else if (sum.job_count < sum.jobs.size()) {
      sum.jobs[sum.job_count++] = job;
    }
  }
}

}  // namespace gradplane::daemon
