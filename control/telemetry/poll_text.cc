// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/poll_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "control/telemetry/printable.h"
#include "control/telemetry/quantity.h"

namespace gradplane::telemetry {
namespace {

/// `of` less `before`, and 0 if that is negative: a report comes from another process, which may
/// say anything.
std::uint64_t difference(std::uint64_t of, std::uint64_t before) {
  return of - std::min(of, before);
}

void subtract(CoreStatus& core, const CoreStatus& before) {
  core.busy_ns = difference(core.busy_ns, before.busy_ns);
  core.total_ns = difference(core.total_ns, before.total_ns);
  core.sleeps = difference(core.sleeps, before.sleeps);
  core.rx_datagrams = difference(core.rx_datagrams, before.rx_datagrams);
  core.tx_datagrams = difference(core.tx_datagrams, before.tx_datagrams);
}

using StageTimes = decltype(PollStatus::stage_ns);

/// The poll loops and the datagrams of their port.
struct Work {
  PollStatus poll;
  std::uint64_t rx_datagrams = 0;
  std::uint64_t tx_datagrams = 0;
};

void subtract(Work& work, const StatusReport& before) {
  PollStatus& poll = work.poll;
  poll.busy_ns = difference(poll.busy_ns, before.poll.busy_ns);
  poll.total_ns = difference(poll.total_ns, before.poll.total_ns);
  poll.sleeps = difference(poll.sleeps, before.poll.sleeps);
  poll.wakes = difference(poll.wakes, before.poll.wakes);
  poll.rx_bursts = difference(poll.rx_bursts, before.poll.rx_bursts);
  poll.tx_bursts = difference(poll.tx_bursts, before.poll.tx_bursts);
  for (auto& [stage, ns] : poll.stage_ns) {
    const auto old = before.poll.stage_ns.find(stage);
    if (old != before.poll.stage_ns.end()) ns = difference(ns, old->second);
  }
  for (std::size_t c = 0; c < std::min(poll.cores.size(), before.poll.cores.size()); ++c)
    subtract(poll.cores[c], before.poll.cores[c]);
  work.rx_datagrams = difference(work.rx_datagrams, before.port.rx_datagrams);
  work.tx_datagrams = difference(work.tx_datagrams, before.port.tx_datagrams);
}

double ratio(std::uint64_t of, std::uint64_t to) {
  return to == 0 ? 0 : static_cast<double>(of) / static_cast<double>(to);
}

/// The stages in which the poll loop spends its working time: "transmit 52 %, receive 40 %, sum
/// 5 %, others 3 %". `total_ns` is the time of all stages, more than 0.
std::string stages_text(const StageTimes& stage_ns, std::uint64_t total_ns) {
  std::vector<std::pair<std::uint64_t, std::string>> stages;
  for (const auto& [stage, ns] : stage_ns) stages.emplace_back(ns, stage);
  std::sort(stages.rbegin(), stages.rend());
  constexpr std::size_t kNamed = 3;
  std::string out;
  double left = 100;
  for (std::size_t s = 0; s < std::min(kNamed, stages.size()); ++s) {
    const double share = 100 * ratio(stages[s].first, total_ns);
    out += fmt::format("{} {:.0f} %, ", printable(stages[s].second), share);
    left -= share;
  }
  return out + fmt::format("others {:.0f} %", std::max(left, 0.0));
}

/// Fewer datagrams say nothing of what one costs: the turns of an idle loop have other work.
constexpr std::uint64_t kTellingDatagrams = 1000;

/// "0.61 us for a datagram; 12.4 datagrams in a burst in, 8.0 out".
std::string bursts_text(const Work& work, std::uint64_t total_ns) {
  return fmt::format("{:.2f} us for a datagram; {:.1f} datagrams in a burst in, {:.1f} out",
                     ratio(total_ns, work.rx_datagrams + work.tx_datagrams) * 1e-3,
                     ratio(work.rx_datagrams, work.poll.rx_bursts),
                     ratio(work.tx_datagrams, work.poll.tx_bursts));
}

/// "adaptive, 41.0 % busy, 5 sleeps, 2 ended by a rank", or "always awake, 41.0 % busy".
std::string loop_text(const PollStatus& poll, const std::string& span) {
  if (poll.idle == "busy")
    return fmt::format("always awake, {:.1f} % busy{}", poll.busy_share() * 100, span);
  return fmt::format("{}, {:.1f} % busy{}, {}, {} ended by a rank", printable(poll.idle),
                     poll.busy_share() * 100, span, count_text(poll.sleeps, "sleep"), poll.wakes);
}

/// "CPU 2: 41.0 % busy, 5 sleeps, 3 datagrams in and 4 out over UDP port 47000, 1 job".
std::string core_text(const CoreStatus& core) {
  return fmt::format("CPU {}: {:.1f} % busy, {}, {} datagrams in and {} out over UDP port {}, {}",
                     core.cpu, core.busy_share() * 100, count_text(core.sleeps, "sleep"),
                     core.rx_datagrams, core.tx_datagrams, core.udp_port,
                     count_text(core.jobs, "job"));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> poll_lines(const StatusReport& report,
                                                            const StatusReport* before) {
  Work work{report.poll, report.port.rx_datagrams, report.port.tx_datagrams};
  const bool is_recent =
      before != nullptr && before->pid == report.pid && before->uptime_ns < report.uptime_ns;
  if (is_recent) subtract(work, *before);
  const std::string span =
      is_recent ? " in the last " + duration_text(report.uptime_ns - before->uptime_ns) : "";
  std::vector<std::pair<std::string, std::string>> lines;
  lines.emplace_back("poll", loop_text(work.poll, span));
  for (const CoreStatus& core : work.poll.cores) lines.emplace_back("core", core_text(core));
  if (!work.poll.why_one_core.empty()) {
    lines.emplace_back(
        "", "each job has one of the cores, because " + printable(work.poll.why_one_core));
  }
  std::uint64_t total_ns = 0;
  for (const auto& [stage, ns] : work.poll.stage_ns) total_ns += ns;
  if (total_ns == 0) return lines;
  lines.emplace_back("turns", stages_text(work.poll.stage_ns, total_ns));
  if (work.rx_datagrams + work.tx_datagrams >= kTellingDatagrams)
    lines.emplace_back("", bursts_text(work, total_ns));
  return lines;
}

}  // namespace gradplane::telemetry
