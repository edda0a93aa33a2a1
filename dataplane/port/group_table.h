// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/result.h"
#include "dataplane/model/group_name.h"
#include "dataplane/port/destination.h"

namespace gradplane::port {

/// The most groups that a port is in at a time. Any plan fits, and so do several of usual size.
inline constexpr std::size_t kMaxGroups = 640;
static_assert(kMaxGroups >= kMaxGroupsOfPlan);

/// The groups that a port has joined. Only the control thread changes the table, and any thread may
/// read it meanwhile. A group stays in its place as long as the port is in it.
class GroupTable {
 public:
  /// Fails if it is no valid group, if the port is already in it, or if the table is full.
  Status join(const Group& group);
  /// False if the port is not in the group.
  bool leave(const Group& group) noexcept;
  void leave_all() noexcept;

  /// Fast, because it runs for every received datagram to a group.
  bool has(const Group& group) const noexcept { return place_of(key_of(group)) != kNoPlace; }

  /// Whether some group has this address.
  bool has_address(Ipv4 address) const noexcept;

  /// The addresses of all groups, each once. Control thread.
  std::vector<Ipv4> addresses() const;
  /// Copies the addresses without allocating; an address comes once for each group that has it. A
  /// change during the call may be included or not; version() tells. Any thread.
  std::size_t copy_addresses(std::span<Ipv4, kMaxGroups> out) const noexcept;
  /// A number that differs after every change.
  std::uint32_t version() const noexcept { return version_.load(std::memory_order_acquire); }

 private:
  // Open addressing: a group is in the first place that was free, beginning with the place of its
  // hash.
  static constexpr std::size_t kPlaces = 1024;
  static_assert(std::has_single_bit(kPlaces) && kPlaces * 5 >= kMaxGroups * 8, "mostly free");
  static constexpr std::size_t kNoPlace = kPlaces;
  static constexpr std::uint64_t kFree = 0;
  static constexpr std::uint64_t kLeft = 1;  // a search continues after it
  static std::size_t first_place(std::uint64_t key) {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
    return static_cast<std::size_t>(key * kGolden >> (64 - std::countr_zero(kPlaces)));
  }
  std::size_t place_of(std::uint64_t key) const noexcept {
    std::size_t place = first_place(key);
    for (std::size_t n = 0; n < kPlaces; ++n, place = (place + 1) % kPlaces) {
      const std::uint64_t entry = entries_[place].load(std::memory_order_relaxed);
      if (entry == key) return place;
      if (entry == kFree) return kNoPlace;
    }
    return kNoPlace;
  }
  /// No group has the address 0, so a key is neither kFree nor kLeft.
  static std::uint64_t key_of(const Group& group) {
    return std::uint64_t{group.address.value} << 16 | group.udp_port;
  }
  /// Called after the entries have changed: a thread that sees the new number also sees them.
  void note_change() noexcept { version_.fetch_add(1, std::memory_order_release); }

  // The control thread writes, poll threads read.
  std::array<std::atomic<std::uint64_t>, kPlaces> entries_{};
  std::atomic<std::uint32_t> version_{0};  // the same
  std::size_t count_ = 0;                  // control thread
};

}  // namespace gradplane::port
