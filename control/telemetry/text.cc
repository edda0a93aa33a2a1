// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "control/telemetry/flows.h"
#include "control/telemetry/links.h"
#include "control/telemetry/poll_text.h"
#include "control/telemetry/printable.h"
#include "control/telemetry/quantity.h"
#include "control/telemetry/status.h"
#include "control/telemetry/table.h"

namespace gradplane::telemetry {
namespace {

constexpr std::size_t kNameColumns = 20;
constexpr std::size_t kLabelColumns = 40;

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kYellow = "\x1b[33m";
constexpr std::string_view kPlain = "\x1b[0m";

std::string rtt_text(std::uint64_t ns) {
  return ns == 0 ? "-" : duration_text(ns);
}

std::string name_text(std::string_view name) {
  return clipped(printable(name), kNameColumns);
}

std::string yes_no(bool value) {
  return value ? "yes" : "no";
}

class TextWriter {
 public:
  explicit TextWriter(const TextOptions& options) : options_(options) {}

  void add(const StatusReport& report) {
    node_ = report.node;
    line(fmt::format("{} on {}, pid {}, up {}", printable(report.software),
                     painted(name_text(report.node), kBold), report.pid,
                     duration_text(report.uptime_ns)));
    if (!report.role.empty()) named("role", printable(report.role));
    add(report.port);
    for (const auto& [label, text] : poll_lines(report, options_.before)) named(label, text);
    reasons("refused", report.drops);
    reasons("control", report.control_rejected);
    if (report.jobs.empty()) line("\nno jobs");
    for (const JobStatus& job : report.jobs) add(job);
    if (report.jobs_omitted > 0)
      line(fmt::format("\nand {} more jobs, left out here", report.jobs_omitted));
    add(report.peers, report.peers_omitted);
    add(report.links, report.links_omitted);
  }

  std::string take() { return std::move(out_); }

 private:
  void line(const std::string& text) { out_ += text + "\n"; }

  std::string painted(std::string text, std::string_view color) const {
    return options_.color ? fmt::format("{}{}{}", color, text, kPlain) : std::move(text);
  }

  /// "  name    text", the text wrapped at blanks.
  void named(std::string_view name, const std::string& text) {
    out_ += wrapped(fmt::format("  {:<8}", name), text, options_.width);
  }

  void reasons(std::string_view name, const ReasonCounts& counts) {
    std::string text;
    for (const auto& [reason, count] : counts) {
      if (count == 0) continue;
      if (!text.empty()) text += ", ";
      text += fmt::format("{} {}", printable(reason), count);
    }
    if (!text.empty()) named(name, text);
  }

  void add(const PortStatus& port) {
    named("port", fmt::format("{} {} {}, MTU {}", printable(port.kind), printable(port.interface),
                              printable(port.address), port.mtu_bytes));
    named("", fmt::format("received {} ({}), sent {} ({}), missed {}",
                          count_text(port.rx_datagrams, "datagram"), bytes_text(port.rx_bytes),
                          port.tx_datagrams, bytes_text(port.tx_bytes), port.rx_missed));
    if (port.tx_lent > 0) {
      named("", fmt::format("{} sent from where the payload lay, without a copy",
                            count_text(port.tx_lent, "frame")));
    }
    if (port.handed_over > 0) {
      named("", fmt::format("{} came by another queue than their poll core's",
                            count_text(port.handed_over, "frame")));
    }
    if (port.groups > 0) {
      named("", fmt::format("in {}, {}", count_text(port.groups, "group"),
                            port.igmp_version == 0
                                ? "for which no switch has asked"
                                : fmt::format("IGMP version {}", port.igmp_version)));
    }
    reasons("dropped", port.drops);
  }

  std::string state_text(const JobStatus& job) const {
    constexpr std::array kColors = {kYellow, kGreen, kRed, kGreen};
    static_assert(kColors.size() == static_cast<std::size_t>(JobState::kEnded) + 1);
    return painted(std::string(job_state_name(job.state)),
                   kColors[static_cast<std::size_t>(job.state)]);
  }

