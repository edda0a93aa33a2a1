// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/rounds_page.h"

#include <algorithm>

namespace gradplane::daemon {
namespace {

/// The most bytes of JSON of a round, of a source with its ranks and of a tensor, each without its
/// texts, and of the page without its rounds.
constexpr std::size_t kRoundBytes = 640;
constexpr std::size_t kSourceBytes = 256;
constexpr std::size_t kTensorBytes = 160;
constexpr std::size_t kPageBytes = 24576;
/// The most bytes of JSON for one byte of a text: two for a quote or backslash, three for a byte
/// that is no UTF-8.
constexpr std::size_t kBytesPerByte = 3;

const char* name_of(CloseReason reason) {
  switch (reason) {
    case CloseReason::kFull:
      return "full";
    case CloseReason::kEarly:
      return "early";
    case CloseReason::kDeadline:
      return "deadline";
    case CloseReason::kAbsent:
      return "absent";
  }
  return "?";
}

std::size_t json_bytes(const telemetry::RoundEntry& round) {
  std::size_t bytes = kRoundBytes;
  for (const telemetry::RoundSource& source : round.sources) {
    bytes += kSourceBytes + kBytesPerByte * source.node.size();
  }
  for (const telemetry::RoundTensor& tensor : round.tensors) {
    bytes += kTensorBytes + kBytesPerByte * tensor.name.size();
  }
  return bytes;
}

void add_sources(const config::Config& config, const JobBounds& bounds, const RoundReport& report,
                 telemetry::RoundEntry& out) {
  const std::size_t named = std::min<std::size_t>(report.lacking_sources, kReportedSources);
  out.other_sources = static_cast<std::uint32_t>(report.lacking_sources - named);
  out.other_sources_missing_blocks = report.missing_blocks;
  for (std::size_t s = 0; s < named; ++s) {
    const RoundReport::Source& source = report.sources[s];
    out.other_sources_missing_blocks -= source.missing_blocks;
    out.sources.push_back({.node = config.cluster.nodes[source.node].name,
                           .ranks = bounds.ranks_of(source.node),
                           .missing_blocks = source.missing_blocks,
                           .expected_blocks = report.blocks});
  }
}

void add_tensors(const JobBounds& bounds, const RoundReport& report, telemetry::RoundEntry& out) {
  const std::size_t named = std::min<std::size_t>(report.lacking_tensors, kReportedTensors);
  out.other_tensors = static_cast<std::uint32_t>(report.lacking_tensors - named);
  out.other_tensors_missing_blocks = report.other_tensors_missing_blocks;
  for (std::size_t t = 0; t < named; ++t) {
    const RoundReport::Tensor& tensor = report.tensors[t];
    out.tensors.push_back({.index = tensor.index,
                           .name = bounds.tensor_name(report.bucket, tensor.index),
                           .missing_blocks = tensor.missing_blocks,
                           .expected_blocks = tensor.expected_blocks});
  }
}

void add_roots(const config::Config& config, const JobBounds& bounds, telemetry::RoundsPage& page) {
  for (const api::NodeId root : bounds.roots()) {
    page.gathers = page.gathers || root == config.self;
    if (page.roots.size() < telemetry::kMaxRootsNamed) {
      page.roots.push_back(config.cluster.nodes[root].name);
    } else {
      ++page.roots_omitted;
    }
  }
}

/// Adds those of the newest `request.last` rounds that came after the requested one.
void add_rounds(const config::Config& config, const InstalledJob& job,
                const protocol::RoundsRequest& request, telemetry::RoundsPage& page) {
  const std::deque<RoundReport>& kept = job.rounds.kept();
  const std::uint64_t after = request.epoch == job.installed_epoch ? request.after : 0;
  page.next_after = after;
  std::size_t bytes = kPageBytes;
  const std::size_t last = std::min<std::size_t>(request.last, kept.size());
  for (std::size_t i = kept.size() - last; i < kept.size(); ++i) {
    if (kept[i].number <= after) continue;
    telemetry::RoundEntry entry = round_entry(config, *job.bounds, kept[i]);
    bytes += json_bytes(entry);
    page.more = bytes > protocol::kMaxSocketMessageBytes;
    if (page.more) return;
    page.next_after = entry.number;
    page.rounds.push_back(std::move(entry));
  }
}

}  // namespace

telemetry::RoundEntry round_entry(const config::Config& config, const JobBounds& bounds,
                                  const RoundReport& report) {
  telemetry::RoundEntry out;
  out.number = report.number;
  out.round = report.round;
  out.epoch = report.epoch;
  out.bucket = report.bucket;
  out.tree = report.tree;
  out.reason = name_of(report.reason);
  out.duration_ns = static_cast<std::uint64_t>(report.duration.count_ns());
  out.missing_blocks = report.missing_blocks;
  out.expected_blocks = std::uint64_t{report.blocks} * report.source_count;
  add_sources(config, bounds, report, out);
  add_tensors(bounds, report, out);
  return out;
}

Result<telemetry::RoundsPage> rounds_page(const config::Config& config, const JobTable& jobs,
                                          const protocol::RoundsRequest& request) {
  const auto found = jobs.find_asked(request.job);
  if (!found) return found.error();
  telemetry::RoundsPage page;
  page.node = config.self_node().name;
  page.jobs = jobs.running_ids();
  const InstalledJob* job = found.value();
  if (job == nullptr) return page;
  page.job = job->id;
  page.epoch = job->installed_epoch;
  page.label = job->label;
  page.buckets = static_cast<std::uint32_t>(job->bounds->buckets().size());
  page.closed = job->rounds.closed();
  page.lost = job->rounds.lost();
  add_roots(config, *job->bounds, page);
  add_rounds(config, *job, request, page);
  return page;
}

}  // namespace gradplane::daemon
