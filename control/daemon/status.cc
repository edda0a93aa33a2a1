// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/status.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "control/daemon/node_snapshot.h"
#include "control/daemon/placement.h"
#include "control/daemon/ports.h"
#include "control/telemetry/quantity.h"
#include "dataplane/congestion/controller.h"
#include "dataplane/hop/counters.h"
#include "dataplane/job/job.h"
#include "dataplane/port/port.h"

namespace gradplane::daemon {
namespace {

std::string address_text(Ipv4 a, std::uint8_t prefix_length) {
  return fmt::format("{}.{}.{}.{}/{}", a.value >> 24, a.value >> 16 & 255, a.value >> 8 & 255,
                     a.value & 255, prefix_length);
}

template <typename Reason, typename Counts, typename Name>
void add_reasons(telemetry::ReasonCounts& out, const Counts& counts, Name name) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(Reason::kCount); ++i) {
    if (counts[i] > 0) out[std::string(name(static_cast<Reason>(i)))] += counts[i];
  }
}

telemetry::PortStatus port_status(const StatusSources& from, const api::PortSnapshot& port) {
  const config::NodeConfig& node = from.config.self_node();
  telemetry::PortStatus out;
  out.kind = config::name_of(node.port.kind);
  out.interface = device_name(node.port);
  out.address = address_text(node.address, node.prefix_length);
  out.mtu_bytes = node.port.mtu_bytes;
  out.rx_datagrams = port.rx_datagrams;
  out.rx_bytes = port.rx_bytes;
  out.tx_datagrams = port.tx_datagrams;
  out.tx_bytes = port.tx_bytes;
  out.tx_lent = port.tx_lent;
  out.rx_missed = port.rx_missed;
  out.handed_over = port.handed_over;
  out.groups = from.groups.joined_count();
  out.igmp_version = port.igmp_version;
  add_reasons<port::PortDrop>(out.drops, port.drops, port::port_drop_name);
  return out;
}

/// The peer's entry in `out`; adds one if there is none.
telemetry::PeerStatus& peer_entry(std::vector<telemetry::PeerStatus>& out, std::uint16_t node,
                                  const config::Config& config) {
  const config::NodeConfig& entry = config.cluster.nodes[node];
  for (telemetry::PeerStatus& peer : out) {
    if (peer.node == entry.name) return peer;
  }
  telemetry::PeerStatus peer;
  peer.node = entry.name;
  peer.address = address_text(entry.address, entry.prefix_length);
  peer.state = "unknown";
  out.push_back(std::move(peer));
  return out.back();
}

/// Sets a peer's state from the time since it was last heard. A shorter silence that the entry has
/// already counts instead.
void add_silence(telemetry::PeerStatus& peer, Duration silence, const config::Config& config) {
  const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(silence.count_ns(), 0));
  peer.silence_ns = peer.state == "unknown" ? ns : std::min(peer.silence_ns, ns);
  const auto longest = static_cast<std::uint64_t>(config.liveness.suspect_after.count_ns());
  peer.state = peer.silence_ns <= longest ? "alive" : "silent";
}

template <typename Counters>
void add_traffic(telemetry::JobStatus& out, const Counters& in) {
  static_cast<TrafficCounts&>(out) = in;
  out.blocks_duplicate = in.drops[static_cast<std::size_t>(hop::Drop::kDuplicate)];
  add_reasons<hop::Drop>(out.drops, in.drops, hop::drop_name);
}

telemetry::DriftStatus drift_status(std::uint32_t rank, const RankDrift& drift) {
  return {.rank = rank,
          .averages = drift.averages(),
          .step = drift.last().step,
          .distance = drift.last().distance,
          .norm = drift.last().norm,
          .relative = relative_drift(drift.last())};
}

void add_ranks(telemetry::JobStatus& out, const session::JobView& view, const JobSources& from) {
  for (const session::RankView& known : view.ranks) {
    telemetry::RankStatus rank;
    rank.rank = known.rank;
    rank.joined = true;
    if (known.node < from.config.cluster.nodes.size()) {
      rank.node = from.config.cluster.nodes[known.node].name;
    }
    for (const auto& [handle, local] : from.ranks) {
      const bool here = known.node == from.config.self && local.attach.rank == known.rank &&
                        protocol::job_id_of(local.attach.key) == view.job_id;
      if (!here) continue;
      rank.attached = true;
      rank.pid = local.pid;
      if (local.drift.averages() > 0) out.drifts.push_back(drift_status(known.rank, local.drift));
      out.run_id = local.attach.run_id;
    }
    out.ranks.push_back(rank);
  }
  out.joined_count = static_cast<std::uint32_t>(view.ranks.size());
}

