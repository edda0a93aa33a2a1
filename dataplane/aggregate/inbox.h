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

/// What a rank has received of one bucket from other ranks since its last result of the bucket,
/// under bounded staleness. Each update that comes is added, of whichever step it is, and the next
/// result takes what is there. So the memory is that of one bucket, however far ranks are apart.
class Inbox {
 public:
  /// What an inbox of this bucket needs.
  static std::size_t bytes_for(const Geometry& geometry);

  /// Room for a whole bucket of a floating type; every byte is touched here, not later.
  explicit Inbox(const Geometry& geometry);

  /// Adds a block of another rank's update, in wire type.
  void add(std::uint32_t block, std::span<const std::byte> wire_bytes);
  /// The updates that lie here of a block.
  std::uint16_t updates(std::uint32_t block) const { return updates_[block]; }

  /// Turns a block of this rank's own update into the mean over it and all that lie here, times the
  /// number of ranks. Nothing lies here afterwards. Returns how many ranks' updates are in it; one
  /// that came of several steps counts as often.
  std::uint16_t take(std::uint32_t block, std::span<std::byte> own, std::uint16_t ranks);

 private:
  std::byte* sum(std::uint32_t block) { return sums_.get() + std::size_t{block} * stride_bytes_; }

  Geometry geometry_;
  std::size_t stride_bytes_;
  std::unique_ptr<std::byte[]> sums_;  // in the type in which this bucket's type is summed
  std::vector<std::uint16_t> updates_;
};

}  // namespace gradplane::aggregate
