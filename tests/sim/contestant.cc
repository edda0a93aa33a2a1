// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/contestant.h"

#include <algorithm>

namespace gradplane::sim::incast {
namespace {

constexpr std::string_view kGrants = "grants";
constexpr std::string_view kGrantsAnd = "grants+";
constexpr std::string_view kMltcp = "+mltcp";

}  // namespace

bool choose(std::string_view name, Scenario& scenario) {
  if (name == kGrants) return true;
  const bool grants = name.starts_with(kGrantsAnd);
  if (grants) name.remove_prefix(kGrantsAnd.size());
  const bool mltcp = name.ends_with(kMltcp);
  if (mltcp) name.remove_suffix(kMltcp.size());
  const auto found = std::find(kControllerNames.begin(), kControllerNames.end(), name);
  if (found == kControllerNames.end()) return false;
  CongestionSettings settings;
  settings.controller = static_cast<ControllerKind>(found - kControllerNames.begin());
  settings.rate_bits_per_second = scenario.link_bits_per_second / scenario.senders.size();
  if (mltcp) settings.mltcp = MltcpFunction{};
  scenario.grants = grants;
  scenario.congestion = settings;
  return true;
}

}  // namespace gradplane::sim::incast
