// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/model/geometry.h"

namespace gradplane::aggregate {

/// The updates of one bucket that a rank has received from other ranks since its last result of the
/// bucket, under bounded staleness. Each update is added when it comes, whichever step it belongs
/// to, and the next result takes the sum. So an inbox needs the memory of one bucket, however far
/// ranks are apart.
class Inbox {
 public:
  /// The bytes that an inbox of this bucket needs.
  static std::size_t bytes_for(const Geometry& geometry);

  /// Has room for a whole bucket of a floating-point type. The constructor touches every byte, so
  /// that no page fault occurs later.
  explicit Inbox(const Geometry& geometry);

  /// Adds a block of another rank's update, as elements of the bucket's type.
  void add(std::uint32_t block, std::span<const std::byte> wire_bytes);
  /// The number of updates of a block in the inbox.
  std::uint16_t updates(std::uint32_t block) const { return updates_[block]; }

  /// Replaces a block of this rank's own update by the mean over it and all updates of the block in
  /// the inbox, times the number of ranks. Empties the block in the inbox. Returns the number of
  /// updates in the mean; a rank with updates of several steps counts once for each.
  std::uint16_t take(std::uint32_t block, std::span<std::byte> own, std::uint16_t ranks);

 private:
  std::byte* sum(std::uint32_t block) { return sums_.get() + std::size_t{block} * stride_bytes_; }

  Geometry geometry_;
  std::size_t stride_bytes_;
  std::unique_ptr<std::byte[]> sums_;  // in the type in which the bucket's elements are summed
  std::vector<std::uint16_t> updates_;
};

}  // namespace gradplane::aggregate