std::vector<telemetry::FlowStatus> flow_status(const api::JobSnapshot& job,
                                               const config::Config& config) {
  std::vector<telemetry::FlowStatus> out;
  for (std::size_t p = 0; p < job.peer_count; ++p) {
    const api::PeerSnapshot& peer = job.peers[p];
    telemetry::FlowStatus& flow = out.emplace_back();
    flow.node = config.cluster.nodes[peer.node].name;
    flow.rtt_ns = static_cast<std::uint64_t>(peer.smoothed_rtt_ns);
    flow.rtt_min_ns = static_cast<std::uint64_t>(peer.min_rtt_ns);
    flow.rate_bits_per_second = peer.rate_bits_per_second;
    flow.window_blocks = peer.window_blocks;
    flow.in_flight_blocks = peer.in_flight_blocks;
    flow.granted = peer.granted;
    flow.grant_blocks = peer.credit_blocks;
    flow.pacing_bits_per_second = peer.pacing_bits_per_second;
    flow.controller = config::name_of(static_cast<ControllerKind>(peer.controller));
    flow.gain = peer.gain;
    flow.limit = job::flow_limit_name(static_cast<job::FlowLimit>(peer.limit));
    flow.reason = congestion::reason_name(static_cast<congestion::Reason>(peer.reason));
  }
  return out;
}

/// What an open round of a ready job waits for, in words.
std::string waiting_text(const api::JobSnapshot& job, const config::Config& config) {
  if (job.open_rounds == 0 || (job.silent_node_count == 0 && job.local_missing == 0)) return {};
  std::string text = fmt::format("round {} waits for", job.oldest_round);
  if (job.local_missing != 0) text += " ranks of this node";
  for (std::size_t i = 0; i < std::min<std::size_t>(job.silent_node_count, 8); ++i) {
    if (job.silent_nodes[i] >= config.cluster.nodes.size()) continue;
    text += fmt::format(" {}", config.cluster.nodes[job.silent_nodes[i]].name);
  }
  return text;
}

/// The traffic that the poll loop has counted of a job that it is giving back.
api::TrafficSnapshot traffic_of(const InstalledJob& job, const api::EngineSnapshot& engine) {
  for (std::size_t j = 0; j < engine.job_count; ++j) {
    const api::JobSnapshot& seen = engine.jobs[j];
    if (seen.job == job.id && seen.epoch == job.installed_epoch) return seen.traffic;
  }
  return {};
}

template <class Job>
bool is_of(const session::JobView& view, const Job& job) {
  return view.job_id == job.id && view.first_epoch == job.first_epoch;
}

/// Adds the traffic of a job that goes on without this node, from the time when the node had a part
/// in it.
void add_part_before(telemetry::JobStatus& out, const session::JobView& view,
                     const JobSources& from) {
  for (const InstalledJob& job : from.jobs.installed())
    if (is_of(view, job)) return add_traffic(out, traffic_of(job, from.engine));
  for (const EndedJob& job : from.jobs.ended())
    if (is_of(view, job)) return add_traffic(out, job.counters);
}

telemetry::JobStatus job_status(const session::JobView& view, const JobSources& from) {
  telemetry::JobStatus out;
  out.id = view.job_id;
  out.label = view.label;
  out.epoch = view.epoch;
  out.plan_kind = plan_kind_name(view.plan_kind);
  out.plan_change = view.plan_change;
  out.state = view.state == session::JobState::kReady ? telemetry::JobState::kReady
                                                      : telemetry::JobState::kWaiting;
  out.reason = view.reason;
  out.world_size = view.world_size;
  out.missing = view.missing;
  out.missing_count = view.missing_count;
  out.mode = config::name_of(from.config.training.mode);
  out.staleness = from.config.training.staleness_steps();
  add_ranks(out, view, from);
  const InstalledJob* installed = from.jobs.find_running(view.job_id, view.first_epoch);
  if (installed != nullptr)
    out.selections = static_cast<std::uint32_t>(installed->plan.selections.size());
  out.has_part = installed != nullptr || view.state != session::JobState::kReady;
  if (!out.has_part) add_part_before(out, view, from);
  for (std::size_t j = 0; j < from.engine.job_count && installed != nullptr; ++j) {
    const api::JobSnapshot& job = from.engine.jobs[j];
    if (job.job != view.job_id || job.epoch != installed->installed_epoch) continue;
    add_traffic(out, job.traffic);
    out.groups = job.groups.groups;
    out.group_receivers = job.groups.receivers;
    out.group_receivers_hear = job.groups.hear;
    out.group_receivers_listen = job.groups.listen;
    if (installed->grants) {
      out.grant_policy = config::name_of(from.config.grants.policy);
      out.grant_weight = config::weight_of(from.config, view.label);
    }
    out.flows = flow_status(job, from.config);
    out.flows_omitted = job.flow_count - job.peer_count;
    if (out.reason.empty()) out.reason = waiting_text(job, from.config);
    for (telemetry::RankStatus& rank : out.ranks) {
      if (rank.attached) rank.rounds_completed = job.traffic.rounds_completed;
    }
  }
  return out;
}

