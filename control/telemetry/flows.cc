// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/flows.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "control/telemetry/json_archive.h"
#include "control/telemetry/printable.h"
#include "control/telemetry/quantity.h"
#include "control/telemetry/table.h"
#include "dataplane/model/grant_settings.h"

namespace gradplane::telemetry {
namespace {

constexpr std::size_t kNodeColumns = 20;
constexpr std::size_t kLabelColumns = 40;

using Words = std::pair<std::string_view, std::string_view>;

/// What a limit means. Where the controller's window or pacing limits, the flow has a reason.
constexpr std::array<Words, 4> kLimitWords = {{
    {"application", "nothing is queued"},
    {"peer", "it does not answer"},
    {"peer link", "this node's share of the peer's link"},
    {"own link", "this node's own link, or another flow's turn"},
}};
constexpr std::array<Words, 9> kReasonWords = {{
    {"start", "still feeling for what the path bears"},
    {"growth", "growing"},
    {"loss", "reduced after a loss"},
    {"mark", "reduced because the network marked packets"},
    {"delay", "reduced because packets waited in a queue"},
    {"silence", "reduced because the peer did not answer"},
    {"idle", "started anew after a rest"},
    {"path", "covers what the path holds"},
    {"rate", "the configured rate"},
}};

template <std::size_t N>
std::string_view words_of(const std::array<Words, N>& table, std::string_view name) {
  for (const auto& [key, words] : table) {
    if (key == name) return words;
  }
  return {};
}

/// Why a flow is limited. Reasons of a newer daemon are shown as they are.
std::string why_text(const FlowStatus& flow) {
  std::string_view words = words_of(kLimitWords, flow.limit);
  if (words.empty()) words = words_of(kReasonWords, flow.reason);
  return words.empty() ? printable(flow.reason) : std::string(words);
}

std::string rtt_text(std::uint64_t ns) {
  return ns == 0 ? "-" : duration_text(ns);
}

/// The rate of the last second; "idle" if nothing was sent.
std::string sent_text(std::uint64_t bits_per_second) {
  return bits_per_second == 0 ? "idle" : rate_text(bits_per_second);
}

std::string controller_text(const FlowStatus& flow) {
  const std::string name = printable(flow.controller);
  return flow.gain == 1 ? name : fmt::format("{} x {:.2f}", name, flow.gain);
}

std::string table_of(const JobStatus& job) {
  Table table({{"PEER", Align::kLeft},
               {"RTT", Align::kRight},
               {"MIN", Align::kRight},
               {"RATE", Align::kRight},
               {"WINDOW", Align::kRight},
               {"IN FLIGHT", Align::kRight},
               {"GRANT", Align::kRight},
               {"CONTROLLER", Align::kLeft},
               {"LIMIT", Align::kLeft},
               {"WHY", Align::kLeft}});
  for (const FlowStatus& flow : job.flows) {
    table.add({clipped(printable(flow.node), kNodeColumns), rtt_text(flow.rtt_ns),
               rtt_text(flow.rtt_min_ns), sent_text(flow.rate_bits_per_second),
               fmt::to_string(flow.window_blocks), fmt::to_string(flow.in_flight_blocks),
               flow.granted ? fmt::to_string(flow.grant_blocks) : "-", controller_text(flow),
               printable(flow.limit), why_text(flow)});
  }
  return table.text(2);
}

/// Says how many flows were left out because the status would be too long.
std::string omitted_text(const JobStatus& job) {
  if (job.flows_omitted == 0) return {};
  if (!job.flows.empty()) return fmt::format("  and {} more, left out here\n", job.flows_omitted);
  return fmt::format("  {} flows, left out because the status would be too long\n",
                     job.flows_omitted);
}

bool has_flows(const JobStatus& job) {
  return !job.flows.empty() || job.flows_omitted > 0;
}

}  // namespace

std::string grants_text(const JobStatus& job) {
  const std::string policy = printable(job.grant_policy);
  bool by_weight = false;
  for (std::size_t p = 0; p < kGrantPolicyNames.size(); ++p)
    by_weight |=
        job.grant_policy == kGrantPolicyNames[p] && goes_by_weight(static_cast<GrantPolicy>(p));
  return by_weight ? fmt::format("{}, weight {}", policy, job.grant_weight) : policy;
}

std::string flows_text(const StatusReport& report) {
  std::string text;
  for (const JobStatus& job : report.jobs) {
    if (!has_flows(job)) continue;
    if (!text.empty()) text += "\n";
    text += fmt::format("job {:08x} {}", job.id, clipped(printable(job.label), kLabelColumns));
    if (!job.grant_policy.empty()) text += ", grants " + grants_text(job);
    text += "\n";
    if (!job.flows.empty()) text += table_of(job);
    text += omitted_text(job);
  }
  if (!text.empty()) return text;
  return fmt::format("no job of node {} sends anything\n", printable(report.node));
}

std::string flows_json(const StatusReport& report) {
  std::vector<JobFlows> jobs;
  for (const JobStatus& job : report.jobs) {
    if (!has_flows(job)) continue;
    jobs.push_back(
        {job.id, job.label, job.grant_policy, job.grant_weight, job.flows, job.flows_omitted});
  }
  return JsonWriter::text(jobs) + "\n";
}

}  // namespace gradplane::telemetry
