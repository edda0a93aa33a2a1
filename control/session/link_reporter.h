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

/// Between two reports of a node.
inline constexpr Duration kLinkReportInterval = Duration::ms(500);
/// A value is reported when it has changed by more than this part of itself.
inline constexpr double kLinkReportChange = 0.1;
/// Or when it was measured again, and so long after it was reported last.
inline constexpr Duration kLinkConfirmAfter = Duration::seconds(10);

/// Whether somebody who plans with the one sample should hear of the other.
bool differs(const protocol::LinkSample& a, const protocol::LinkSample& b);

/// Chooses which samples of its incoming links a node reports to the coordinator. Pure.
class LinkReporter {
 public:
  /// `samples` are those of now, of each sender at most one. Returns those that are to be sent now:
  /// the ones that were reported longest ago first, and at most kMaxReportedLinks.
  std::vector<protocol::LinkSample> select(std::span<const protocol::LinkSample> samples,
                                           Instant now);
  /// Whoever coordinates knows nothing of what was reported.
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
