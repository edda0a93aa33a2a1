// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/replan_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/cli/daemon_client.h"
#include "control/cli/exit_codes.h"
#include "control/cli/job_option.h"
#include "control/cli/output.h"
#include "dataplane/model/plan_kind.h"

namespace gradplane::cli {

int replan(const ReplanOptions& options) {
  const auto job = parse_job(options.job, "JOB");
  if (!job) return kExitUsage;
  const auto kind = std::find(kPlanKindNames.begin(), kPlanKindNames.end(), options.plan);
  if (kind == kPlanKindNames.end()) return kExitUsage;  // the option's own check complains
  for (const std::string& root : options.roots) {
    if (std::find(options.without.begin(), options.without.end(), root) == options.without.end())
      continue;
    complain(
        fmt::format("--root {0}: a root needs a part in the job, and --without takes {0} out; name "
                    "another root",
                    root));
    return kExitUsage;
  }
  if (options.roots.size() > 1 &&
      static_cast<PlanKind>(kind - kPlanKindNames.begin()) == PlanKind::kStar) {
    complain("--plan star has one root; name one, or use --plan sharded");
    return kExitUsage;
  }
  protocol::ReplanRequest request{*job, static_cast<PlanKind>(kind - kPlanKindNames.begin()),
                                  options.roots, options.without};
  const auto answer = request_replan(options.socket_path, request);
  if (!answer) {
    complain(answer.error().message);
    return kExitFailure;
  }
  return print(fmt::format("job {:08x}: epoch {} from round {} on: {}\n", *job,
                           answer.value().epoch, answer.value().activation_round,
                           answer.value().text));
}

}  // namespace gradplane::cli
