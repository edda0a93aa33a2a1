// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <array>

#include "control/telemetry/links.h"
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
    line(fmt::format("{} on {}, pid {}, up {}", printable(report.software),
                     painted(name_text(report.node), kBold), report.pid,
                     duration_text(report.uptime_ns)));
    if (!report.role.empty()) named("role", printable(report.role));
    add(report.port);
    named("poll", fmt::format("{}, {:.1f} % busy, {} sleeps", printable(report.poll.idle),
                              report.poll.busy_share() * 100, report.poll.sleeps));
    reasons("refused", report.drops);
    reasons("control", report.control_rejected);
    if (report.jobs.empty()) line("\nno jobs");
    for (const JobStatus& job : report.jobs) add(job);
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
    named("", fmt::format("received {} datagrams ({}), sent {} ({}), missed {}", port.rx_datagrams,
                          bytes_text(port.rx_bytes), port.tx_datagrams, bytes_text(port.tx_bytes),
                          port.rx_missed));
    if (port.groups > 0) {
      named("", fmt::format("in {} groups, {}", port.groups,
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
    named("ranks", fmt::format("{} of {} joined", job.joined_count, job.world_size));
    if (job.missing_count > 0) named("missing", missing_text(job));
    named("rounds", fmt::format("{} completed, {} summed", job.rounds_completed,
                                bytes_text(job.payload_bytes_reduced)));
    named("blocks", fmt::format("sent {}, received {}, retransmitted {} ({:.2f} %), lost {}, "
                                "duplicate {}",
                                job.blocks_sent, job.blocks_received, job.blocks_retransmitted,
                                share(job.blocks_retransmitted, job.blocks_sent) * 100,
                                job.blocks_suspected_lost, job.blocks_duplicate));
    if (job.blocks_routed + job.blocks_relayed > 0) {
      named("routes", fmt::format("{} blocks sent over auxiliary routes, {} sent on for others",
                                  job.blocks_routed, job.blocks_relayed));
    }
    if (job.blocks_to_groups > 0) {
      named("groups", fmt::format("{} blocks sent once for a group, {} times a member was too slow",
                                  job.blocks_to_groups, job.group_members_left));
    }
    if (job.blocks_of_soundings + job.sounding_packets_sent + job.sounding_packets_received > 0) {
      named("sounded", fmt::format("{} blocks and {} packets without one sent, {} received",
                                   job.blocks_of_soundings, job.sounding_packets_sent,
                                   job.sounding_packets_received));
    }
    bounds(job);
    reasons("dropped", job.drops);
    add(job.ranks, job.ranks_omitted);
  }

  /// What loss bounds did; nothing where everything was exact.
  void bounds(const JobStatus& job) {
    const std::uint64_t closed =
        job.rounds_closed_early + job.rounds_closed_deadline + job.rounds_closed_absent;
    if (closed > 0) {
      named("closed", fmt::format("{} rounds early, {} by deadline, {} without somebody; blocks "
                                  "missing {}, late {}",
                                  job.rounds_closed_early, job.rounds_closed_deadline,
                                  job.rounds_closed_absent, job.blocks_missing, job.blocks_late));
    }
    if (job.blocks_excluded > 0) {
      named("own", fmt::format("{} blocks excluded, {} of them carried, {} not finite",
                               job.blocks_excluded, job.blocks_carried, job.carry_dropped));
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
      table.add({fmt::to_string(rank.rank), name_text(rank.node), yes_no(rank.joined),
                 yes_no(rank.attached), rank.pid == 0 ? "-" : fmt::to_string(rank.pid),
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
      table.add({name_text(peer.node), name_text(peer.address), name_text(peer.state),
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
  std::string out_;
};

}  // namespace

std::string to_text(const StatusReport& report, const TextOptions& options) {
  TextWriter writer(options);
  writer.add(report);
  return writer.take();
}

}  // namespace gradplane::telemetry
