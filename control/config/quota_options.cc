// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/option_table.h"
#include "dataplane/model/loss_bounds.h"

namespace gradplane::config {
namespace {

using enum OptionType;

constexpr std::int64_t kSecond = 1000000000;
constexpr std::int64_t kMinWait = 10 * kSecond;
constexpr std::int64_t kMaxWait = 24 * 3600 * kSecond;

// One row per option, in the order of the reference page.
constexpr Option kQuotaOptions[] = {
    {.path = "quotas.jobs",
     .type = kInteger,
     .min = 1,
     .max = kMaxUserJobs,
     .default_text = "32",
     .summary = "Jobs that one user may have on this node at a time; the coordinator's value also "
                "holds for the whole cluster. Each process group is a job. A daemon serves 64, so "
                "some are always left for others. Root may have all.",
     .store = [](const Target& t,
                 const Value& v) { t.config->quotas.jobs = static_cast<std::uint32_t>(v.number); }},
    {.path = "quotas.ranks",
     .type = kInteger,
     .min = 1,
     .max = kMaxUserRanks,
     .default_text = "64",
     .summary = "Ranks that one user may have on this node at a time. Each has 16 times "
                "`rounds.bytes` of memory (64 MiB), and counts until its connection has ended and "
                "no process has that memory open or mapped any more. Root may have all.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->quotas.ranks = static_cast<std::uint32_t>(v.number);
         }},
    {.path = "quotas.updates",
     .type = kSize,
     .min = kMiB,
     .max = kMaxInboxBytes,
     .default_text = "2 GiB",
     .summary = "Memory that the jobs of one user may have on this node for updates on their way, "
                "with `training.mode: selective-ssp`. A job needs as much as its gradients have in "
                "fp32, in fp64 if they are that. A job that needs more ends, and its ranks go on "
                "over Gloo, if they may. Root may have 8 GiB for each job.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->quotas.updates = static_cast<std::size_t>(v.number);
         }},
    {.path = "quotas.wait",
     .type = kTime,
     .min = kMinWait,
     .max = kMaxWait,
     .default_text = "10 min",
     .summary =
         "How long a job may wait for all of its ranks to attach; then those that wait are "
         "told who is missing, and the job is over. The coordinator's value counts, and each "
         "node's own while the coordinator cannot be heard. Trainers themselves wait for "
         "at most 10 minutes.",
     .store = [](const Target& t,
                 const Value& v) { t.config->quotas.wait = Duration::ns(v.number); }},
};
static_assert(kRoundSlots == 16 && kMaxJobs == 64 && kMaxInboxBytes == std::size_t{8} << 30,
              "as the summaries say");

}  // namespace

std::span<const Option> quota_options() {
  return kQuotaOptions;
}

}  // namespace gradplane::config
