// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <concepts>
#include <type_traits>

#include "control/telemetry/bounds.h"
#include "control/telemetry/rounds.h"
#include "control/telemetry/status.h"

/// The JSON members of every status struct, listed once for both directions. The archive is called
/// with the name and the field of each member.
namespace gradplane::telemetry {

template <typename S, typename Struct>
concept Of = std::same_as<std::remove_const_t<S>, Struct>;

template <typename Archive>
void fields(Archive& a, Of<PortStatus> auto& s) {
  a("kind", s.kind);
  a("interface", s.interface);
  a("address", s.address);
  a("mtu_bytes", s.mtu_bytes);
  a("rx_datagrams", s.rx_datagrams);
  a("rx_bytes", s.rx_bytes);
  a("tx_datagrams", s.tx_datagrams);
  a("tx_bytes", s.tx_bytes);
  a("tx_lent", s.tx_lent);
  a("rx_missed", s.rx_missed);
  a("handed_over", s.handed_over);
  a("groups", s.groups);
  a("igmp_version", s.igmp_version);
  a("drops", s.drops);
}

template <typename Archive>
void fields(Archive& a, Of<CoreStatus> auto& s) {
  a("cpu", s.cpu);
  a("udp_port", s.udp_port);
  a("busy_ns", s.busy_ns);
  a("total_ns", s.total_ns);
  a("sleeps", s.sleeps);
  a("rx_datagrams", s.rx_datagrams);
  a("tx_datagrams", s.tx_datagrams);
  a("jobs", s.jobs);
}

template <typename Archive>
void fields(Archive& a, Of<PollStatus> auto& s) {
  a("idle", s.idle);
  a("iterations", s.iterations);
  a("busy_ns", s.busy_ns);
  a("total_ns", s.total_ns);
  a("sleeps", s.sleeps);
  a("wakes", s.wakes);
  a("rx_bursts", s.rx_bursts);
  a("tx_bursts", s.tx_bursts);
  a("stage_ns", s.stage_ns);
  a("cores", s.cores);
  a("why_one_core", s.why_one_core);
}

template <typename Archive>
void fields(Archive& a, Of<PeerStatus> auto& s) {
  a("node", s.node);
  a("address", s.address);
  a("state", s.state);
  a("silence_ns", s.silence_ns);
  a("rtt_ns", s.rtt_ns);
  a("rtt_min_ns", s.rtt_min_ns);
  a("window_blocks", s.window_blocks);
  a("blocks_sent", s.blocks_sent);
  a("blocks_retransmitted", s.blocks_retransmitted);
  a("blocks_lost", s.blocks_lost);
}

template <typename Archive>
void fields(Archive& a, Of<LinkStatus> auto& s) {
  a("node", s.node);
  a("rate_bits_per_second", s.rate_bits_per_second);
  a("rate_is_lower_bound", s.rate_is_lower_bound);
  a("rate_confidence_percent", s.rate_confidence_percent);
  a("rate_age_ns", s.rate_age_ns);
  a("rtt_ns", s.rtt_ns);
  a("rtt_age_ns", s.rtt_age_ns);
  a("loss_ppm", s.loss_ppm);
  a("loss_confidence_percent", s.loss_confidence_percent);
  a("loss_age_ns", s.loss_age_ns);
}

template <typename Archive>
void fields(Archive& a, Of<RankStatus> auto& s) {
  a("rank", s.rank);
  a("node", s.node);
  a("joined", s.joined);
  a("attached", s.attached);
  a("pid", s.pid);
  a("rounds_completed", s.rounds_completed);
}

template <typename Archive>
void fields(Archive& a, Of<DriftStatus> auto& s) {
  a("rank", s.rank);
  a("averages", s.averages);
  a("step", s.step);
  a("distance", s.distance);
  a("norm", s.norm);
  a("relative", s.relative);
}

template <typename Archive>
void fields(Archive& a, Of<FlowStatus> auto& s) {
  a("node", s.node);
  a("rtt_ns", s.rtt_ns);
  a("rtt_min_ns", s.rtt_min_ns);
  a("rate_bits_per_second", s.rate_bits_per_second);
  a("window_blocks", s.window_blocks);
  a("in_flight_blocks", s.in_flight_blocks);
  a("pacing_bits_per_second", s.pacing_bits_per_second);
  a("granted", s.granted);
  a("grant_blocks", s.grant_blocks);
  a("controller", s.controller);
  a("gain", s.gain);
  a("limit", s.limit);
  a("reason", s.reason);
}

template <typename Archive>
void fields(Archive& a, Of<JobFlows> auto& s) {
  a("id", s.id);
  a("label", s.label);
  a("grant_policy", s.grant_policy);
  a("grant_weight", s.grant_weight);
  a("flows", s.flows);
  a("flows_omitted", s.flows_omitted);
}

template <typename Archive>
void fields(Archive& a, Of<JobStatus> auto& s) {
  a("id", s.id);
  a("label", s.label);
  a("run_id", s.run_id);
  a("epoch", s.epoch);
  a("plan_kind", s.plan_kind);
  a("plan_change", s.plan_change);
  a("mode", s.mode);
  a("selections", s.selections);
  a("staleness", s.staleness);
  a("state", s.state);
  a("reason", s.reason);
  a("has_part", s.has_part);
  a("groups", s.groups);
  a("group_receivers", s.group_receivers);
  a("group_receivers_hear", s.group_receivers_hear);
  a("group_receivers_listen", s.group_receivers_listen);
  a("world_size", s.world_size);
  a("joined_count", s.joined_count);
  a("missing", s.missing);
  a("missing_count", s.missing_count);
  a("ranks", s.ranks);
  a("ranks_omitted", s.ranks_omitted);
  a("drifts", s.drifts);
  a("grant_policy", s.grant_policy);
  a("grant_weight", s.grant_weight);
  a("flows", s.flows);
  a("flows_omitted", s.flows_omitted);
  a("rounds_completed", s.rounds_completed);
  a("bytes_reduced", s.payload_bytes_reduced);
  a("payload_bytes_sent", s.payload_bytes_sent);
  a("payload_bytes_saved", s.payload_bytes_saved);
  a("blocks_sent", s.blocks_sent);
  a("blocks_received", s.blocks_received);
  a("blocks_retransmitted", s.blocks_retransmitted);
  a("blocks_lost", s.blocks_suspected_lost);
  a("blocks_duplicate", s.blocks_duplicate);
  a("blocks_routed", s.blocks_routed);
  a("blocks_relayed", s.blocks_relayed);
  a("blocks_to_groups", s.blocks_to_groups);
  a("group_trials", s.group_trials);
  a("group_members_left", s.group_members_left);
  a("group_members_deaf", s.group_members_deaf);
  a("parity_sent", s.parity_sent);
  a("parity_received", s.parity_received);
  a("blocks_recovered", s.blocks_recovered);
  a("blocks_of_soundings", s.blocks_of_soundings);
  a("sounding_packets_sent", s.sounding_packets_sent);
  a("sounding_packets_received", s.sounding_packets_received);
  a("rounds_closed_early", s.rounds_closed_early);
  a("rounds_closed_deadline", s.rounds_closed_deadline);
  a("rounds_closed_absent", s.rounds_closed_absent);
  a("blocks_missing", s.blocks_missing);
  a("blocks_late", s.blocks_late);
  a("blocks_excluded", s.blocks_excluded);
  a("updates_received", s.updates_received);
  a("updates_late", s.updates_late);
  a("blocks_carried", s.blocks_carried);
  a("carry_dropped", s.carry_dropped);
  a("drops", s.drops);
}

template <typename Archive>
void fields(Archive& a, Of<StatusReport> auto& s) {
  a("version", s.version);
  a("node", s.node);
  a("software", s.software);
  a("role", s.role);
  a("pid", s.pid);
  a("uptime_ns", s.uptime_ns);
  a("port", s.port);
  a("poll", s.poll);
  a("peers", s.peers);
  a("peers_omitted", s.peers_omitted);
  a("links", s.links);
  a("links_omitted", s.links_omitted);
  a("jobs", s.jobs);
  a("jobs_omitted", s.jobs_omitted);
  a("drops", s.drops);
  a("control_rejected", s.control_rejected);
}

template <typename Archive>
void fields(Archive& a, Of<CloseCounts> auto& s) {
  a("full", s.full);
  a("early", s.early);
  a("deadline", s.deadline);
  a("absent", s.absent);
}

template <typename Archive>
void fields(Archive& a, Of<BoundsSource> auto& s) {
  a("node", s.node);
  a("missing_blocks", s.missing_blocks);
  a("expected_blocks", s.expected_blocks);
  a("threshold_ns", s.threshold_ns);
}

template <typename Archive>
void fields(Archive& a, Of<BoundsTensor> auto& s) {
  a("bucket", s.bucket);
  a("name", s.name);
  a("elements", s.elements);
  a("blocks", s.blocks);
  a("bound", s.bound);
  a("why", s.why);
  a("rule", s.rule);
  a("wire", s.wire);
  a("missing_blocks", s.missing_blocks);
  a("expected_blocks", s.expected_blocks);
  a("excluded_blocks", s.excluded_blocks);
}

template <typename Archive>
void fields(Archive& a, Of<BoundsPage> auto& s) {
  a("version", s.version);
  a("node", s.node);
  a("jobs", s.jobs);
  a("job", s.job);
  a("label", s.label);
  a("compensation", s.compensation);
  a("buckets", s.buckets);
  a("closes", s.closes);
  a("sources", s.sources);
  a("sources_omitted", s.sources_omitted);
  a("tensors", s.tensors);
  a("more", s.more);
  a("next_bucket", s.next_bucket);
  a("next_tensor", s.next_tensor);
}

template <typename Archive>
void fields(Archive& a, Of<RoundSource> auto& s) {
  a("node", s.node);
  a("ranks", s.ranks);
  a("missing_blocks", s.missing_blocks);
  a("expected_blocks", s.expected_blocks);
}

template <typename Archive>
void fields(Archive& a, Of<RoundTensor> auto& s) {
  a("index", s.index);
  a("name", s.name);
  a("missing_blocks", s.missing_blocks);
  a("expected_blocks", s.expected_blocks);
}

template <typename Archive>
void fields(Archive& a, Of<RoundEntry> auto& s) {
  a("number", s.number);
  a("round", s.round);
  a("epoch", s.epoch);
  a("bucket", s.bucket);
  a("tree", s.tree);
  a("reason", s.reason);
  a("duration_ns", s.duration_ns);
  a("missing_blocks", s.missing_blocks);
  a("expected_blocks", s.expected_blocks);
  a("sources", s.sources);
  a("other_sources", s.other_sources);
  a("other_sources_missing_blocks", s.other_sources_missing_blocks);
  a("tensors", s.tensors);
  a("other_tensors", s.other_tensors);
  a("other_tensors_missing_blocks", s.other_tensors_missing_blocks);
}

template <typename Archive>
void fields(Archive& a, Of<RoundsPage> auto& s) {
  a("version", s.version);
  a("node", s.node);
  a("jobs", s.jobs);
  a("job", s.job);
  a("epoch", s.epoch);
  a("label", s.label);
  a("buckets", s.buckets);
  a("roots", s.roots);
  a("roots_omitted", s.roots_omitted);
  a("gathers", s.gathers);
  a("closed", s.closed);
  a("lost", s.lost);
  a("rounds", s.rounds);
  a("more", s.more);
  a("next_after", s.next_after);
}

}  // namespace gradplane::telemetry