  void add(const JobStatus& job) {
    out_ +=
        fmt::format("\njob {:08x} {} {}", job.id,
                    painted(clipped(printable(job.label), kLabelColumns), kBold), state_text(job));
    if (job.epoch != 0) out_ += fmt::format(", {}, epoch {}", printable(job.plan_kind), job.epoch);
    line("");
    if (!job.reason.empty()) named("reason", printable(job.reason));
    if (!job.plan_change.empty()) named("plan", printable(job.plan_change));
    if (job.selections > 0) named("mode", mode_text(job));
    if (!job.grant_policy.empty()) named("grants", grants_text(job));
    named("ranks", fmt::format("{} of {} joined", job.joined_count, job.world_size));
    if (job.missing_count > 0) named("missing", missing_text(job));
    const bool had_part = job.blocks_sent + job.blocks_received > 0;
    if (!job.has_part) {
      named("part", std::string("none here: this node coordinates the job only") +
                        (had_part ? "; what follows is of its part before" : ""));
    }
    if (job.has_part || had_part) traffic(job);
    add(job.ranks, job.ranks_omitted);
  }

  static std::string mode_text(const JobStatus& job) {
    std::string text = printable(job.mode) + ", ";
    text +=
        job.selections == 1
            ? "1 selection of receivers for all steps"
            : fmt::format("{} selections of receivers, one for each step in turn", job.selections);
    if (job.staleness > 0) {
      text += fmt::format("; no rank waits for one that is at most {} behind",
                          count_text(job.staleness, "step"));
    }
    return text;
  }

  void traffic(const JobStatus& job) {
    if (job.staleness > 0) {
      named("updates",
            fmt::format("{} of other ranks received, {} of them after the result of their step",
                        job.updates_received, job.updates_late));
    }
    named("rounds", fmt::format("{} completed, {} summed", job.rounds_completed,
                                bytes_text(job.payload_bytes_reduced)));
    named("blocks", fmt::format("sent {}, received {}, retransmitted {} ({:.2f} %), lost {}, "
                                "duplicate {}",
                                job.blocks_sent, job.blocks_received, job.blocks_retransmitted,
                                share(job.blocks_retransmitted, job.blocks_sent) * 100,
                                job.blocks_suspected_lost, job.blocks_duplicate));
    if (job.blocks_routed + job.blocks_relayed > 0) {
      named("routes", fmt::format("{} sent over auxiliary routes, {} sent on for others",
                                  count_text(job.blocks_routed, "block"), job.blocks_relayed));
    }
    if (job.blocks_to_groups + job.group_trials > 0) named("groups", groups_text(job));
    if (job.group_receivers > 0) named("hearing", hearing_text(job));
    if (job.parity_sent + job.parity_received > 0) {
      named("parity",
            fmt::format("{} sent, {} received, {} recovered", count_text(job.parity_sent, "packet"),
                        job.parity_received, count_text(job.blocks_recovered, "block")));
    }
    if (job.blocks_of_soundings + job.sounding_packets_sent + job.sounding_packets_received > 0) {
      named("sounded", fmt::format("{} and {} without one sent, {} received",
                                   count_text(job.blocks_of_soundings, "block"),
                                   count_text(job.sounding_packets_sent, "packet"),
                                   job.sounding_packets_received));
    }
    bounds(job);
    for (const DriftStatus& drift : job.drifts) add(drift);
    reasons("dropped", job.drops);
  }

  void add(const DriftStatus& drift) {
    constexpr double kPercent = 100;
    named("drift", fmt::format("rank {}: {:.3g} % at step {} (distance {:.4g}, norm {:.4g}), "
                               "measured {} times",
                               drift.rank, kPercent * drift.relative, drift.step, drift.distance,
                               drift.norm, drift.averages));
  }

  static std::string groups_text(const JobStatus& job) {
    const std::string trials = count_text(job.group_trials, "trial");
    if (job.blocks_to_groups == 0) {
      return fmt::format("{}, and nothing sent once for a group: {}", trials,
                         job.group_receivers_hear < 2
                             ? "fewer than two receivers hear any"
                             : "so far no block was for two receivers that hear one");
    }
    return fmt::format("{} sent once for a group, {}; a member was {} too slow, {} deaf",
                       count_text(job.blocks_to_groups, "block"), trials,
                       count_text(job.group_members_left, "time"),
                       count_text(job.group_members_deaf, "time"));
  }

  static std::string hearing_text(const JobStatus& job) {
    std::string text =
        fmt::format("{} of {} of {} hear it", job.group_receivers_hear,
                    count_text(job.group_receivers, "receiver"), count_text(job.groups, "group"));
    if (job.group_receivers_listen > 0)
      text +=
          fmt::format("; {} too slow or lossy for the others for now", job.group_receivers_listen);
    return text;
  }

