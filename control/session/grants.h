// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <string>

#include "dataplane/api/plan.h"
#include "dataplane/model/limits.h"

/// Decides whether a job has grants under `grants.enabled: auto`. Pure.
namespace gradplane::session {

/// With fewer senders to a node, even shares of its link are as fast as grants, or faster
/// (decision 0047).
inline constexpr std::size_t kFewestSendersOfGrants = 80;
/// The most sources for which `auto` uses places of a node's scheduler. The other half is for
/// further plans, which may bring as many peers again before the plan before has ended.
inline constexpr std::size_t kMostAutoSources = kMaxGrantSources / 2;
static_assert(kMostAutoSources > kMaxNodes, "one job of all nodes fits");

/// The number of nodes that send blocks to the node of the plan to which the most do.
std::size_t most_senders(const api::Plan& plan);

/// What is known of a job when its first plan has been made.
struct GrantCase {
  std::size_t senders = 0;        // most_senders() of its plan
  std::size_t other_sources = 0;  // at a node, of other jobs with grants: at most so many
  bool has_one_tree = true;       // otherwise even shares are faster with any number of senders
  bool needs_soundings = false;   // nothing is sounded where receivers grant
  std::string exclusion = {};     // what the file of a node says against grants; empty: nothing
};

/// Why grants gain nothing in this case, or are not possible; empty: they pay.
std::string why_no_grants(const GrantCase& known);

}  // namespace gradplane::session
