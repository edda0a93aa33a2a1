// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/base/time.h"

namespace gradplane::session {

/// How long a plan waits for nodes without ranks to answer. Nodes that have not answered by then
/// are left out of it.
inline constexpr Duration kRelayGrace = Duration::ms(500);

/// Which of the nodes that may sum without ranks answer the coordinator. It asks them while it has
/// jobs. Pure.
class Relays {
 public:
  /// `self` needs no answer.
  Relays(const std::vector<api::NodeId>& nodes, api::NodeId self)
      : nodes_(nodes.begin(), nodes.end()) {
    nodes_.erase(self);
  }

  /// The coordinator has its first job, and asks the nodes from now on. Earlier answers do not
  /// count, because nobody has watched since then whether they were lost.
  void watch(Instant now);
  /// The node answers.
  void on_connected(api::NodeId node);
  void on_lost(api::NodeId node);

  /// When plans need not wait any more: all nodes answer, or kRelayGrace is over.
  Instant settled_at() const { return silent_.empty() ? Instant() : settled_at_; }
  /// The nodes that do not answer.
  const std::set<api::NodeId>& silent() const { return silent_; }
  const std::set<api::NodeId>& nodes() const { return nodes_; }
  /// A number that changes whenever a plan could change.
  std::uint64_t version() const { return version_; }

 private:
  std::set<api::NodeId> nodes_;
  std::set<api::NodeId> silent_;
  Instant settled_at_;
  std::uint64_t version_ = 0;
};

}  // namespace gradplane::session
