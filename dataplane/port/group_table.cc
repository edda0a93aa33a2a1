// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/group_table.h"

#include <algorithm>

namespace gradplane::port {
namespace {

std::string text_of(const Group& group) {
  return to_text(group.address) + " port " + std::to_string(group.udp_port);
}

}  // namespace

Status GroupTable::join(const Group& group) {
  if (!is_valid(group)) {
    return Error{"port: " + text_of(group) +
                 " is no group; a group has an address in 224.0.1.0 to 239.255.255.255 and a UDP "
                 "port that is not 0"};
  }
  if (has(group)) return Error{"port: it is already in the group " + text_of(group)};
  if (count_ == kMaxGroups) {
    return Error{"port: it cannot join the group " + text_of(group) + ": it is in " +
                 std::to_string(kMaxGroups) + " groups already, which is the most; leave one"};
  }
  std::size_t place = first_place(key_of(group));
  while (entries_[place].load(std::memory_order_relaxed) > kLeft) place = (place + 1) % kPlaces;
  entries_[place].store(key_of(group), std::memory_order_relaxed);
  ++count_;
  note_change();
  return Nothing{};
}

bool GroupTable::leave(const Group& group) noexcept {
  if (!is_valid(group)) return false;
  std::size_t place = place_of(key_of(group));
  if (place == kNoPlace) return false;
  entries_[place].store(kLeft, std::memory_order_relaxed);
  --count_;
  // Searches end at a free place, so places that were left directly before one become free.
  const auto at = [this](std::size_t i) { return entries_[i].load(std::memory_order_relaxed); };
  while (at((place + 1) % kPlaces) == kFree && at(place) == kLeft) {
    entries_[place].store(kFree, std::memory_order_relaxed);
    place = (place + kPlaces - 1) % kPlaces;
  }
  note_change();
  return true;
}

void GroupTable::leave_all() noexcept {
  for (std::atomic<std::uint64_t>& entry : entries_) entry.store(kFree, std::memory_order_relaxed);
  count_ = 0;
  note_change();
}

bool GroupTable::has_address(Ipv4 address) const noexcept {
  // Places without a group have the address 0, which no group has.
  return address.value != 0 &&
         std::any_of(entries_.begin(), entries_.end(), [address](const auto& entry) {
           return entry.load(std::memory_order_relaxed) >> 16 == address.value;
         });
}

std::size_t GroupTable::copy_addresses(std::span<Ipv4, kMaxGroups> out) const noexcept {
  std::size_t count = 0;
  for (const std::atomic<std::uint64_t>& entry : entries_) {
    const std::uint64_t key = entry.load(std::memory_order_relaxed);
    if (key <= kLeft) continue;
    if (count == out.size()) break;  // the table has changed during the loop
    out[count++] = {static_cast<std::uint32_t>(key >> 16)};
  }
  return count;
}

std::vector<Ipv4> GroupTable::addresses() const {
  std::vector<Ipv4> out(kMaxGroups);
  out.resize(copy_addresses(std::span<Ipv4, kMaxGroups>(out)));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace gradplane::port
