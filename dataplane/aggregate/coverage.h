// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/model/limits.h"

namespace gradplane::aggregate {

/// A member of a plan with ranks. All ranks of a host enter a sum together, because their
/// contributions are summed in shared memory before anything is sent.
struct Host {
  std::uint16_t node = 0;
  std::uint16_t ranks = 0;
};

/// A set of hosts: bit i is the i-th host of the plan. All sets of one plan have the same number of
/// words.
using HostSet = std::span<const std::uint64_t>;

template <typename F>
void for_each_host(HostSet set, F f) {
  for (std::size_t w = 0; w < set.size(); ++w) {
    for (std::uint64_t bits = set[w]; bits != 0; bits &= bits - 1) {
      f(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
    }
  }
}
inline bool has_host(HostSet set, std::size_t host) {
  return (set[host / 64] >> host % 64 & 1) != 0;
}
inline bool is_subset(HostSet inner, HostSet outer) {
  std::uint64_t beyond = 0;
  for (std::size_t w = 0; w < inner.size(); ++w) beyond |= inner[w] & ~outer[w];
  return beyond == 0;
}
inline bool meets(HostSet a, HostSet b) {
  std::uint64_t common = 0;
  for (std::size_t w = 0; w < a.size(); ++w) common |= a[w] & b[w];
  return common != 0;
}

inline bool is_empty(HostSet set) {
  return std::all_of(set.begin(), set.end(), [](std::uint64_t word) { return word == 0; });
}

inline void add_host(std::span<std::uint64_t> set, std::size_t host) {
  set[host / 64] |= std::uint64_t{1} << host % 64;
}

/// The hosts of one plan, in the order of its members.
class HostTable {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;

  /// `host_of_rank`: the host of each rank of the plan, as an index into `hosts`. If empty, ranks
  /// are numbered in the order of their hosts.
  explicit HostTable(std::vector<Host> hosts, std::vector<std::uint16_t> host_of_rank = {})
      : hosts_(std::move(hosts)), host_of_rank_(std::move(host_of_rank)), all_(words()) {
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      add_host(all_, h);
      const std::uint16_t node = hosts_[h].node;
      if (host_of_node_.size() <= node) host_of_node_.resize(node + std::size_t{1}, kNoHost);
      if (host_of_node_[node] == kNoHost) host_of_node_[node] = static_cast<std::uint16_t>(h);
    }
    if (!host_of_rank_.empty()) return;
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      host_of_rank_.insert(host_of_rank_.end(), hosts_[h].ranks, static_cast<std::uint16_t>(h));
    }
  }

  std::size_t size() const { return hosts_.size(); }
  const Host& operator[](std::size_t host) const { return hosts_[host]; }
  /// The number of words of a set, at least one.
  std::size_t words() const { return hosts_.empty() ? 1 : (hosts_.size() + 63) / 64; }
  HostSet all() const { return all_; }
  /// The node's index among the hosts; kNone if it has no ranks.
  std::size_t find(std::uint16_t node) const {
    const bool known = node < host_of_node_.size() && host_of_node_[node] != kNoHost;
    return known ? host_of_node_[node] : kNone;
  }
  /// The index of the host on which a rank runs.
  std::size_t host_of(std::uint16_t rank) const { return host_of_rank_[rank]; }
  /// The number of ranks.
  std::size_t rank_count() const { return host_of_rank_.size(); }
  /// The number of ranks on the hosts of a set, which must contain only hosts of this table.
  std::uint32_t ranks_in(HostSet set) const {
    std::uint32_t ranks = 0;
    for_each_host(set, [&](std::size_t host) { ranks += hosts_[host].ranks; });
    return ranks;
  }

 private:
  static constexpr std::uint16_t kNoHost = 0xffff;
  static_assert(kMaxNodes <= kNoHost, "each host is a node");

  std::vector<Host> hosts_;
  std::vector<std::uint16_t> host_of_rank_;
  std::vector<std::uint16_t> host_of_node_;
  std::vector<std::uint64_t> all_;
};

}  // namespace gradplane::aggregate