/// The status of a job that has ended here: an EndedJob, or an InstalledJob that is not wanted any
/// more.
template <class Job, class Counters>
telemetry::JobStatus ended_status(const Job& job, const Counters& counters,
                                  const JobSources& from) {
  telemetry::JobStatus out;
  out.id = job.id;
  out.label = job.label;
  out.run_id = job.run_id;
  out.epoch = job.epoch;
  out.plan_kind = plan_kind_name(job.kind);
  out.mode = config::name_of(from.config.training.mode);
  out.staleness = from.config.training.staleness_steps();
  out.state = telemetry::JobState::kEnded;
  out.world_size = job.world_size;
  add_traffic(out, counters);
  for (const session::FailureView& failure : from.failures) {
    if (failure.job_id != job.id) continue;
    out.state = telemetry::JobState::kFailed;
    out.reason = failure.reason;
  }
  return out;
}

/// The jobs that have ended here, or that the poll loop is giving back. A job that a report lists
/// already is left out: this node may have joined it again, or may coordinate it without a part.
std::vector<telemetry::JobStatus> ended_jobs(const JobSources& from) {
  std::vector<telemetry::JobStatus> out;
  std::vector<std::uint32_t> told = from.jobs.running_ids();
  const auto is_told = [&](const auto& job) {
    return std::find(told.begin(), told.end(), job.id) != told.end() ||
           std::any_of(from.views.begin(), from.views.end(),
                       [&](const session::JobView& view) { return is_of(view, job); });
  };
  for (const InstalledJob& job : from.jobs.installed()) {
    if (is_told(job)) continue;
    told.push_back(job.id);
    out.push_back(ended_status(job, traffic_of(job, from.engine), from));
  }
  for (const EndedJob& job : from.jobs.ended()) {
    if (!is_told(job)) out.push_back(ended_status(job, job.counters, from));
  }
  return out;
}

/// Which node coordinates, as far as this node knows.
std::string role_text(const StatusSources& from, Instant now) {
  const session::TermView view = from.session.term();
  const std::string name = from.config.cluster.nodes[view.term.coordinator].name;
  if (view.is_searching)
    return fmt::format("hears nothing of {}, which coordinates the jobs; looks for another node",
                       name);
  const std::string who =
      view.term.coordinator == from.config.self ? "coordinates the jobs" : "follows " + name;
  const Instant since = std::max(view.since, from.started);
  return fmt::format(
      "{} (term {}, for {})", who, view.term.number,
      telemetry::duration_text(static_cast<std::uint64_t>((now - since).count_ns())));
}

telemetry::CoreStatus core_status(const StatusSources& from, std::size_t index) {
  const Core& core = *from.cores[index];
  telemetry::CoreStatus out;
  out.cpu = from.config.poll.cores[index];
  out.udp_port = from.config.cluster.udp_port + index;
  out.busy_ns = core.poll->busy_ns();
  out.total_ns = core.poll->total_ns();
  out.sleeps = core.snapshot->sleeps;
  out.rx_datagrams = core.snapshot->port.rx_datagrams;
  out.tx_datagrams = core.snapshot->port.tx_datagrams;
  out.jobs = core.snapshot->job_count;
  return out;
}

telemetry::PollStatus poll_status(const StatusSources& from, const api::EngineSnapshot& engine) {
  telemetry::PollStatus out;
  out.idle = from.config.poll.idle == config::IdlePolicy::kBusy ? "busy" : "adaptive";
  out.iterations = engine.polls;
  for (const auto& core : from.cores) {
    out.busy_ns += core->poll->busy_ns();
    out.total_ns += core->poll->total_ns();
    out.wakes += core->poll->wakes();
  }
  out.sleeps = engine.sleeps;
  out.rx_bursts = engine.rx_bursts;
  out.tx_bursts = engine.tx_bursts;
  for (std::size_t s = 0; s < api::kStageNames.size(); ++s)
    out.stage_ns[std::string(api::kStageNames[s])] = engine.stage_ns[s];
  if (from.cores.size() == 1) return out;
  for (std::size_t c = 0; c < from.cores.size(); ++c) out.cores.push_back(core_status(from, c));
  out.why_one_core = why_one_core(from.config);
  return out;
}

}  // namespace

