// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/bounds_page.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace gradplane::daemon {
namespace {

/// The most bytes of JSON of a tensor without its texts, and of the page without its tensors.
constexpr std::size_t kTensorBytes = 320;
constexpr std::size_t kPageBytes = 16384;
/// The most bytes of JSON for one byte of a text: two for a quote or backslash, three for a byte
/// that is no UTF-8.
constexpr std::size_t kBytesPerByte = 3;

const char* name_of(api::BoundReason why) {
  switch (why) {
    case api::BoundReason::kExact:
      return "exact";
    case api::BoundReason::kPattern:
      return "pattern";
    case api::BoundReason::kKind:
      return "kind";
    case api::BoundReason::kPreset:
      return "preset";
    case api::BoundReason::kLearned:
      return "learned";
    case api::BoundReason::kTooSmall:
      return "too_small";
  }
  return "?";
}

/// Rounds to a millionth, because the configuration is no finer. So it shows the value as written.
double rounded(float bound) {
  return std::round(double{bound} * 1e6) / 1e6;
}

telemetry::BoundsTensor tensor_row(const InstalledBucket& installed, std::size_t t) {
  const api::BoundedTensor& tensor = installed.table.tensors[t];
  return {.bucket = installed.table.bucket,
          .name = tensor.name,
          .elements = tensor.elements,
          .blocks = installed.any().blocks_of(t),
          .bound = rounded(installed.any().bound(t)),
          .why = name_of(tensor.why),
          .rule = tensor.rule,
          .wire = tensor.wire == WireType::kElements ? std::string()
                                                     : std::string(wire_type_name(tensor.wire)),
          .missing_blocks = installed.missing_blocks(t),
          .expected_blocks = installed.expected_blocks(t),
          .excluded_blocks = installed.excluded_blocks(t)};
}

/// Adds the tensors from the requested one on.
void add_tensors(const JobBounds& bounds, const protocol::BoundsRequest& request,
                 telemetry::BoundsPage& page) {
  std::size_t bytes = kPageBytes;
  for (std::size_t b = request.bucket; b < bounds.buckets().size(); ++b) {
    const InstalledBucket& installed = bounds.buckets()[b];
    const api::BucketBounds& table = installed.table;
    for (std::size_t t = b == request.bucket ? request.tensor : 0; t < table.tensors.size(); ++t) {
      const api::BoundedTensor& tensor = table.tensors[t];
      bytes += kTensorBytes + kBytesPerByte * (tensor.name.size() + tensor.rule.size());
      if (bytes > protocol::kMaxSocketMessageBytes ||
          page.tensors.size() == telemetry::kMaxTensorsPerPage) {
        page.more = true;
        page.next_bucket = static_cast<std::uint32_t>(b);
        page.next_tensor = static_cast<std::uint32_t>(t);
        return;
      }
      page.tensors.push_back(tensor_row(installed, t));
    }
  }
}

void add_sources(const JobBounds& bounds, const config::Config& config,
                 telemetry::BoundsPage& page) {
  std::map<std::uint16_t, telemetry::BoundsSource> sources;
  for (const InstalledBucket& installed : bounds.buckets()) {
    page.closes.full += installed.closes(CloseReason::kFull);
    page.closes.early += installed.closes(CloseReason::kEarly);
    page.closes.deadline += installed.closes(CloseReason::kDeadline);
    page.closes.absent += installed.closes(CloseReason::kAbsent);
    for (const aggregate::SourceReport& report : installed.sources()) {
      telemetry::BoundsSource& source = sources[report.node];
      source.node = config.cluster.nodes[report.node].name;
      source.missing_blocks += report.missing_blocks;
      source.expected_blocks += report.expected_blocks;
      source.threshold_ns =
          std::max(source.threshold_ns, static_cast<std::uint64_t>(report.threshold_ns));
    }
  }
  for (auto& [node, source] : sources) page.sources.push_back(std::move(source));
  std::stable_sort(page.sources.begin(), page.sources.end(), [](const auto& a, const auto& b) {
    return a.missing_blocks > b.missing_blocks;
  });
  if (page.sources.size() <= telemetry::kMaxSourcesNamed) return;
  page.sources_omitted =
      static_cast<std::uint32_t>(page.sources.size() - telemetry::kMaxSourcesNamed);
  page.sources.resize(telemetry::kMaxSourcesNamed);
}

}  // namespace

Result<telemetry::BoundsPage> bounds_page(const config::Config& config, const JobTable& jobs,
                                          const protocol::BoundsRequest& request) {
  const auto found = jobs.find_asked(request.job);
  if (!found) return found.error();
  telemetry::BoundsPage page;
  page.node = config.self_node().name;
  page.compensation = config::name_of(config.gather.compensation);
  page.jobs = jobs.running_ids();
  const InstalledJob* job = found.value();
  if (job == nullptr) return page;
  page.job = job->id;
  page.label = job->label;
  page.buckets = static_cast<std::uint32_t>(job->bounds->buckets().size());
  add_sources(*job->bounds, config, page);
  add_tensors(*job->bounds, request, page);
  return page;
}

}  // namespace gradplane::daemon