  /// The effects of loss bounds; nothing if all rounds were exact.
  void bounds(const JobStatus& job) {
    const std::uint64_t closed =
        job.rounds_closed_early + job.rounds_closed_deadline + job.rounds_closed_absent;
    if (closed > 0) {
      named("closed",
            fmt::format("{} early, {} by deadline, {} without somebody; blocks "
                        "missing {}, late {}",
                        count_text(job.rounds_closed_early, "round"), job.rounds_closed_deadline,
                        job.rounds_closed_absent, job.blocks_missing, job.blocks_late));
    }
    if (job.blocks_excluded > 0 || job.blocks_carried > 0) {
      named("own", fmt::format("{} excluded, {} with a remainder carried, {} not finite",
                               count_text(job.blocks_excluded, "block"), job.blocks_carried,
                               job.carry_dropped));
    }
    if (job.payload_bytes_saved > 0) {
      const double whole = static_cast<double>(job.payload_bytes_sent) +
                           static_cast<double>(job.payload_bytes_saved);
      named("wire", fmt::format("{} sent instead of {}", bytes_text(job.payload_bytes_sent),
                                bytes_text(static_cast<std::uint64_t>(whole))));
    }
  }

  static double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  }

  static std::string missing_text(const JobStatus& job) {
    std::string text;
    for (const std::uint32_t rank : job.missing) {
      text += fmt::format("{}{}", text.empty() ? "rank " : ", ", rank);
    }
    if (job.missing_count > job.missing.size()) {
      text += fmt::format("{} {} more", text.empty() ? "" : " and",
                          job.missing_count - job.missing.size());
    }
    return text;
  }

  void add(const std::vector<RankStatus>& ranks, std::uint32_t omitted) {
    if (ranks.empty() && omitted == 0) return;
    Table table({{"RANK", Align::kRight},
                 {"NODE", Align::kLeft},
                 {"JOINED", Align::kLeft},
                 {"ATTACHED", Align::kLeft},
                 {"PID", Align::kRight},
                 {"ROUNDS", Align::kRight}});
    for (const RankStatus& rank : ranks) {
      const bool is_here = rank.attached || rank.node == node_;
      table.add({fmt::to_string(rank.rank), name_text(rank.node), yes_no(rank.joined),
                 is_here ? yes_no(rank.attached) : "-",
                 rank.pid == 0 ? "-" : fmt::to_string(rank.pid),
                 rank.attached ? fmt::to_string(rank.rounds_completed) : "-"});
    }
    add(table, omitted);
  }

  void add(const std::vector<PeerStatus>& peers, std::uint32_t omitted) {
    if (peers.empty() && omitted == 0) return;
    line("\npeers");
    Table table({{"NODE", Align::kLeft},
                 {"ADDRESS", Align::kLeft},
                 {"STATE", Align::kLeft},
                 {"RTT", Align::kRight},
                 {"MIN", Align::kRight},
                 {"WINDOW", Align::kRight},
                 {"SENT", Align::kRight},
                 {"REPEATED", Align::kRight},
                 {"LOST", Align::kRight}});
    for (const PeerStatus& peer : peers) {
      std::string state = peer.state == "unknown" ? "not heard yet" : name_text(peer.state);
      if (peer.state == "silent") state += fmt::format(" {}", duration_text(peer.silence_ns));
      table.add({name_text(peer.node), name_text(peer.address), std::move(state),
                 rtt_text(peer.rtt_ns), rtt_text(peer.rtt_min_ns),
                 fmt::to_string(peer.window_blocks), fmt::to_string(peer.blocks_sent),
                 fmt::to_string(peer.blocks_retransmitted), fmt::to_string(peer.blocks_lost)});
    }
    add(table, omitted);
  }

  void add(const std::vector<LinkStatus>& links, std::uint32_t omitted) {
    if (links.empty() && omitted == 0) return;
    line("\nmeasured links to this node");
    add(links_table(links), omitted);
  }

  void add(const Table& table, std::uint32_t omitted) {
    out_ += table.text(2);
    if (omitted > 0) line(fmt::format("  and {} more, left out here", omitted));
  }

  const TextOptions& options_;
  std::string node_;  // the reporting node; it does not know whether ranks of others are attached
  std::string out_;
};

}  // namespace

std::string to_text(const StatusReport& report, const TextOptions& options) {
  TextWriter writer(options);
  writer.add(report);
  return writer.take();
}

}  // namespace gradplane::telemetry
