// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/result.h"
#include "dataplane/port/destination.h"

namespace gradplane::port {

/// Groups that a port is in at a time.
inline constexpr std::size_t kMaxGroups = 64;

/// The groups that a port has joined. One thread changes it (control), and any thread may look into
/// it meanwhile. Nothing hangs on an entry, so the entries need no order among each other.
class GroupTable {
 public:
  /// Fails when it is no group, when the port is in it already, or when the table is full.
  Status join(const Group& group);
  /// False when the port is not in the group.
  bool leave(const Group& group) noexcept;
  void leave_all() noexcept;

  /// Looks at every entry: cheap beside a datagram, and only datagrams to groups pay for it.
  bool has(const Group& group) const noexcept {
    const std::uint64_t key = key_of(group);
    for (const std::atomic<std::uint64_t>& entry : entries_) {
      if (entry.load(std::memory_order_relaxed) == key) return true;
    }
    return false;
  }

  /// Whether some group has this address.
  bool has_address(Ipv4 address) const noexcept;

  /// The addresses of all groups, each once. Control thread.
  std::vector<Ipv4> addresses() const;
  /// The same without memory of its own, an address for each group that has it. What is changed
  /// meanwhile may be in it or not, and version() tells. Any thread.
  std::size_t copy_addresses(std::span<Ipv4, kMaxGroups> out) const noexcept;
  /// Another number after every change.
  std::uint32_t version() const noexcept { return version_.load(std::memory_order_acquire); }

 private:
  /// Never 0, which is a free entry.
  static std::uint64_t key_of(const Group& group) {
    return std::uint64_t{group.address.value} << 16 | group.udp_port;
  }
  std::atomic<std::uint64_t>* find(std::uint64_t key) noexcept;
  /// After the entries: who sees the number sees them too.
  void note_change() noexcept { version_.fetch_add(1, std::memory_order_release); }

  std::array<std::atomic<std::uint64_t>, kMaxGroups> entries_{};  // control: rw, poll threads: ro
  std::atomic<std::uint32_t> version_{0};                         // the same
};

}  // namespace gradplane::port
