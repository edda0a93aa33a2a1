// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/model/geometry.h"
#include "dataplane/reduce/kernels.h"

namespace gradplane::aggregate {

/// The sums of one tree's blocks in one round at one node. The caller knows from its bitmaps who
/// may contribute; this class counts contributions and adds bytes. Once a block is sealed, its
/// bytes are in wire type. They stay there until the round ends, so that they can be sent again.
class Accumulator {
 public:
  /// Room for `capacity_blocks` blocks of `block_bytes`; every byte is touched here, not later.
  Accumulator(std::size_t capacity_blocks, std::size_t block_bytes);

  /// Starts over: `sources` contributions are awaited for each block of `range`.
  void open(const Geometry& geometry, BlockRange range, std::uint16_t sources);

  /// Adds one source's bytes, which name `contributors` ranks. True when no source is awaited any
  /// more.
  bool add(std::uint32_t block, std::span<const std::byte> wire_bytes, std::uint16_t contributors);

  /// Whether some source's contribution to a block is awaited.
  bool is_gathered(std::uint32_t block) const { return awaited_[block - range_.begin] == 0; }
  /// Ends a block that lacks contributions. Its sum becomes what has come, times `factor`, or zero
  /// if nothing has come. Nothing may be added to it afterwards. Only for floating types.
  void end_partial(std::uint32_t block, double factor);

  /// Turns a block's sum into wire type, in place, and gives it.
  std::span<const std::byte> seal(std::uint32_t block);
  /// Replaces a block by bytes of wire type: a result on its way down.
  void replace(std::uint32_t block, std::span<const std::byte> wire_bytes,
               std::uint16_t contributors);

  /// The bytes of a sealed or replaced block.
  std::span<const std::byte> sealed(std::uint32_t block) const {
    return {memory_.get() + offset(block), geometry_.bytes_in(block)};
  }
  std::uint16_t contributors(std::uint32_t block) const {
    return contributors_[block - range_.begin];
  }

 private:
  std::size_t offset(std::uint32_t block) const { return (block - range_.begin) * stride_bytes_; }

  Geometry geometry_;
  BlockRange range_;
  const reduce::Kernels* kernels_ = nullptr;
  std::size_t stride_bytes_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<std::uint16_t> contributors_;
  std::vector<std::uint16_t> awaited_;
};

}  // namespace gradplane::aggregate
