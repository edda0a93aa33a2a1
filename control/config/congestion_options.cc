// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/option_table.h"

namespace gradplane::config {
namespace {

using enum OptionType;

constexpr std::int64_t kMinRate = 100000;
constexpr std::int64_t kMaxRate = 1000000000000;
/// Limits of MLTCP's constants, in millionths. With an intercept of 0 a job that begins would
/// starve.
constexpr std::int64_t kMaxSlope = 100 * kWholeNumber;
constexpr std::int64_t kMinIntercept = kWholeNumber / 100;

constexpr std::int64_t kMinWeight = kWholeNumber / 1000;
constexpr std::int64_t kMaxWeight = static_cast<std::int64_t>(kMaxJobWeight) * kWholeNumber;
static_assert(1 / kMaxJobWeight <= 0.001, "the scheduler takes what the file may say");

double number_of(std::int64_t millionths) {
  return static_cast<double>(millionths) / static_cast<double>(kWholeNumber);
}

// One row per option, in the order of the reference page.
constexpr Option kCongestionOptions[] = {
    {.path = "congestion.controller",
     .type = kChoice,
     .choices = kControllerNames,
     .default_text = "delay",
     .summary = "What limits how much this node has in flight towards another. `delay` follows the "
                "queueing delay, and the rate of the other's link where that is known; the others "
                "are those of the literature, `bbr` is what LTP uses, and `fixed` sends at "
                "`congestion.rate`. Each node's own matter: nodes may differ.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->congestion.controller = static_cast<ControllerKind>(v.number);
         }},
    {.path = "congestion.jobs",
     .type = kPatternChoices,
     .choices = kControllerNames,
     .default_text = "{}",
     .summary = "Controllers of single jobs, by the job's name (`gradplane run --job NAME`, else "
                "the script's name). `*` is any text, `?` any one byte. The first line that "
                "matches decides, before `congestion.controller`.",
     .store =
         [](const Target& t, const Value& v) {
           for (const SectionEntry& entry : v.entries) {
             t.config->job_controllers.push_back(
                 {entry.key, static_cast<ControllerKind>(entry.choice)});
           }
         }},
    {.path = "congestion.rate",
     .type = kRate,
     .min = kMinRate,
     .max = kMaxRate,
     .default_note = "none; required with fixed",
     .summary = "Rate of the controller `fixed` towards each node, with all overhead of the wire.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->congestion.rate_bits_per_second = static_cast<std::uint64_t>(v.number);
         }},
    {.path = "congestion.mltcp",
     .type = kBoolean,
     .default_text = "false",
     .summary =
         "Whether what the controller adds when all goes well is multiplied by `mltcp_slope` "
         "x the share of the iteration that is done + `mltcp_intercept` (MLTCP), so that "
         "jobs that share a link come to take turns. Every job on the link should do so "
         "with the same constants. Little is gained where `delay` knows the link's rate.",
     .store = [](const Target& t, const Value& v) { t.config->mltcp_controllers = v.number != 0; }},
    {.path = "congestion.mltcp_slope",
     .type = kNumber,
     .max = kMaxSlope,
     .default_text = "1.75",
     .summary = "How much more aggressive a job is at the end of an iteration than at its start.",
     .store = [](const Target& t, const Value& v) { t.config->mltcp.slope = number_of(v.number); }},
    {.path = "congestion.mltcp_intercept",
     .type = kNumber,
     .min = kMinIntercept,
     .max = kMaxSlope,
     .default_text = "0.25",
     .summary =
         "How aggressive a job is at the start of an iteration; 1 is the controller as it is.",
     .store = [](const Target& t,
                 const Value& v) { t.config->mltcp.intercept = number_of(v.number); }},
    {.path = "grants.enabled",
     .type = kChoice,
     .choices = kGrantChoiceNames,
     .default_text = "auto",
     .summary =
         "Whether the node that receives blocks grants its link to those who send, so that "
         "nobody sends into a full queue and jobs share it. Else each sender keeps to its share of "
         "the link, whether the others use theirs or not: all that send to the node in a plan have "
         "even ones, and in an exchange those that are selected. `auto`: the coordinator decides "
         "when a job begins. The job has grants where at least 80 nodes send to one node of a plan "
         "with one tree, the plan does not depend on the network, and the files of its nodes give "
         "every node a `port.link_rate` of at most 1 Gbit/s and no `port.buffer` above 256 KiB, "
         "one poll core, no `multicast.enabled` and no `gather.wire_types`. A node with `auto` "
         "accepts either; `true` and `false` must be the same on every node of a job. Set "
         "`port.link_rate` with `true`: without, how much to grant is guessed from what gets lost.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->grants.enabled = static_cast<GrantChoice>(v.number);
         }},
    {.path = "grants.policy",
     .type = kChoice,
     .choices = kGrantPolicyNames,
     .default_text = "fair",
     .summary = "How jobs share this node's link while several want it. `fair`: alike; `weighted`: "
                "by `grants.weights`; `mltcp`: by weight times the F of MLTCP "
                "(`congestion.mltcp_slope`, `congestion.mltcp_intercept`), so that they come to "
                "take turns; `strict`: the one that is furthest in its iteration first. The "
                "receiver's own matter: nodes may differ.",
     .store = [](const Target& t,
                 const Value& v) { t.config->grants.policy = static_cast<GrantPolicy>(v.number); }},
    {.path = "grants.weights",
     .type = kPatternNumbers,
     .min = kMinWeight,
     .max = kMaxWeight,
     .default_text = "{}",
     .summary = "Weights of jobs, by the job's name as in `congestion.jobs`; 1 where no line "
                "matches.",
     .store =
         [](const Target& t, const Value& v) {
           for (const SectionEntry& entry : v.entries) {
             t.config->grants.weights.push_back({entry.key, number_of(entry.millionths)});
           }
         }},
};

}  // namespace

std::span<const Option> congestion_options() {
  return kCongestionOptions;
}

std::string_view name_of(ControllerKind kind) {
  return kControllerNames[static_cast<std::size_t>(kind)];
}
std::string_view name_of(GrantPolicy policy) {
  return kGrantPolicyNames[static_cast<std::size_t>(policy)];
}

}  // namespace gradplane::config
