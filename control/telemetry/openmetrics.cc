// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <initializer_list>
#include <tuple>
#include <utility>

#include "control/telemetry/printable.h"
#include "control/telemetry/status.h"

namespace gradplane::telemetry {
namespace {

using Label = std::pair<std::string_view, std::string>;
using Labels = std::initializer_list<Label>;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

/// Writes one family after the other, because the format wants all samples of a name together.
class MetricsWriter {
 public:
  enum class Type : std::uint8_t { kCounter, kGauge, kInfo };

  void family(std::string_view name, Type type, std::string_view help, std::string_view unit = {}) {
    name_ = fmt::format("gradplane_{}", name);
    suffix_ = type == Type::kCounter ? "_total" : type == Type::kInfo ? "_info" : "";
    const char* types[] = {"counter", "gauge", "info"};
    out_ += fmt::format("# TYPE {} {}\n", name_, types[static_cast<std::size_t>(type)]);
    if (!unit.empty()) out_ += fmt::format("# UNIT {} {}\n", name_, unit);
    out_ += fmt::format("# HELP {} {}\n", name_, help);
  }

  template <typename Number>
  void sample(Number value, Labels labels = {}) {
    out_ += name_ + suffix_;
    std::string_view separator = "{";
    for (const auto& [label, text] : labels) {
      out_ += fmt::format("{}{}=\"{}\"", separator, label, escaped(text));
      separator = ",";
    }
    if (labels.size() > 0) out_ += '}';
    out_ += fmt::format(" {}\n", value);
  }

  std::string take() { return std::move(out_) + "# EOF\n"; }

