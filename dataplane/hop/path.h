// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/time.h"
#include "dataplane/hop/flow.h"
#include "dataplane/model/limits.h"
#include "dataplane/wire/extension.h"

/// The paths of blocks to one peer: the direct path, which is path 0, an auxiliary route, or
/// packets to a group that the peer is in.
namespace gradplane::hop {

inline constexpr std::size_t kDirectPath = 0;
/// The peer's copy of a packet to a group ends on the same link as a direct packet, so the two
/// paths share a window. But the network may deliver to the group late, or not at all. So an
/// arrival on one of the two paths tells nothing of losses on the other.
inline constexpr std::size_t kGroupPath = kMaxRoutes + 1;
static_assert(kGroupPath < kMaxPaths);
/// The path whose window this path uses.
constexpr std::size_t flow_path(std::size_t path) {
  return path == kGroupPath ? kDirectPath : path;
}

/// The nodes that a packet visits after its sender, the receiver last.
struct Route {
  std::array<std::uint16_t, kMaxRelays + 1> nodes{};
  std::uint8_t size = 0;

  std::span<const std::uint16_t> span() const { return {nodes.data(), size}; }
  std::uint16_t first_relay() const { return nodes[0]; }
  bool operator==(const Route&) const = default;
};
static_assert(kMaxRelays + 1 <= wire::kMaxRouteNodes);
static_assert(wire::route_words(kMaxRelays + 1) * wire::kExtensionWordBytes <= coverage_bytes(1),
              "a route fits every block that has no coverage set");

/// A number of blocks that were in flight: in all, and on each route.
struct PathBlocks {
  std::uint32_t all = 0;
  std::array<std::uint32_t, kMaxRoutes> over_route{};
  std::uint32_t to_group = 0;  // blocks sent to the group; part of direct()

  /// Most callers need only the sum.
  operator std::uint32_t() const { return all; }  // NOLINT(google-explicit-constructor)
  std::uint32_t direct() const {
    std::uint32_t blocks = all;
    for (const std::uint32_t routed : over_route) blocks -= routed;
    return blocks;
  }
  PathBlocks& operator+=(const PathBlocks& other) {
    all += other.all;
    to_group += other.to_group;
    for (std::size_t r = 0; r < kMaxRoutes; ++r) over_route[r] += other.over_route[r];
    return *this;
  }
};

/// The time for which a route rests after its blocks were not answered. It doubles while that goes
/// on.
inline constexpr Duration kFirstRouteRest = Duration::ms(100);
inline constexpr Duration kMaxRouteRest = Duration::seconds(5);

/// What a node knows of one auxiliary route to a peer. The route has its own window, so blocks on
/// it neither overrun its relays nor use the window of the direct path.
struct Detour {
  Flow flow;
  // When the peer last acked blocks of this route, or the route was last idle.
  Instant heard_at = {};
  Instant rests_until = {};  // no block takes the route before this time
  Duration rest = kFirstRouteRest;

  void on_heard(Instant now) {
    heard_at = now;
    rest = kFirstRouteRest;
  }
  /// The route has other relays from now on, so what was measured belongs to another path. The
  /// window stays, as it does whenever a path changes.
  void on_other_way() {
    flow.forget_way();
    rests_until = {};
    rest = kFirstRouteRest;
  }
  /// The route's blocks count as lost. A relay may be dead, and then no later block would prove
  /// their loss.
  void on_silence(Instant now) {
    heard_at = now;
    rests_until = now + rest;
    rest = std::min(rest * 2, kMaxRouteRest);
    flow.on_silence(now);
  }
};

/// The time until the flow lets the last of `queued` blocks go, as far as is known.
inline Duration wait_of(const Flow& flow, std::uint32_t queued) {
  return flow.smoothed_rtt() * std::int64_t{queued} / std::int64_t{flow.window()};
}

/// Whether a block should take a route while the direct path has no room: the last of the `queued`
/// blocks would wait for the direct path longer than a block takes over the whole route, plus twice
/// the time that blocks for the route's first relay wait. NetStorm (arXiv 2404.11352) has such a
/// rule, but compares the lengths of queues in messages. A route that was never measured counts as
/// no longer than the direct path, so it is tried.
inline bool is_worth_a_route(const Flow& direct, std::uint32_t queued, const Flow& route,
                             Duration wait_of_relay) {
  if (direct.smoothed_rtt() <= Duration{}) return false;
  const bool is_known = route.smoothed_rtt() > Duration{};
  const Duration over_route = is_known ? route.smoothed_rtt() : direct.smoothed_rtt();
  return wait_of(direct, queued) > wait_of_relay * 2 + over_route;
}

/// Blocks on a route count as lost after this time without an answer.
inline Duration route_timeout(const Flow& direct, const Flow& route) {
  return std::max(direct.probe_timeout(), route.probe_timeout()) * 2;
}

}  // namespace gradplane::hop
