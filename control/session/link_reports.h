// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
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
/// After this time a sample is forgotten. Planners of trees count on none of some minutes ago.
/// Where a plan has selections, a sample counts until its pair has its turn again.
inline constexpr Duration kLinkSampleKept = Duration::ms(protocol::kMaxLinkAgeMs);

/// A rate that has changed by more than this factor is a leap. Measurements differ by less.
inline constexpr double kLeap = 1.3;
/// Links change together, and those that nobody fills are measured some seconds after the others.
/// So nobody plans until no rate has leapt for so long,
inline constexpr Duration kReportsCalm = Duration::ms(1500);
/// or so long after the first leap.
inline constexpr Duration kReportsSettle = Duration::seconds(5);
static_assert(kReportsCalm < kReportsSettle);

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
  /// When most of the links that have changed together are known.
  Instant settled_at() const {
    return std::min(leapt_at_ + kReportsCalm, leaps_began_ + kReportsSettle);
  }
  void clear();

 private:
  struct Held {
    protocol::LinkSample sample;
    Instant heard_at;
  };
  void forget_old(Instant now);
  void note_leap(Instant now);

  std::map<std::pair<api::NodeId, api::NodeId>, Held> held_;  // by sender and receiver
  std::uint64_t version_ = 0;
  Instant leaps_began_ = Instant::from_ns(INT64_MIN / 4);  // the newest that follow each other
  Instant leapt_at_ = leaps_began_;
};

}  // namespace gradplane::session
