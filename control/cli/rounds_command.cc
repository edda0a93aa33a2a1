// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/rounds_command.h"

#include <fmt/format.h>

#include "control/cli/daemon_client.h"
#include "control/cli/exit_codes.h"
#include "control/cli/job_option.h"
#include "control/cli/output.h"
#include "control/telemetry/rounds.h"

namespace gradplane::cli {
namespace {

constexpr int kFollowPeriodMs = 500;

/// Formats the rounds that have come since the last time. A heading precedes them when they are of
/// another job or epoch than the last ones.
class Follower {
 public:
  explicit Follower(bool json) : json_(json) {}

  std::string text_of(const std::vector<telemetry::RoundsPage>& pages) {
    std::string text;
    for (const telemetry::RoundsPage& page : pages) {
      if (page.rounds.empty()) continue;
      if (json_) {
        text += telemetry::to_json(page) + "\n";
        continue;
      }
      if (page.job != job_ || page.epoch != epoch_) text += telemetry::rounds_heading(page);
      text += telemetry::rounds_rows(page);
      job_ = page.job;
      epoch_ = page.epoch;
    }
    return text;
  }

  /// The first pages are shown whole.
  std::string begin(const std::vector<telemetry::RoundsPage>& pages) {
    if (json_) return text_of(pages);
    for (const telemetry::RoundsPage& page : pages) {
      job_ = page.job;
      epoch_ = page.epoch;
    }
    return telemetry::rounds_text(pages);
  }

 private:
  bool json_;
  std::uint32_t job_ = 0;  // job and epoch of the last heading
  std::uint32_t epoch_ = 0;
};

/// Complains, for each job, of the rounds between `seen` and `pages` that the daemon no longer had.
void tell_missed(const std::vector<telemetry::RoundsPage>& seen,
                 const std::vector<telemetry::RoundsPage>& pages) {
  for (const telemetry::RoundsPage& page : pages) {
    std::uint64_t after = 0;
    for (const telemetry::RoundsPage& before : seen) {
      if (before.job == page.job && before.epoch == page.epoch) after = before.next_after;
    }
    const std::uint64_t missed = telemetry::missed_rounds(after, page);
    if (missed == 0) continue;
    complain(
        fmt::format("job {:08x}: {} rounds were missed: since it was last asked the daemon closed "
                    "more than the {} of a job that it keeps, or faster than it can note",
                    page.job, missed, telemetry::kKeptRounds));
  }
}

int follow(const RoundsOptions& options, std::uint32_t job) {
  Follower follower(options.json);
  std::vector<telemetry::RoundsPage> pages;
  for (bool first = true;; first = false) {
    const std::uint32_t last = first ? options.last : telemetry::kKeptRounds;
    auto next = fetch_rounds(options.socket_path, job, last, pages);
    if (!next) {
      complain(next.error().message);
      return kExitFailure;
    }
    if (!first) tell_missed(pages, next.value());
    pages = std::move(next.value());
    const int code = print(first ? follower.begin(pages) : follower.text_of(pages));
    if (code != kExitOk || !wait_for_turn(kFollowPeriodMs)) return code;
  }
}

}  // namespace

int show_rounds(const RoundsOptions& options) {
  const auto job = parse_job_option(options.job);
  if (!job) return kExitUsage;
  if (options.follow) return follow(options, *job);
  const auto rounds = fetch_rounds(options.socket_path, *job, options.last, {});
  if (!rounds) {
    complain(rounds.error().message);
    return kExitFailure;
  }
  return print(options.json ? telemetry::rounds_json(rounds.value())
                            : telemetry::rounds_text(rounds.value()));
}

}  // namespace gradplane::cli
