// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "control/plan/selection.h"
#include "dataplane/base/bitmap.h"

/// Receiver selection under bounded staleness (SELMCAST, section V). Ranks end their rounds at
/// different times, so whenever a rank has an update ready, the receivers of all multicasts under
/// way are selected anew. A multicast under way may lose receivers by that, but gets no new ones.
namespace gradplane::plan {

/// A multicast that is under way, or one that begins now.
struct Multicast {
  std::size_t from = 0;
  /// The ranks that have the update or may still get it. When it begins: all other live ranks.
  Bitmap receivers;
  std::vector<std::uint64_t> remaining_bytes;  // by rank; 0 for one that has the update
  /// If this ended now, how long the staleness bound would keep the sender from its next round.
  double blocked_s = 0;
  /// Another rank waits for the sender, or soon will (Staleness::is_awaited).
  bool is_awaited = false;
};

struct OnlineRequest {
  /// Freshness counts the rounds of the sender.
  SelectionRequest selection;
  /// A receiver may be dropped only while at least this share of the update remains to be sent to
  /// it, because what a dropped receiver has got is wasted. Not for select_online_at_random().
  double droppable_share = 0.75;
  /// To have more receivers, a multicast may take so many times as long as with the fewest. At
  /// least 1. Not for the published algorithm.
  double stretch = 1.2;
};

/// How urgent a multicast is. More urgent ones have strict priority on each link.
enum class Urgency : std::uint8_t {
  kAwaited,  // another rank waits for its sender
  kNormal,
  kAhead,  // its sender would have to wait at the end
};

struct OnlineSelection {
  Bitmap receivers;    // a subset of those that the multicast had
  double seconds = 0;  // from now until it should be done
  Urgency urgency = Urgency::kNormal;
};

/// The receivers of each multicast from now on. Multicasts of one urgency share the links fairly
/// (max-min), so they need no other priorities. Each has its least number of receivers, if so many
/// are left, and gets more as long as all multicasts remain within their times. A rank sends one
/// multicast at a time.
std::vector<OnlineSelection> select_online(const OnlineRequest& request,
                                           std::span<const Multicast> multicasts,
                                           const Meetings& meetings);

/// The algorithm as published, for comparison. On each link the multicast with less time goes
/// first.
std::vector<OnlineSelection> select_online_as_published(const OnlineRequest& request,
                                                        std::span<const Multicast> multicasts,
                                                        const Meetings& meetings);

/// The receivers of a multicast that begins: those that freshness demands, and random ones up to
/// request.receivers (Orpheus).
Bitmap select_online_at_random(const SelectionRequest& request, const Multicast& multicast,
                               const Meetings& meetings,
                               const std::function<std::uint64_t()>& draw);

}  // namespace gradplane::plan
