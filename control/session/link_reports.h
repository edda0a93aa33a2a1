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

/// The most links of which a coordinator keeps samples: as many as a planner's network may have.
inline constexpr std::size_t kMaxLinkSamples = std::size_t{1} << 16;
/// After this time a sample is forgotten. Planners of trees forget samples after some minutes. But
/// under a plan with selections a sample counts until its pair has its turn again.
inline constexpr Duration kLinkSampleKept = Duration::ms(protocol::kMaxLinkAgeMs);

/// A rate that has changed by more than this factor is a leap. Measurements differ by less.
inline constexpr double kLeap = 1.3;
/// Links change together, and links that nothing fills are measured some seconds after the others.
/// So planning waits until no rate has leapt for this time.
inline constexpr Duration kReportsCalm = Duration::ms(1500);
/// Planning waits at most this time after the first leap.
inline constexpr Duration kReportsSettle = Duration::seconds(5);
static_assert(kReportsCalm < kReportsSettle);

/// The samples of links that members have reported to the coordinator. Pure.
class LinkReports {
 public:
  /// Takes the samples that the member on `from` has of its incoming links. Returns how many were
  /// refused, because such a link cannot exist, or because there are kMaxLinkSamples already.
  std::size_t add(api::NodeId from, const protocol::ReportLinks& report, std::size_t nodes,
                  Instant now);
  /// All samples, with their present ages.
  std::vector<protocol::LinkSample> samples(Instant now) const;
  /// A number that changes whenever the samples have changed so much that a plan could.
  std::uint64_t version() const { return version_; }
  /// When most of the links that have changed together are known.
  Instant settled_at() const {
    return std::min(leapt_at_ + kReportsCalm, leaps_began_ + kReportsSettle);
  }

 private:
  struct Held {
    protocol::LinkSample sample;
    Instant heard_at;
  };
  void forget_old(Instant now);
  void note_leap(Instant now);

  std::map<std::pair<api::NodeId, api::NodeId>, Held> held_;  // by sender and receiver
  std::uint64_t version_ = 0;
  Instant leaps_began_ = Instant::from_ns(INT64_MIN / 4);  // first of the newest row of leaps
  Instant leapt_at_ = leaps_began_;
};

}  // namespace gradplane::session
