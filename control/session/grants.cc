// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/grants.h"

#include <algorithm>
#include <map>
#include <set>

namespace gradplane::session {

std::size_t most_senders(const api::Plan& plan) {
  // Pushes go up every edge of a tree and results go down, so both ends send.
  std::map<api::NodeId, std::set<api::NodeId>> senders;
  for (const api::Tree& tree : plan.trees) {
    for (std::size_t m = 0; m < plan.members.size(); ++m) {
      if (tree.parent[m] == api::kNoNode) continue;
      senders[tree.parent[m]].insert(plan.members[m].node);
      senders[plan.members[m].node].insert(tree.parent[m]);
    }
  }
  std::size_t most = 0;
  for (const auto& [node, of_node] : senders) most = std::max(most, of_node.size());
  return most;
}

std::string why_no_grants(const GrantCase& known) {
  if (known.senders < kFewestSendersOfGrants)
    return "fewer than " + std::to_string(kFewestSendersOfGrants) + " nodes send to one";
  if (!known.exclusion.empty()) return known.exclusion;
  if (!known.has_one_tree) return "its plan has several trees";
  if (known.needs_soundings) return "its plan follows the network, which soundings measure";
  if (known.senders + known.other_sources > kMostAutoSources)
    return "other jobs with grants have taken the places for senders";
  return {};
}

}  // namespace gradplane::session
