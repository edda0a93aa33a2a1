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

/// Keeps the port in the groups of the plans that it may get results of, where multicast is
/// configured. A group that the port cannot join costs nothing but the gain: the parent finds out
/// that nobody hears it, and sends unicast. Control thread.
class GroupMembership {
 public:
  GroupMembership(const config::Config& config, port::Port& port) : config_(config), port_(port) {}

  /// Joins what the plans of the table need and leaves the rest, if the plans have changed since
  /// the last call. Gives what to warn of: once, until all is joined again.
  std::optional<std::string> follow(const JobTable& jobs);

  /// Leaves all of them for good, because the daemon ends. The port tells the network in its next
  /// turn.
  void leave_all();

  std::size_t joined_count() const { return joined_.size(); }

 private:
  /// Two names may share an address, so what counts is the set.
  std::set<port::Group> groups_of(const JobTable& jobs) const;
  std::uint16_t udp_port_of(const InstalledJob& job, const GroupName& name) const;

  const config::Config& config_;
  port::Port& port_;
  std::set<port::Group> joined_;
  std::uint64_t plans_revision_ = 0;  // of the table, that joined_ is about
  bool has_warned_ = false;
};

}  // namespace gradplane::daemon