std::string software() {
  return "gradplaned " GRADPLANE_VERSION;
}

std::vector<telemetry::LinkStatus> link_status(const config::Config& config,
                                               const LinkTable& links) {
  std::vector<telemetry::LinkStatus> out;
  for (const api::LinkSnapshot& link : links.links(clock_now())) {
    out.push_back({.node = config.cluster.nodes[link.node].name,
                   .rate_bits_per_second = link.rate_bits_per_second,
                   .rate_is_lower_bound = link.rate_is_lower_bound,
                   .rate_confidence_percent = link.rate_confidence_percent,
                   .rate_age_ns = static_cast<std::uint64_t>(link.rate_age_ns),
                   .rtt_ns = static_cast<std::uint64_t>(link.rtt_ns),
                   .rtt_age_ns = static_cast<std::uint64_t>(link.rtt_age_ns),
                   .loss_ppm = link.loss_ppm,
                   .loss_confidence_percent = link.loss_confidence_percent,
                   .loss_age_ns = static_cast<std::uint64_t>(link.loss_age_ns)});
  }
  return out;
}

std::vector<telemetry::JobStatus> job_statuses(const JobSources& from) {
  std::vector<telemetry::JobStatus> out;
  for (const session::JobView& view : from.views) out.push_back(job_status(view, from));
  for (telemetry::JobStatus& job : ended_jobs(from)) out.push_back(std::move(job));
  return out;
}

std::vector<telemetry::PeerStatus> peer_status(const config::Config& config,
                                               const std::vector<session::PeerView>& views,
                                               const api::EngineSnapshot& engine) {
  std::vector<telemetry::PeerStatus> out;
  for (const session::PeerView& view : views) {
    telemetry::PeerStatus& peer = peer_entry(out, view.node, config);
    if (view.silence) add_silence(peer, *view.silence, config);
  }
  for (std::size_t j = 0; j < engine.job_count; ++j) {
    const api::JobSnapshot& job = engine.jobs[j];
    for (std::size_t p = 0; p < job.peer_count; ++p) {
      telemetry::PeerStatus& peer = peer_entry(out, job.peers[p].node, config);
      if (job.peers[p].silence_ns >= 0)
        add_silence(peer, Duration::ns(job.peers[p].silence_ns), config);
      peer.rtt_ns = static_cast<std::uint64_t>(job.peers[p].smoothed_rtt_ns);
      peer.rtt_min_ns = static_cast<std::uint64_t>(job.peers[p].min_rtt_ns);
      peer.window_blocks += job.peers[p].window_blocks;
      peer.blocks_sent += job.peers[p].blocks_sent;
      peer.blocks_retransmitted += job.peers[p].blocks_retransmitted;
      peer.blocks_lost += job.peers[p].blocks_suspected_lost;
    }
  }
  return out;
}

telemetry::StatusReport build_status(const StatusSources& from) {
  telemetry::StatusReport out;
  out.node = from.config.self_node().name;
  out.software = software();
  const Instant now = clock_now();
  out.role = role_text(from, now);
  out.pid = static_cast<std::uint32_t>(getpid());
  out.uptime_ns = static_cast<std::uint64_t>((now - from.started).count_ns());
  const auto whole = std::make_unique<api::EngineSnapshot>();
  for (const auto& core : from.cores) add_core(*whole, *core->snapshot);
  const api::EngineSnapshot& engine = *whole;
  out.port = port_status(from, engine.port);
  out.poll = poll_status(from, engine);
  out.peers = peer_status(from.config, from.session.peers(now), engine);
  out.links = link_status(from.config, from.links);
  out.jobs = job_statuses(
      {from.config, from.session.jobs(), from.session.failures(), from.jobs, from.ranks, engine});
  add_reasons<hop::Drop>(out.drops, engine.node.drops, hop::drop_name);
  add_reasons<session::DatagramDrop>(out.drops, from.session.drops(), session::datagram_drop_name);
  if (engine.control_lost > 0) out.drops["control_queue_full"] = engine.control_lost;
  add_reasons<server::HangUp>(out.control_rejected, from.server.hang_ups(), server::hang_up_name);
  add_reasons<protocol::RejectReason>(out.control_rejected, from.server.rejected_messages(),
                                      protocol::reject_reason_name);
  add_reasons<RankFault>(out.control_rejected, engine.rank_faults, rank_fault_name);
  add_reasons<session::Refusal>(out.control_rejected, from.session.refusals(),
                                session::refusal_name);
  return out;
}

}  // namespace gradplane::daemon
