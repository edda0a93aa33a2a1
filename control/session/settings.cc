// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/settings.h"

#include <string_view>

namespace gradplane::session {
namespace {

std::string_view compensation_name(Compensation compensation) {
  switch (compensation) {
    case Compensation::kZero:
      return "zero";
    case Compensation::kRescale:
      return "rescale";
    case Compensation::kCarry:
      return "carry";
  }
  return "?";
}

std::string millionths(std::uint32_t share_ppm) {
  return std::to_string(share_ppm) + " millionths";
}

std::string training_mode(const protocol::JobSettings& settings) {
  if (settings.selections == 0) return "exact";
  return settings.staleness == 0 ? "selective-bsp" : "selective-ssp";
}

std::string choice_name(GrantChoice choice) {
  return std::string(kGrantChoiceNames[static_cast<std::size_t>(choice)]);
}

bool accepts_grants(const protocol::JobSettings& ours, bool grants) {
  if (ours.grants == GrantChoice::kAuto) return !grants || ours.cores == 1;
  return (ours.grants == GrantChoice::kTrue) == grants;
}

std::string our_grants(const protocol::JobSettings& ours) {
  const bool is_false = ours.grants == GrantChoice::kAuto && ours.cores > 1;
  return choice_name(ours.grants) + (is_false ? " (false, with several poll.cores)" : "");
}

std::string their_grants(const protocol::JobSettings& theirs, bool grants) {
  const std::string decided = grants ? "true" : "false";
  const std::string name = choice_name(theirs.grants);
  return name == decided ? name : name + " (" + decided + " for this job)";
}

}  // namespace

std::string difference_text(const protocol::JobSettings& ours, const std::string& our_node,
                            const protocol::JobSettings& theirs, const std::string& their_node,
                            bool grants) {
  std::string text;
  const auto compare = [&](const char* key, const std::string& our, const std::string& their,
                           const char* note = "") {
    if (our == their) return;
    text += std::string(key) + " is " + our + " on " + our_node + " and " + their + " on " +
            their_node + note + "; ";
  };
  const auto time = [](std::uint64_t ns, const char* zero) {
    return ns == 0 ? std::string(zero) : std::to_string(ns / 1000) + " us";
  };
  const auto yes_no = [](bool b) -> std::string { return b ? "true" : "false"; };
  compare("block.bytes", std::to_string(ours.block_bytes), std::to_string(theirs.block_bytes),
          " (auto follows port.mtu)");
  compare("rounds.bytes", std::to_string(ours.round_bytes), std::to_string(theirs.round_bytes));
  compare("security.authenticate", yes_no(ours.authenticate), yes_no(theirs.authenticate));
  compare("gather.compensation", std::string(compensation_name(ours.compensation)),
          std::string(compensation_name(theirs.compensation)));
  compare("gather.strict_rounds", std::to_string(ours.strict_rounds),
          std::to_string(theirs.strict_rounds));
  compare("gather.floor", millionths(ours.floor_ppm), millionths(theirs.floor_ppm));
  compare("gather.slack", time(ours.slack_ns, "auto"), time(theirs.slack_ns, "auto"));
  compare("gather.absent_after", time(ours.absent_after_ns, "never"),
          time(theirs.absent_after_ns, "never"));
  if (!accepts_grants(ours, grants))
    compare("grants.enabled", our_grants(ours), their_grants(theirs, grants));
  compare("the number of poll cores (poll.cores)", std::to_string(ours.cores),
          std::to_string(theirs.cores));
  compare("training.mode", training_mode(ours), training_mode(theirs));
  if (ours.selections > 0 && theirs.selections > 0) {
    const auto steps = [](std::uint32_t every) {
      return every == 0 ? std::string("never") : std::to_string(every);
    };
    compare("training.freshness", std::to_string(ours.selections - 1),
            std::to_string(theirs.selections - 1));
    compare("training.average_every", steps(ours.average_every), steps(theirs.average_every));
    if (ours.staleness > 0 && theirs.staleness > 0)
      compare("training.staleness", std::to_string(ours.staleness),
              std::to_string(theirs.staleness));
  }
  return text.empty() ? text : text + "make the files the same";
}

}  // namespace gradplane::session
