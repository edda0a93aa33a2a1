// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "control/config/config.h"
#include "control/daemon/jobs.h"
#include "dataplane/port/port.h"

namespace gradplane::daemon {

/// Joins the groups from which the plans of jobs bring results or updates, where multicast is
/// configured, and leaves the others. If the port cannot join a group, only the gain is lost: the
/// sender finds out that this node does not hear the group, and sends unicast. Control thread.
class GroupMembership {
 public:
  GroupMembership(const config::Config& config, port::Port& port) : config_(config), port_(port) {}

  /// If plans have changed since the last call, joins the groups that the plans of the table need
  /// and leaves the others. Returns a warning if a group cannot be joined: one, until all groups
  /// could be joined again.
  std::optional<std::string> follow(const JobTable& jobs);

  /// Leaves all groups for good, because the daemon ends. The port tells the network at its next
  /// poll.
  void leave_all();

  std::size_t joined_count() const { return joined_.size(); }

 private:
  /// The addresses of all groups. It is a set, because two names may have the same address.
  std::set<port::Group> groups_of(const JobTable& jobs) const;
  std::uint16_t udp_port_of(const InstalledJob& job, const GroupName& name) const;

  const config::Config& config_;
  port::Port& port_;
  std::set<port::Group> joined_;
  std::uint64_t plans_revision_ = 0;  // the JobTable's, for which joined_ was made
  bool has_warned_ = false;
};

}  // namespace gradplane::daemon
