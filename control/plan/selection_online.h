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

/// Receiver selection under bounded staleness (SELMCAST, section V): ranks end their rounds at
/// different times, so receivers are selected whenever a rank has an update ready, among the
/// multicasts that are under way. A multicast may lose receivers by that, and never gets any.
namespace gradplane::plan {

/// A multicast that is under way, or one that begins now.
struct Multicast {
  std::size_t from = 0;
  /// Who has the update or may still get it: when it begins, all other ranks that live.
  Bitmap receivers;
  std::vector<std::uint64_t> remaining_bytes;  // by rank; 0 for one that has the update
  /// For how long staleness would keep the sender from its next round if this ended now.
  double blocked_s = 0;
  /// Another rank waits for the sender, or soon will (Staleness::is_awaited).
  bool is_awaited = false;
};

struct OnlineRequest {
  /// Freshness counts the rounds of the sender.
  SelectionRequest selection;
  /// A receiver may be dropped while at least this share of the update remains to be sent to it:
  /// what has been sent to a dropped one is wasted. Not for select_at_random.
  double droppable_share = 0.75;
  /// How many times as long as with its least receivers a multicast may take to have more of them.
  /// At least 1. Not for the published algorithm.
  double stretch = 1.2;
};

/// How urgent a multicast is. More urgent ones have strict priority on each link.
enum class Urgency : std::uint8_t {
  kAwaited,  // others wait for its sender
  kNormal,
  kAhead,  // its sender would have to wait anyway
};

struct OnlineSelection {
  Bitmap receivers;    // some of those that the multicast had
  double seconds = 0;  // from now until it should be done
  Urgency urgency = Urgency::kNormal;
};

/// For each multicast its receivers from now on. Multicasts of one urgency share the links fairly
/// (max-min); no other priorities are needed. Each has its least number of receivers, as far as it
/// may still have them, and gets more as long as all multicasts remain within their times.
/// A rank sends one multicast at a time.
std::vector<OnlineSelection> select_online(const OnlineRequest& request,
                                           std::span<const Multicast> multicasts,
                                           const Meetings& meetings);

/// The algorithm as published, for comparison. On each link a multicast with less time goes first.
std::vector<OnlineSelection> select_online_as_published(const OnlineRequest& request,
                                                        std::span<const Multicast> multicasts,
                                                        const Meetings& meetings);

/// The receivers that freshness demands, and others at random up to request.receivers (Orpheus),
/// for a multicast that begins.
Bitmap select_online_at_random(const SelectionRequest& request, const Multicast& multicast,
                               const Meetings& meetings,
                               const std::function<std::uint64_t()>& draw);

}  // namespace gradplane::plan
