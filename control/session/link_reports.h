// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "control/protocol/node_messages.h"
#include "dataplane/api/plan.h"
#include "dataplane/base/time.h"

namespace gradplane::session {

/// Links of which a coordinator keeps samples: more than any network of a planner has links.
inline constexpr std::size_t kMaxLinkSamples = std::size_t{1} << 16;
/// After this time nobody counts on a sample. It may have been older when it was reported.
inline constexpr Duration kLinkSampleKept = Duration::seconds(300);

/// What the coordinator has heard of links, of every reporter. Pure.
class LinkReports {
 public:
  /// Takes what the member on `from` says of its incoming links. Returns how many samples it
  /// refuses: of links that no such member has, or beyond kMaxLinkSamples.
  std::size_t add(api::NodeId from, const protocol::ReportLinks& report, std::size_t nodes,
                  Instant now);
  /// All that is kept, with its age now.
  std::vector<protocol::LinkSample> samples(Instant now) const;
  /// Another number whenever a plan could be another one because of what was reported.
  std::uint64_t version() const { return version_; }
  void clear();

 private:
  struct Held {
    protocol::LinkSample sample;
    Instant heard_at;
  };
  void forget_old(Instant now);

  std::map<std::pair<api::NodeId, api::NodeId>, Held> held_;  // by sender and receiver
  std::uint64_t version_ = 0;
};

}  // namespace gradplane::session