 private:
  std::string name_;
  std::string suffix_;
  std::string out_;
};

using Type = MetricsWriter::Type;

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

// The label is "job_id", because collectors set "job" themselves.
std::string id_text(const JobStatus& job) {
  return fmt::format("{:08x}", job.id);
}

void add_node(MetricsWriter& out, const StatusReport& report) {
  out.family("daemon", Type::kInfo, "The daemon, its node and its port.");
  out.sample(1, {{"node", report.node},
                 {"software", report.software},
                 {"port_kind", report.port.kind},
                 {"interface", report.port.interface},
                 {"address", report.port.address}});
  out.family("uptime_seconds", Type::kGauge, "Time since the daemon started.", "seconds");
  out.sample(seconds(report.uptime_ns));
  out.family("poll_busy_seconds", Type::kCounter, "Time that the poll loop spent on work.",
             "seconds");
  out.sample(seconds(report.poll.busy_ns));
  out.family("poll_sleeps", Type::kCounter, "Pauses of the poll loop.");
  out.sample(report.poll.sleeps);
  out.family("poll_wakes", Type::kCounter, "Pauses of the poll loop that a doorbell ended.");
  out.sample(report.poll.wakes);
  out.family("poll_stage_seconds", Type::kCounter,
             "Time in turns of the poll loop that found work, by part of the turn, from samples.",
             "seconds");
  for (const auto& [stage, ns] : report.poll.stage_ns) out.sample(seconds(ns), {{"stage", stage}});
  out.family("poll_bursts", Type::kCounter, "Calls of the port that moved datagrams.");
  out.sample(report.poll.rx_bursts, {{"direction", "rx"}});
  out.sample(report.poll.tx_bursts, {{"direction", "tx"}});
  out.family("poll_core_busy_seconds", Type::kCounter,
             "Time that the loop of a poll core spent on work, where there are several.",
             "seconds");
  for (const CoreStatus& core : report.poll.cores)
    out.sample(seconds(core.busy_ns), {{"cpu", std::to_string(core.cpu)}});
  out.family("poll_core_datagrams", Type::kCounter, "Datagrams of a poll core, both ways.");
  for (const CoreStatus& core : report.poll.cores) {
    const std::string cpu = std::to_string(core.cpu);
    out.sample(core.rx_datagrams, {{"cpu", cpu}, {"direction", "rx"}});
    out.sample(core.tx_datagrams, {{"cpu", cpu}, {"direction", "tx"}});
  }
  out.family("refused_datagrams", Type::kCounter, "Datagrams that belong to no job, by reason.");
  for (const auto& [reason, count] : report.drops) out.sample(count, {{"reason", reason}});
  out.family("control_rejected", Type::kCounter,
             "Refused connections, messages, ranks and jobs, by reason.");
  for (const auto& [reason, count] : report.control_rejected) {
    out.sample(count, {{"reason", reason}});
  }
}

void add_port(MetricsWriter& out, const PortStatus& port) {
  const std::initializer_list<std::tuple<const char*, const char*, std::uint64_t>> counters = {
      {"port_rx_datagrams", "Datagrams received.", port.rx_datagrams},
      {"port_tx_datagrams", "Datagrams sent.", port.tx_datagrams},
      {"port_tx_lent", "Frames whose payload was not copied into a packet buffer.", port.tx_lent},
      {"port_rx_missed", "Dropped by the device before the daemon saw them.", port.rx_missed},
      {"port_handed_over", "Frames that came by another queue than that of their poll core.",
       port.handed_over}};
  for (const auto& [name, help, value] : counters) {
    out.family(name, Type::kCounter, help);
    out.sample(value);
  }
  out.family("port_rx_bytes", Type::kCounter, "UDP payload received.", "bytes");
  out.sample(port.rx_bytes);
  out.family("port_tx_bytes", Type::kCounter, "UDP payload sent.", "bytes");
  out.sample(port.tx_bytes);
  out.family("port_groups", Type::kGauge, "Multicast groups that the port is in.");
  out.sample(port.groups);
  out.family("port_drops", Type::kCounter, "Dropped by the port, by reason.");
  for (const auto& [reason, count] : port.drops) out.sample(count, {{"reason", reason}});
}

void add_peers(MetricsWriter& out, const std::vector<PeerStatus>& peers) {
  out.family("peer_rtt_seconds", Type::kGauge, "Smoothed round-trip time.", "seconds");
  for (const PeerStatus& peer : peers) {
    if (peer.rtt_ns > 0) out.sample(seconds(peer.rtt_ns), {{"peer", peer.node}});
  }
  out.family("peer_alive", Type::kGauge,
             "Whether the peer was heard within liveness.suspect_after.");
  for (const PeerStatus& peer : peers) {
    out.sample(peer.state == "alive" ? 1 : 0, {{"peer", peer.node}});
  }
  using Field = std::uint64_t PeerStatus::*;
  const std::initializer_list<std::tuple<const char*, const char*, Field>> counters = {
      {"peer_blocks_sent", "Blocks sent to the peer.", &PeerStatus::blocks_sent},
      {"peer_blocks_retransmitted", "Blocks sent again.", &PeerStatus::blocks_retransmitted},
      {"peer_blocks_lost", "Blocks suspected lost.", &PeerStatus::blocks_lost}};
  for (const auto& [name, help, field] : counters) {
    out.family(name, Type::kCounter, help);
    for (const PeerStatus& peer : peers) out.sample(peer.*field, {{"peer", peer.node}});
  }
}

/// Adds the values of links that are known.
void add_links(MetricsWriter& out, const std::vector<LinkStatus>& links) {
  constexpr double kMillion = 1e6;
  constexpr double kPercent = 100;
  struct Family {
    const char* name;
    const char* help;
    const char* unit;
    bool (*known)(const LinkStatus&);
    double (*value)(const LinkStatus&);
  };
  const auto rate_known = [](const LinkStatus& l) { return l.rate_confidence_percent > 0; };
  const auto rtt_known = [](const LinkStatus& l) { return l.rtt_ns > 0; };
  const auto loss_known = [](const LinkStatus& l) { return l.loss_confidence_percent > 0; };
  const std::initializer_list<Family> families = {
      {"link_rate_bits_per_second", "Measured rate of the link from a node to this one.", "",
       rate_known, [](const LinkStatus& l) { return static_cast<double>(l.rate_bits_per_second); }},
      {"link_rate_is_lower_bound", "Whether the link was never filled and may be faster.", "",
       rate_known, [](const LinkStatus& l) { return l.rate_is_lower_bound ? 1.0 : 0.0; }},
      {"link_rate_confidence_ratio", "How sure the rate is, from 0 to 1.", "ratio", rate_known,
       [](const LinkStatus& l) { return l.rate_confidence_percent / kPercent; }},
      {"link_rate_age_seconds", "Time since the rate was last measured.", "seconds", rate_known,
       [](const LinkStatus& l) { return seconds(l.rate_age_ns); }},
      {"link_rtt_seconds", "Least round trip of the last minute, as the sender measured it.",
       "seconds", rtt_known, [](const LinkStatus& l) { return seconds(l.rtt_ns); }},
      {"link_rtt_age_seconds", "Time since a round trip was last told.", "seconds", rtt_known,
       [](const LinkStatus& l) { return seconds(l.rtt_age_ns); }},
      {"link_loss_ratio", "Share of the packets to this node that were lost.", "ratio", loss_known,
       [](const LinkStatus& l) { return l.loss_ppm / kMillion; }},
      {"link_loss_confidence_ratio", "How sure the loss is, from 0 to 1.", "ratio", loss_known,
       [](const LinkStatus& l) { return l.loss_confidence_percent / kPercent; }},
      {"link_loss_age_seconds", "Time since the loss was last measured.", "seconds", loss_known,
       [](const LinkStatus& l) { return seconds(l.loss_age_ns); }}};
  for (const Family& family : families) {
    out.family(family.name, Type::kGauge, family.help, family.unit);
    for (const LinkStatus& link : links) {
      if (family.known(link)) out.sample(family.value(link), {{"from", link.node}});
    }
  }
}

struct JobCounter {
  const char* name;
  const char* help;
  std::uint64_t JobStatus::*field;
};
constexpr JobCounter kJobCounters[] = {
    {"job_rounds", "Rounds completed.", &JobStatus::rounds_completed},
    {"job_blocks_sent", "Blocks sent.", &JobStatus::blocks_sent},
    {"job_blocks_received", "Blocks received.", &JobStatus::blocks_received},
    {"job_blocks_retransmitted", "Blocks sent again.", &JobStatus::blocks_retransmitted},
    {"job_blocks_lost", "Blocks suspected lost.", &JobStatus::blocks_suspected_lost},
    {"job_blocks_duplicate", "Blocks received again.", &JobStatus::blocks_duplicate},
    {"job_blocks_routed", "Of those sent, blocks over an auxiliary route.",
     &JobStatus::blocks_routed},
    {"job_blocks_relayed", "Blocks of other nodes that were sent on over such a route.",
     &JobStatus::blocks_relayed},
    {"job_blocks_to_groups", "Of those sent, blocks that went once to all who hear the group.",
     &JobStatus::blocks_to_groups},
    {"job_group_trials", "Of those sent, blocks that went to a group to learn who hears it.",
     &JobStatus::group_trials},
    {"job_group_members_left", "How often a member was too slow for its group.",
     &JobStatus::group_members_left},
    {"job_group_members_deaf", "How often a member heard nothing of its group any more.",
     &JobStatus::group_members_deaf},
    {"job_parity_sent", "Packets of parity sent beside blocks.", &JobStatus::parity_sent},
    {"job_parity_received", "Packets of parity that came.", &JobStatus::parity_received},
    {"job_blocks_recovered", "Of those received, blocks that were computed from parity.",
     &JobStatus::blocks_recovered},
    {"job_blocks_of_soundings", "Of those sent, blocks that went early to measure a link.",
     &JobStatus::blocks_of_soundings},
    {"job_sounding_packets_sent", "Packets without a block, sent to measure a link.",
     &JobStatus::sounding_packets_sent},
    {"job_sounding_packets_received", "Packets without a block that measured a link to this node.",
     &JobStatus::sounding_packets_received},
    {"job_payload_bytes_sent", "Bytes of blocks that were sent, without headers.",
     &JobStatus::payload_bytes_sent},
    {"job_payload_bytes_saved", "Bytes by which wire types made these less.",
     &JobStatus::payload_bytes_saved},
    {"job_blocks_missing", "Contributions that did not enter a sum made here.",
     &JobStatus::blocks_missing},
    {"job_blocks_late", "Blocks that came after their round was summed here.",
     &JobStatus::blocks_late},
    {"job_blocks_excluded", "Blocks pushed from here that did not enter a sum.",
     &JobStatus::blocks_excluded},
    {"job_updates_received", "Under bounded staleness, updates of other ranks that came here.",
     &JobStatus::updates_received},
    {"job_updates_late", "Of those, updates that came after the result of their step.",
     &JobStatus::updates_late},
    {"job_blocks_carried",
     "Blocks that did not enter a sum or were rounded, so that something was added to a later "
     "gradient.",
     &JobStatus::blocks_carried},
    {"job_carry_dropped", "Of those, blocks not kept because they were not finite.",
     &JobStatus::carry_dropped}};

void add_job_counters(MetricsWriter& out, const std::vector<JobStatus>& jobs) {
  for (const auto& [name, help, field] : kJobCounters) {
    out.family(name, Type::kCounter, help);
    for (const JobStatus& job : jobs) out.sample(job.*field, {{"job_id", id_text(job)}});
  }
  out.family("job_rounds_closed", Type::kCounter,
             "Rounds that were summed here although blocks were missing, by why.");
  for (const JobStatus& job : jobs) {
    const std::initializer_list<std::pair<const char*, std::uint64_t>> reasons = {
        {"early", job.rounds_closed_early},
        {"deadline", job.rounds_closed_deadline},
        {"absent", job.rounds_closed_absent}};
    for (const auto& [reason, count] : reasons) {
      out.sample(count, {{"job_id", id_text(job)}, {"reason", reason}});
    }
  }
  out.family("job_reduced_bytes", Type::kCounter, "Results of the rounds that were completed here.",
             "bytes");
  for (const JobStatus& job : jobs)
    out.sample(job.payload_bytes_reduced, {{"job_id", id_text(job)}});
  out.family("job_drops", Type::kCounter, "Packets of the job that were refused, by reason.");
  for (const JobStatus& job : jobs) {
    for (const auto& [reason, count] : job.drops) {
      out.sample(count, {{"job_id", id_text(job)}, {"reason", reason}});
    }
  }
}

/// Adds how many receivers hear their groups.
void add_groups(MetricsWriter& out, const std::vector<JobStatus>& jobs) {
  using Field = std::uint32_t JobStatus::*;
  const std::initializer_list<std::tuple<const char*, const char*, Field>> gauges = {
      {"job_groups", "Groups to which results or updates go.", &JobStatus::groups},
      {"job_group_receivers", "Receivers of all groups.", &JobStatus::group_receivers},
      {"job_group_receivers_hear", "Of those, receivers for which the network copies.",
       &JobStatus::group_receivers_hear},
      {"job_group_receivers_listen", "Of those, receivers too slow for the others for now.",
       &JobStatus::group_receivers_listen}};
  for (const auto& [name, help, field] : gauges) {
    out.family(name, Type::kGauge, help);
    for (const JobStatus& job : jobs) out.sample(job.*field, {{"job_id", id_text(job)}});
  }
}

/// Adds the drifts that ranks of this host have reported.
void add_drifts(MetricsWriter& out, const std::vector<JobStatus>& jobs) {
  out.family("job_selections", Type::kGauge,
             "Selections of receivers of the plan in force; 0 where every sum is exact.");
  for (const JobStatus& job : jobs) out.sample(job.selections, {{"job_id", id_text(job)}});
  out.family("job_staleness_steps", Type::kGauge,
             "Steps by which a rank may be behind without being waited for; 0 where all wait.",
             "steps");
  for (const JobStatus& job : jobs) out.sample(job.staleness, {{"job_id", id_text(job)}});
  const auto family = [&](const char* name, Type type, const char* help, const char* unit,
                          auto DriftStatus::*field) {
    out.family(name, type, help, unit);
    for (const JobStatus& job : jobs) {
      for (const DriftStatus& drift : job.drifts) {
        out.sample(drift.*field, {{"job_id", id_text(job)}, {"rank", fmt::to_string(drift.rank)}});
      }
    }
  };
  family("job_rank_averages", Type::kCounter, "Times that a rank told of its drift from the mean.",
         "", &DriftStatus::averages);
  family("job_rank_drift_step", Type::kGauge, "Step of the last of them.", "", &DriftStatus::step);
  family("job_rank_drift_distance", Type::kGauge,
         "Norm of the difference between the rank's parameters and their mean then.", "",
         &DriftStatus::distance);
  family("job_rank_drift_norm", Type::kGauge, "Norm of that mean.", "", &DriftStatus::norm);
  family("job_rank_drift_ratio", Type::kGauge, "That difference over that norm.", "ratio",
         &DriftStatus::relative);
}

void add_jobs(MetricsWriter& out, const std::vector<JobStatus>& jobs) {
  out.family("job", Type::kInfo, "The jobs of this daemon.");
  for (const JobStatus& job : jobs) {
    out.sample(1, {{"job_id", id_text(job)},
                   {"label", job.label},
                   {"plan", job.plan_kind},
                   {"mode", job.mode}});
  }
  out.family("job_ready", Type::kGauge, "Whether all ranks have joined and a plan is in force.");
  for (const JobStatus& job : jobs) {
    out.sample(job.state == JobState::kReady ? 1 : 0, {{"job_id", id_text(job)}});
  }
  out.family("job_ranks_missing", Type::kGauge, "Ranks that have not joined.");
  for (const JobStatus& job : jobs) out.sample(job.missing_count, {{"job_id", id_text(job)}});
  out.family("job_epoch", Type::kGauge, "Epoch of the plan in force.");
  for (const JobStatus& job : jobs) out.sample(job.epoch, {{"job_id", id_text(job)}});
  out.family("job_rank_rounds", Type::kCounter, "Rounds completed by a rank of this host.");
  for (const JobStatus& job : jobs) {
    for (const RankStatus& rank : job.ranks) {
      if (!rank.attached) continue;
      out.sample(rank.rounds_completed,
                 {{"job_id", id_text(job)}, {"rank", fmt::to_string(rank.rank)}});
    }
  }
  add_groups(out, jobs);
  add_drifts(out, jobs);
  add_job_counters(out, jobs);
}

void add_omitted(MetricsWriter& out, const StatusReport& report) {
  std::uint64_t ranks = 0;
  for (const JobStatus& job : report.jobs) ranks += job.ranks_omitted;
  out.family("status_omitted", Type::kGauge,
             "Entries without samples here, because the status would be too long.");
  out.sample(ranks, {{"what", "ranks"}});
  out.sample(report.peers_omitted, {{"what", "peers"}});
  out.sample(report.links_omitted, {{"what", "links"}});
  out.sample(report.jobs_omitted, {{"what", "jobs"}});
}

}  // namespace

std::string to_openmetrics(const StatusReport& report) {
  MetricsWriter out;
  add_node(out, report);
  add_port(out, report.port);
  add_peers(out, report.peers);
  add_links(out, report.links);
  add_jobs(out, report.jobs);
  add_omitted(out, report);
  return out.take();
}

}  // namespace gradplane::telemetry
