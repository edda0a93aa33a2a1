// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/option_table.h"

namespace gradplane::config {
namespace {

using enum OptionType;

constexpr std::int64_t kMinRate = 100000;
constexpr std::int64_t kMaxRate = 1000000000000;
/// Of MLTCP's constants, in millionths. An intercept of 0 would starve a job that begins.
constexpr std::int64_t kMaxSlope = 100 * kWholeNumber;
constexpr std::int64_t kMinIntercept = kWholeNumber / 100;

double number_of(const Value& v) {
  return static_cast<double>(v.number) / static_cast<double>(kWholeNumber);
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
     .store =
         [](const Target& t, const Value& v) {
           if (v.number != 0) t.config->congestion.mltcp.emplace();
         }},
    {.path = "congestion.mltcp_slope",
     .type = kNumber,
     .max = kMaxSlope,
     .default_text = "1.75",
     .summary = "How much more aggressive a job is at the end of an iteration than at its start.",
     .store =
         [](const Target& t, const Value& v) {
           if (t.config->congestion.mltcp) t.config->congestion.mltcp->slope = number_of(v);
         }},
    {.path = "congestion.mltcp_intercept",
     .type = kNumber,
     .min = kMinIntercept,
     .max = kMaxSlope,
     .default_text = "0.25",
     .summary =
         "How aggressive a job is at the start of an iteration; 1 is the controller as it is.",
     .store =
         [](const Target& t, const Value& v) {
           if (t.config->congestion.mltcp) t.config->congestion.mltcp->intercept = number_of(v);
         }},
};

}  // namespace

std::span<const Option> congestion_options() {
  return kCongestionOptions;
}

std::string_view name_of(ControllerKind kind) {
  return kControllerNames[static_cast<std::size_t>(kind)];
}

}  // namespace gradplane::config
