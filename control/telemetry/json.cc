// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>

#include "control/telemetry/json_archive.h"

namespace gradplane::telemetry {
namespace {

// How many ranks, peers and links a shortened report keeps at first.
constexpr std::size_t kMaxKept = std::max(kMaxRanks, kMaxNodes);

/// A report that is shortened further leaves out jobs before it keeps fewer ranks, peers and links,
/// and these before it keeps fewer jobs.
constexpr std::size_t kFewOthers = 16;
constexpr std::size_t kFewJobs = 8;

/// How many entries of each list a shortened report has.
struct Shares {
  std::size_t flows = 0;
  std::size_t others = 0;  // ranks of a job, peers and links
  std::size_t jobs = 0;
};

StatusReport shortened(const StatusReport& report, const Shares& shares) {
  const auto& [flows, others, jobs] = shares;
  StatusReport shorter = report;
  shorten(shorter.jobs, jobs, shorter.jobs_omitted);
  shorten(shorter.peers, others, shorter.peers_omitted);
  shorten(shorter.links, others, shorter.links_omitted);
  for (JobStatus& job : shorter.jobs) {
    // Ranks of this host come first, because no other node reports them.
    std::stable_partition(job.ranks.begin(), job.ranks.end(),
                          [](const RankStatus& rank) { return rank.attached; });
    shorten(job.ranks, others, job.ranks_omitted);
    shorten(job.flows, flows, job.flows_omitted);
  }
  return shorter;
}

std::size_t most_flows(const StatusReport& report) {
  std::size_t most = 0;
  for (const JobStatus& job : report.jobs) most = std::max(most, job.flows.size());
  return most;
}

std::string dump(const StatusReport& report) {
  return JsonWriter::text(report);
}

}  // namespace

std::string_view job_state_name(JobState state) {
  return kJobStateNames[static_cast<std::size_t>(state)];
}

double CoreStatus::busy_share() const {
  return total_ns == 0 ? 0 : static_cast<double>(busy_ns) / static_cast<double>(total_ns);
}

double PollStatus::busy_share() const {
  return total_ns == 0 ? 0.0 : static_cast<double>(busy_ns) / static_cast<double>(total_ns);
}

std::string to_json(const StatusReport& report, std::size_t max_bytes) {
  std::string text = dump(report);
  // Flows are left out first: they tell how a job runs, but ranks and peers whether it runs.
  Shares shares{most_flows(report), kMaxKept, report.jobs.size()};
  while (max_bytes > 0 && text.size() > max_bytes && shares.jobs > 0) {
    if (shares.flows > 0)
      shares.flows /= 2;
    else if (shares.others > kFewOthers)
      shares.others /= 2;
    else if (shares.jobs > kFewJobs)
      shares.jobs -= shares.jobs / 4;
    else if (shares.others > 0)
      shares.others /= 2;
    else
      shares.jobs /= 2;
    text = dump(shortened(report, shares));
  }
  return text;
}

Result<StatusReport> from_json(std::string_view text) {
  if (text.size() > kMaxStatusBytes) return Error{"status: longer than any daemon's"};
  return JsonReader::parse<StatusReport>(text, "status");
}

}  // namespace gradplane::telemetry
