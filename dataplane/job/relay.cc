// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/relay.h"

#include <algorithm>
#include <cstring>

#include "dataplane/base/assert.h"

namespace gradplane::job {

std::optional<RoutePlace> place_on_route(const wire::BlockPacket& packet, std::uint16_t self,
                                         std::uint16_t from) {
  const auto& route = packet.extension.route;
  const std::uint8_t next = packet.extension.route_next;
  const std::uint16_t sender = packet.envelope->sender;
  if (route.size() < 2 || route.size() > kMaxRelays + 1 || next >= route.size())
    return std::nullopt;
  const std::uint16_t before = next == 0 ? sender : route[next - 1U];
  if (route[next] != self || before != from) return std::nullopt;
  for (std::size_t i = 0; i < route.size(); ++i) {
    if (route[i] == sender || route[i] >= kMaxNodes) return std::nullopt;
    for (std::size_t k = 0; k < i; ++k) {
      if (route[k] == route[i]) return std::nullopt;
    }
  }
  return RoutePlace{.next = next, .is_end = next + 1U == route.size()};
}

namespace {

/// The sender and the nodes of a route as one number. The number is unique, because a place without
/// a node gets a number that no node has.
template <typename Nodes>
std::uint64_t key_of(std::uint16_t sender, const Nodes& nodes) {
  constexpr int kNodeBits = 16;
  std::uint64_t key = sender;
  for (std::size_t i = 0; i <= kMaxRelays; ++i) {
    key = key << kNodeBits | (i < nodes.size() ? nodes[i] : UINT16_MAX);
  }
  return key;
}
static_assert(kMaxNodes <= UINT16_MAX);

}  // namespace

RouteTable::RouteTable(const PlanConfig& plan, std::uint16_t self) {
  for (const RouteConfig& route : plan.routes) {
    GP_ASSERT(route.nodes.size() >= 2 && route.nodes.size() <= kMaxRelays + 1);
    GP_ASSERT(route.path > hop::kDirectPath && route.path <= kMaxRoutes);
    entries_.push_back({key_of(route.from, route.nodes), route.path});
    note_neighbours(route, self);
    if (route.from != self) continue;
    Own own{.to = route.nodes.back(), .route = {}};
    own.route.size = static_cast<std::uint8_t>(route.nodes.size());
    std::copy(route.nodes.begin(), route.nodes.end(), own.route.nodes.begin());
    own_.push_back(own);
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.key < b.key; });
}

void RouteTable::note_neighbours(const RouteConfig& route, std::uint16_t self) {
  std::vector<std::uint16_t> all = route.nodes;
  all.insert(all.begin(), route.from);
  const auto at = std::find(all.begin(), all.end(), self);
  GP_ASSERT(at != all.end());
  const auto note = [this](std::uint16_t node) {
    const auto known = std::find(neighbours_.begin(), neighbours_.end(), node);
    if (known == neighbours_.end()) neighbours_.push_back(node);
  };
  if (at != all.begin()) note(*(at - 1));
  if (at + 1 != all.end()) note(*(at + 1));
  relays_ = relays_ || (at != all.begin() && at + 1 != all.end());
}

std::optional<std::uint8_t> RouteTable::path_of(std::uint16_t sender,
                                                const wire::Numbers<std::uint16_t>& route) const {
  const Key key = key_of(sender, route);
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), key,
                                   [](const Entry& entry, Key k) { return entry.key < k; });
  if (at == entries_.end() || at->key != key) return std::nullopt;
  return at->path;
}

std::vector<hop::Route> RouteTable::routes_to(std::uint16_t to) const {
  std::vector<hop::Route> routes;
  for (const Own& own : own_) {
    if (own.to == to) routes.push_back(own.route);
  }
  return routes;
}

const hop::Route* RouteTable::route_to(std::uint16_t to, std::size_t number) const {
  for (const Own& own : own_) {
    if (own.to == to && number-- == 0) return &own.route;
  }
  return nullptr;
}

RelayQueue::RelayQueue(std::size_t packet_bytes)
    : packet_bytes_(packet_bytes),
      bytes_(packet_bytes * kSlots),
      waiting_(packet_bytes == 0 ? 1 : kSlots) {}

bool RelayQueue::push(const wire::Envelope& envelope, std::span<const std::byte> packet,
                      std::uint16_t to, std::uint8_t next) {
  if (packet.size() > packet_bytes_) return false;
  const bool has_room = waiting_.push({.envelope = envelope,
                                       .to = to,
                                       .next = next,
                                       .slot = next_slot_,
                                       .length_bytes = static_cast<std::uint32_t>(packet.size())});
  if (!has_room) return false;
  std::memcpy(bytes_.data() + next_slot_ * packet_bytes_, packet.data(), packet.size());
  next_slot_ = (next_slot_ + 1) % kSlots;
  return true;
}

}  // namespace gradplane::job
