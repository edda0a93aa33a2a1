// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "control/config/draft.h"
#include "control/config/option_table.h"
#include "dataplane/model/operation.h"
#include "dataplane/model/staleness.h"

namespace gradplane::config {
namespace {

using enum OptionType;

constexpr std::array<std::string_view, 3> kModes = {"exact", "selective-bsp", "selective-ssp"};
static_assert(kModes.size() == static_cast<std::size_t>(TrainingMode::kSelectiveSsp) + 1);
constexpr std::array<std::string_view, 2> kSelectionChoices = {"links", "random"};
static_assert(kSelectionChoices.size() == static_cast<std::size_t>(ReceiverSelection::kRandom) + 1);
constexpr std::int64_t kMaxFreshness = kMaxSelections - 1;  // a plan has one selection more
constexpr std::int64_t kMaxAverageEvery = 1000000;

// One row per option, in the order of the reference page.
constexpr Option kOptions[] = {
    {.path = "training.mode",
     .type = kChoice,
     .choices = kModes,
     .default_text = "exact",
     .summary =
         "`exact`: every rank gets the sum over all ranks, and replicas stay alike. "
         "`selective-bsp`: each rank sends its update to some of the others, which are chosen so "
         "that the links are used evenly, and takes the mean of its own and those that it "
         "receives. Replicas differ then. `selective-ssp`: the same, but no rank waits for one "
         "that "
         "is at most `training.staleness` steps behind; what such a rank sends is in a later "
         "result. Both need plan.kind sharded, plan.roots training, one rank on a node, and 2 to "
         "64 nodes. The same on every node.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->training.mode = static_cast<TrainingMode>(v.number);
         }},
    {.path = "training.receivers",
     .type = kShare,
     .min = 1,
     .max = kWholeShare,
     .default_text = "30 %",
     .summary = "In a selective mode: the least share of the other ranks that receive each update. "
                "More of them do where that takes no longer, or where `training.freshness` needs "
                "it. The coordinator's value counts.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->training.receivers_ppm = static_cast<std::uint32_t>(v.number);
         }},
    {.path = "training.selection",
     .type = kChoice,
     .choices = kSelectionChoices,
     .default_text = "links",
     .summary =
         "In a selective mode: how receivers are chosen. `links`: so that the links are used "
         "evenly; `random`: at random, whatever the links are like (Orpheus), for "
         "comparison. The coordinator's value counts.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->training.selection = static_cast<ReceiverSelection>(v.number);
         }},
    {.path = "training.freshness",
     .type = kInteger,
     .max = kMaxFreshness,
     .default_text = "4",
     .summary = "In a selective mode: each rank receives the update of each other one at least "
                "once in any so many steps and one more. With 0 all receive all in every step. The "
                "same on every node.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->training.freshness = static_cast<std::uint32_t>(v.number);
         }},
    {.path = "training.average_every",
     .type = kIntegerOrWord,
     .min = 1,
     .max = kMaxAverageEvery,
     .word = "never",
     .default_text = "100",
     .summary = "In a selective mode: the number of steps after which all ranks take the exact "
                "mean of their parameters, which bounds how far replicas drift apart. The same on "
                "every node.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->training.average_every = static_cast<std::uint32_t>(v.number);
         }},
    {.path = "training.staleness",
     .type = kInteger,
     .min = 1,
     .max = kMaxStalenessSteps,
     .default_text = "4",
     .summary = "With selective-ssp: a rank waits only for ranks that are more than so many steps "
                "behind it. The same on every node.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->training.staleness = static_cast<std::uint32_t>(v.number);
         }},
    {.path = "training.drift_limit",
     .type = kShare,
     .min = 1,
     .max = kWholeShare,
     .default_text = "10 %",
     .summary = "In a selective mode: the daemon warns when the parameters of a rank of its own "
                "were further than this from their mean: the norm of the difference over the norm "
                "of the mean. It is measured at each exact mean. Nodes may differ.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->training.drift_limit_ppm = static_cast<std::uint32_t>(v.number);
         }},
};

/// Complains of settings that do not go with a selective mode, and says what to do.
void check_selective(Draft& draft) {
  const Config& config = draft.config;
  const auto error = [&draft](std::string_view reason) {
    draft.error("training.mode", std::string(reason) + ", or set training.mode: exact");
  };
  const auto is_known = [&draft](const char* key) { return !draft.failed.contains(key); };
  if (draft.node_count == 1) {
    error("needs two nodes or more, because a node has one rank; add the others to cluster.nodes");
  }
  if (is_known("plan.kind") && config.plan.kind != PlanKind::kSharded) {
    error(
        fmt::format("needs a tree of every node with a rank, which plan.kind {} does not give; "
                    "set plan.kind: sharded",
                    plan_kind_name(config.plan.kind)));
  } else if (is_known("plan.roots") && is_known("plan.kind") &&
             config.plan.roots != ShardRoots::kTraining) {
    error("needs a tree of every node with a rank; set plan.roots: training");
  }
  const auto other =
      std::find_if(config.plan.jobs.begin(), config.plan.jobs.end(),
                   [](const JobPlan& job) { return job.kind != PlanKind::kSharded; });
  if (is_known("plan.jobs") && other != config.plan.jobs.end()) {
    error(
        fmt::format("needs the plan sharded of every job, and plan.jobs gives '{}' the plan {}; "
                    "remove that line",
                    shown_value(nullptr, other->pattern), plan_kind_name(other->kind)));
  }
  if (is_known("grants.enabled") && config.grants.enabled == GrantChoice::kTrue)
    error("does not go with grants.enabled: true; remove that");
  if (is_known("gather.compensation") && config.gather.compensation == Compensation::kCarry) {
    error(
        "does not go with gather.compensation: carry, because what a rank sends is always in its "
        "own result, so nothing of it is left to carry; set zero or rescale");
  }
}

}  // namespace

std::span<const Option> training_options() {
  return kOptions;
}

std::string_view name_of(TrainingMode mode) {
  return kModes[static_cast<std::size_t>(mode)];
}

void check_training(Draft& draft) {
  if (draft.failed.contains("training.mode")) return;
  if (is_set(draft, "training.staleness") &&
      draft.config.training.mode != TrainingMode::kSelectiveSsp) {
    draft.error("training.staleness",
                "means nothing without training.mode: selective-ssp; remove it");
  }
  if (draft.config.training.is_selective()) {
    check_selective(draft);
    return;
  }
  for (const char* key : {"training.receivers", "training.selection", "training.freshness",
                          "training.average_every", "training.drift_limit"}) {
    if (is_set(draft, key))
      draft.error(key, "means nothing while training.mode is exact; remove it");
  }
}

}  // namespace gradplane::config
