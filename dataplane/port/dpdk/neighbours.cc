// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/neighbours.h"

#include <algorithm>

#include "dataplane/base/assert.h"
#include "dataplane/port/dpdk/frame_fields.h"

namespace gradplane::port {
namespace {

std::uint32_t prefix_mask(std::uint8_t prefix_length) {
  return prefix_length == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix_length);
}

// A multiply-and-shift hash. The seed keeps others from filling one set on purpose.
std::size_t set_index(Ipv4 address, std::uint64_t seed) {
  std::uint64_t x = (address.value ^ seed) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return static_cast<std::size_t>(x >> 32) % kNeighbourSets;
}

}  // namespace

Neighbours::Neighbours(const SubnetOptions& options)
    : options_(options),
      mask_(prefix_mask(options.prefix_length)),
      entries_(std::make_unique<Entry[]>(kNeighbourSets * kNeighbourWays)) {
  GP_ASSERT(options.prefix_length <= 32);
}

bool Neighbours::on_subnet(Ipv4 address) const noexcept {
  if ((address.value & mask_) != (options_.address.value & mask_)) return false;
  if (address == options_.address || !is_host_address(address)) return false;
  // A /31 or /32 has no network and broadcast address of its own (RFC 3021).
  if (options_.prefix_length >= 31) return true;
  return (address.value & ~mask_) != 0 && (address.value | mask_) != ~std::uint32_t{0};
}

std::optional<Ipv4> Neighbours::next_hop(Ipv4 destination) const noexcept {
  if (on_subnet(destination)) return destination;
  if ((destination.value & mask_) == (options_.address.value & mask_)) return std::nullopt;
  if (options_.gateway.value == 0 || !is_host_address(destination)) return std::nullopt;
  return options_.gateway;
}

std::span<Neighbours::Entry> Neighbours::set_of(Ipv4 address) noexcept {
  const std::size_t set = set_index(address, options_.hash_seed);
  return {entries_.get() + set * kNeighbourWays, kNeighbourWays};
}

Neighbours::Entry* Neighbours::find(Ipv4 address) noexcept {
  for (Entry& e : set_of(address)) {
    if (e.state != State::kFree && e.address == address) return &e;
  }
  return nullptr;
}

// Takes a free place, or else the least recently used one. An address that only another station
// wants us to know does not replace one to which we have sent lately.
Neighbours::Entry* Neighbours::claim(Ipv4 address, bool wanted, Instant now) noexcept {
  const std::span<Entry> set = set_of(address);
  Entry* place = &*std::min_element(set.begin(), set.end(), [](const Entry& a, const Entry& b) {
    if ((a.state == State::kFree) != (b.state == State::kFree)) return a.state == State::kFree;
    return a.used_at < b.used_at;
  });
  const bool in_use = place->state != State::kFree && now - place->used_at < kNeighbourFresh;
  if (in_use && !wanted) return nullptr;
  *place = Entry{};
  place->address = address;
  place->used_at = wanted ? now : now - kNeighbourForgotten;
  return place;
}

void Neighbours::set_deadline(Entry& entry, Instant deadline) noexcept {
  entry.deadline = deadline;
  next_deadline_ = std::min(next_deadline_, deadline);
}

void Neighbours::set_known(Entry& entry, const MacAddress& mac, Instant now) noexcept {
  entry.mac = mac;
  entry.confirmed_at = now;
  entry.attempts = 0;
  if (entry.state == State::kKnown) return;  // its deadline is checked again when it comes
  entry.state = State::kKnown;
  set_deadline(entry, now + kNeighbourFresh);
}

const MacAddress* Neighbours::resolve(Ipv4 next_hop, Instant now) noexcept {
  Entry* e = find(next_hop);
  if (e == nullptr) {
    e = claim(next_hop, true, now);
    e->state = State::kResolving;
    set_deadline(*e, now);
    return nullptr;
  }
  e->used_at = now;
  if (e->state == State::kResolving) return nullptr;
  if (e->state == State::kKnown && now - e->confirmed_at >= kNeighbourFresh && e->deadline > now) {
    set_deadline(*e, now);
  }
  return &e->mac;
}

void Neighbours::learn(Ipv4 address, const MacAddress& mac, Trust trust, Instant now) noexcept {
  if (!on_subnet(address) && (options_.gateway.value == 0 || address != options_.gateway)) return;
  if (mac.is_group() || mac.is_zero()) return;
  Entry* e = find(address);
  if (e == nullptr && trust == Trust::kForUs) e = claim(address, false, now);
  if (e != nullptr) set_known(*e, mac, now);
}

void Neighbours::confirm(Ipv4 source, const MacAddress& mac, Instant now) noexcept {
  const std::optional<Ipv4> hop = next_hop(source);
  if (!hop) return;
  Entry* e = find(*hop);
  if (e == nullptr || e->state == State::kResolving || e->mac != mac) return;
  set_known(*e, mac, now);
}

// Handles an entry whose deadline has come. True if a request must be sent.
bool Neighbours::expire(Entry& e, Instant now, Question& question) noexcept {
  question = {.target = e.address, .ask_only = std::nullopt};
  if (e.state == State::kResolving) {
    if (e.attempts >= kMaxResolveAttempts) {
      e.state = State::kFree;
      return false;
    }
    set_deadline(e, now + kFirstResolvePause * (std::int64_t{1} << e.attempts++));
    return true;
  }
  if (e.state == State::kKnown) {
    const Duration silent = now - e.confirmed_at;
    if (silent >= kNeighbourForgotten) {
      e.state = State::kFree;
      return false;
    }
    if (silent < kNeighbourFresh || now - e.used_at >= kNeighbourFresh) {
      set_deadline(
          e, e.confirmed_at + (silent < kNeighbourFresh ? kNeighbourFresh : kNeighbourForgotten));
      return false;
    }
    e.state = State::kProbing;
    e.attempts = 0;
  }
  if (e.attempts >= kMaxNeighbourProbes) {
    e.state = State::kFree;
    return false;
  }
  // The last probe is a broadcast, because the neighbour may have a new Ethernet address.
  if (++e.attempts < kMaxNeighbourProbes) question.ask_only = e.mac;
  set_deadline(e, now + kProbePause);
  return true;
}

std::size_t Neighbours::due(Instant now, std::span<Question> out) noexcept {
  if (now < next_deadline_) return 0;
  next_deadline_ = Instant::never();
  std::size_t count = 0;
  for (std::size_t i = 0; i < kNeighbourSets * kNeighbourWays; ++i) {
    Entry& e = entries_[i];
    if (e.state == State::kFree) continue;
    if (e.deadline > now || count == out.size()) {
      next_deadline_ = std::min(next_deadline_, e.deadline);
    } else if (expire(e, now, out[count])) {
      ++count;
    }
  }
  return count;
}

std::size_t Neighbours::known_count() const noexcept {
  return static_cast<std::size_t>(std::count_if(
      entries_.get(), entries_.get() + kNeighbourSets * kNeighbourWays,
      [](const Entry& e) { return e.state == State::kKnown || e.state == State::kProbing; }));
}

}  // namespace gradplane::port
