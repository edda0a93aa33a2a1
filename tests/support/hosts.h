// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/aggregate/gather.h"
#include "dataplane/job/job_config.h"

namespace gradplane::testing {

/// The sources of a gathering in a star, where each child is one host.
inline std::vector<aggregate::GatherSource> hosts_as_sources(std::vector<std::uint16_t> nodes) {
  std::vector<aggregate::GatherSource> sources;
  for (const std::uint16_t node : nodes) {
    const auto host = static_cast<std::uint16_t>(sources.size());
    sources.push_back({.hosts = {{.node = node, .host = host}}});
  }
  return sources;
}

/// Names the hosts of a job with one tree, of which the configuration only says how many ranks are
/// below each child: this node, one host for each child, and one host for all other ranks.
inline void name_hosts(job::JobConfig& config) {
  constexpr std::uint16_t kElsewhere = 0xfffe;
  std::uint16_t left = config.world_size;
  const auto add = [&](std::uint16_t node, std::size_t ranks) {
    config.hosts.push_back({.node = node, .ranks = static_cast<std::uint16_t>(ranks)});
    left = static_cast<std::uint16_t>(left - ranks);
    return static_cast<std::uint16_t>(config.hosts.size() - 1);
  };
  if (!config.local_ranks.empty()) add(config.self, config.local_ranks.size());
  for (aggregate::ChildConfig& child : config.trees[0].children) {
    child.hosts = {add(config.peers[child.peer.index()].node, child.ranks)};
  }
  if (left > 0) add(kElsewhere, left);
}

}  // namespace gradplane::testing
