// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "control/protocol/node_messages.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/time.h"

namespace gradplane::session {

/// The shortest time between two reports of a node.
inline constexpr Duration kLinkReportInterval = Duration::ms(500);
/// A value is reported when it has changed by more than this part of itself.
inline constexpr double kLinkReportChange = 0.1;
/// A value that was measured again without a change is reported after this time.
inline constexpr Duration kLinkConfirmAfter = Duration::seconds(10);

/// Whether two samples of a link differ so much that a plan could differ.
bool differs(const protocol::LinkSample& a, const protocol::LinkSample& b);

/// Chooses which samples of its incoming links a node reports to the coordinator. Pure.
class LinkReporter {
 public:
  /// `samples` are the present samples, at most one of each sender. Returns those that are due, at
  /// most kMaxReportedLinks. Those that were reported longest ago come first.
  std::vector<protocol::LinkSample> select(std::span<const protocol::LinkSample> samples,
                                           Instant now);
  /// Forgets what was reported, because a new coordinator does not know it.
  void forget() { reported_.clear(); }

 private:
  struct Reported {
    protocol::LinkSample sample;
    Instant at;
  };
  bool is_due(const protocol::LinkSample& sample, Instant now) const;

  std::map<api::NodeId, Reported> reported_;  // by sender
  Instant next_;
};

}  // namespace gradplane::session
