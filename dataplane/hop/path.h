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

/// The ways on which blocks go to one peer: straight, which is path 0, over an auxiliary route, or
/// in a packet to a group that the peer is in.
namespace gradplane::hop {

inline constexpr std::size_t kDirectPath = 0;
/// The peer's copy of what goes to a group ends in the same link as what goes straight, so the two
/// share a window. But the network may copy late, or not at all: what comes on one of the two says
/// nothing of what is lost on the other.
inline constexpr std::size_t kGroupPath = kMaxRoutes + 1;
static_assert(kGroupPath < kMaxPaths);
/// Whose window a path has.
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

/// A number of blocks that were in flight: in all, and over which routes.
struct PathBlocks {
  std::uint32_t all = 0;
  std::array<std::uint32_t, kMaxRoutes> over_route{};
  std::uint32_t to_group = 0;  // of those on the direct path

  /// Most callers ask for the sum alone.
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

/// How long a route rests after its blocks were not answered. The time doubles while that goes on.
inline constexpr Duration kFirstRouteRest = Duration::ms(100);
inline constexpr Duration kMaxRouteRest = Duration::seconds(5);

/// What a node knows of one auxiliary route to a peer. It has a window of its own, so blocks on it
/// neither overrun its relays nor take from the direct path.
struct Detour {
  Flow flow;
  Instant heard_at = {};     // when the peer last told of blocks that came over it, or it was idle
  Instant rests_until = {};  // nothing goes over it before
  Duration rest = kFirstRouteRest;

  void on_heard(Instant now) {
    heard_at = now;
    rest = kFirstRouteRest;
  }
  /// The route has other relays from now on: what was measured is of another way. The window stays,
  /// as it does when a path changes.
  void on_other_way() {
    flow.forget_way();
    rests_until = {};
    rest = kFirstRouteRest;
  }
  /// Its blocks are taken as lost: a relay may be dead, and no later block would prove it.
  void on_silence(Instant now) {
    heard_at = now;
    rests_until = now + rest;
    rest = std::min(rest * 2, kMaxRouteRest);
    flow.on_silence(now);
  }
};

/// How long the last of `queued` blocks waits until the flow lets it go, as far as is known.
inline Duration wait_of(const Flow& flow, std::uint32_t queued) {
  return flow.smoothed_rtt() * std::int64_t{queued} / std::int64_t{flow.window()};
}

/// Whether a block should take a route while the direct path has no room: the last of the `queued`
/// blocks would wait for the direct path longer than a block takes over the whole route, together
/// with twice the wait of what is queued for the route's first relay. This is NetStorm's rule
/// (arXiv 2404.11352) in time instead of messages: there the direct queue must be longer than 2 L,
/// and that of the first relay shorter than L. A route that was never measured counts as no longer
/// than the direct path, so it is tried.
inline bool is_worth_a_route(const Flow& direct, std::uint32_t queued, const Flow& route,
                             Duration wait_of_relay) {
  if (direct.smoothed_rtt() <= Duration{}) return false;
  const bool is_known = route.smoothed_rtt() > Duration{};
  const Duration over_route = is_known ? route.smoothed_rtt() : direct.smoothed_rtt();
  return wait_of(direct, queued) > wait_of_relay * 2 + over_route;
}

/// After so long without an answer the blocks on a route count as lost.
inline Duration route_timeout(const Flow& direct, const Flow& route) {
  return std::max(direct.probe_timeout(), route.probe_timeout()) * 2;
}

}  // namespace gradplane::hop
