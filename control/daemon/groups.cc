// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/groups.h"

#include <fmt/format.h>

#include "dataplane/engine/local_plan.h"
#include "dataplane/port/group_address.h"

namespace gradplane::daemon {

/// The UDP port of the core that carries the group's tree.
std::uint16_t GroupMembership::udp_port_of(const InstalledJob& job, const GroupName& name) const {
  for (const JobPart& part : job.parts) {
    if (!part.runtime->job().config().core.has_tree(name.tree)) continue;
    return static_cast<std::uint16_t>(config_.cluster.udp_port + part.core);
  }
  return config_.cluster.udp_port;
}

std::optional<std::string> GroupMembership::follow(const JobTable& jobs) {
  if (!config_.multicast.enabled) return std::nullopt;
  if (jobs.plans_revision() == plans_revision_) return std::nullopt;
  plans_revision_ = jobs.plans_revision();
  const std::set<port::Group> wanted = groups_of(jobs);
  // Leave first, so that there is room.
  std::erase_if(joined_, [&](const port::Group& group) {
    if (wanted.contains(group)) return false;
    port_.leave_group(group);
    return true;
  });
  std::string why;
  std::size_t missing = 0;
  for (const port::Group& group : wanted) {
    if (joined_.contains(group)) continue;
    const Status joined = port_.join_group(group);
    if (joined) {
      joined_.insert(group);
    } else {
      if (missing++ == 0) why = joined.error().message;
    }
  }
  if (missing == 0) has_warned_ = false;
  if (missing == 0 || has_warned_) return std::nullopt;
  has_warned_ = true;
  return fmt::format("{} of {} groups cannot be joined, so what goes to them comes by unicast: {}",
                     missing, wanted.size(), why);
}

void GroupMembership::leave_all() {
  for (const port::Group& group : joined_) port_.leave_group(group);
  joined_.clear();
}

std::set<port::Group> GroupMembership::groups_of(const JobTable& jobs) const {
  std::set<port::Group> groups;
  for (const InstalledJob& job : jobs.installed()) {
    if (job.grants) continue;  // its packets go to one node each
    for (const api::Plan* plan : live_plans(job)) {
      const std::size_t cores = job.parts.size();
      for (const GroupName& name : engine::groups_of(*plan, job.id, config_.self, cores)) {
        groups.insert(port::group_of(name, config_.multicast.range, udp_port_of(job, name)));
      }
    }
  }
  return groups;
}

}  // namespace gradplane::daemon
