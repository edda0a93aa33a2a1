// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/lab/network.h"

#include <algorithm>
#include <cstring>

#include "dataplane/base/assert.h"

namespace gradplane::lab {
namespace {

constexpr std::uint16_t kEverybody = 0xffff;
// A host has one or two addresses. The limit keeps a host with many from using up the memory.
constexpr std::size_t kMaxMacs = 64 * kMaxHosts;

}  // namespace

Network::Network(const Description& description, std::size_t frames_in_flight)
    : rng_(description.seed),
      routes_(description),
      schedule_(description.schedule),
      memory_(new std::byte[frames_in_flight * kMaxFrameBytes]),
      slots_(frames_in_flight) {
  for (const HostDescription& host : description.hosts) {
    sites_of_hosts_.push_back(static_cast<std::uint16_t>(host.site_index));
    links_.push_back({host.name, true, Link(host.up), Link(host.down), {}});
  }
  for (const SiteLinkDescription& link : description.site_links) {
    links_.push_back({link.name, false, Link(link.forward), Link(link.backward), {}});
  }
  // Recently freed slots are used again first, while they are in the cache.
  for (std::size_t i = frames_in_flight; i > 0; --i) {
    free_slots_.push_back(static_cast<Slot>(i - 1));
  }
}

void Network::offer(std::size_t from_host, Instant at, std::span<const std::byte> frame) {
  GP_ASSERT(from_host < host_count());
  release_delivered();
  start_due_changes(at);
  if (frame.size() < kEthernetHeaderBytes || frame.size() > kMaxFrameBytes) {
    ++counters_.malformed;
    return;
  }
  if (free_slots_.empty()) {
    ++counters_.pool_exhausted;
    return;
  }
  const auto from = static_cast<std::uint16_t>(from_host);
  const std::uint64_t source = source_mac(frame);
  if (!is_group(source) && (hosts_by_mac_.size() < kMaxMacs || hosts_by_mac_.contains(source))) {
    hosts_by_mac_[source] = from;
  }
  const auto known = hosts_by_mac_.find(destination_mac(frame));
  const Slot slot = free_slots_.back();
  free_slots_.pop_back();
  slots_[slot] = {static_cast<std::uint16_t>(frame.size()), 1};
  std::memcpy(bytes(slot).data(), frame.data(), frame.size());
  Event event;
  event.slot = slot;
  event.from_host = from;
  event.to_host = known == hosts_by_mac_.end() ? kEverybody : known->second;
  event.site = sites_of_hosts_[from];
  pass(links_[from].first, event, at);
  release(slot);
}

void Network::forward(const Event& event) {
  const auto to = [&](std::uint16_t host) {
    Event next = event;
    next.to_host = host;
    const std::uint16_t site = sites_of_hosts_[host];
    if (site == event.site) {
      next.has_arrived = true;
      const Instant arrival = pass(links_[host].second, next, event.at);
      if (slots_[event.slot].bytes >= kDataFrameBytes) {
        Instant& last = links_[event.from_host].last_data_arrival;
        last = std::max(last, arrival);
      }
      return;
    }
    const Routes::Hop& hop = routes_.next(event.site, site);
    TwoWayLink& link = links_[host_count() + hop.link_index];
    next.site = static_cast<std::uint16_t>(hop.site_index);
    pass(hop.is_forward ? link.first : link.second, next, event.at);
  };
  if (event.to_host != kEverybody) {
    // A frame from a host to itself is not sent back.
    if (event.to_host != event.from_host) to(event.to_host);
  } else {
    for (std::uint16_t host = 0; host < host_count(); ++host) {
      if (host != event.from_host) to(host);
    }
  }
  release(event.slot);
}

Instant Network::pass(Link& link, Event event, Instant at) {
  const std::span<std::byte> frame = bytes(event.slot);
  const Passage passage = link.offer(at, frame.size(), is_ecn_capable(frame), rng_);
  if (passage.mark) mark_congestion(frame);
  for (std::size_t i = 0; i < passage.arrival_count; ++i) {
    event.at = passage.arrivals[i];
    event.sequence = sequence_++;
    ++slots_[event.slot].users;
    events_.push(event);
  }
  return passage.arrival_count > 0 ? passage.arrivals[0] : Instant{};
}

void Network::release(Slot slot) {
  if (--slots_[slot].users == 0) free_slots_.push_back(slot);
}

void Network::release_delivered() {
  for (const Slot slot : delivered_) release(slot);
  delivered_.clear();
}

Instant Network::next_event() const {
  Instant next = events_.empty() ? Instant::never() : events_.top().at;
  if (schedule_start_ != Instant::never() && changes_done_ < schedule_.size()) {
    next = std::min(next, schedule_start_ + schedule_[changes_done_].at);
  }
  return next;
}

void Network::start_schedule(Instant now) {
  schedule_start_ = now;
  changes_done_ = 0;
}

void Network::start_due_changes(Instant now) {
  if (schedule_start_ == Instant::never()) return;
  while (changes_done_ < schedule_.size() && schedule_start_ + schedule_[changes_done_].at <= now) {
    const ScheduledChange& due = schedule_[changes_done_++];
    TwoWayLink* link = find_link(due.link);
    GP_ASSERT(link != nullptr);
    set(*link, due.direction, due.change);
  }
}

TwoWayLink* Network::find_link(std::string_view name) {
  const auto found = std::ranges::find(links_, name, &TwoWayLink::name);
  return found == links_.end() ? nullptr : &*found;
}

void Network::set(TwoWayLink& link, Direction direction, const SettingsChange& change) {
  for (auto& [one, way] :
       {std::pair{Direction::kFirst, &link.first}, std::pair{Direction::kSecond, &link.second}}) {
    if (direction != one && direction != Direction::kBoth) continue;
    LinkSettings settings = way->settings();
    change.apply_to(settings);
    way->set(settings);
  }
}

void Network::reset_counters() {
  counters_ = {};
  for (TwoWayLink& link : links_) {
    link.first.reset_counters();
    link.second.reset_counters();
    link.last_data_arrival = {};
  }
}

}  // namespace gradplane::lab
