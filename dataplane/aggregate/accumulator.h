// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/aggregate/coverage.h"
#include "dataplane/model/geometry.h"
#include "dataplane/reduce/kernels.h"

namespace gradplane::aggregate {

/// The sums of one tree's blocks in one round at one node, and whose contributions are in each.
/// Which source may contribute is the caller's knowledge (its bitmaps). This counts contributions,
/// joins their sets of hosts and adds bytes. Once a block is sealed its bytes are in wire type and
/// stay there until the round ends, to be sent again when they are lost.
class Accumulator {
 public:
  /// Room for `capacity_blocks` blocks of `block_bytes`; every byte is touched here, not later. A
  /// set of hosts has `host_words`.
  Accumulator(std::size_t capacity_blocks, std::size_t block_bytes, std::size_t host_words);

  /// Starts over: `sources` contributions are awaited for each block of `range`.
  void open(const Geometry& geometry, BlockRange range, std::uint16_t sources);
  /// Right after open(): for these blocks another number of contributions is awaited.
  void await(BlockRange blocks, std::uint16_t sources);

  /// Adds one source's bytes, which are the sum over `contributors` ranks on the hosts of `from`.
  /// With 0 contributors the bytes mean nothing, and may be none. True when no source is awaited
  /// any more.
  bool add(std::uint32_t block, std::span<const std::byte> wire_bytes, std::uint16_t contributors,
           HostSet from);

  /// Whether some source's contribution to a block is awaited.
  bool is_gathered(std::uint32_t block) const { return awaited_[block - range_.begin] == 0; }
  /// Awaits nobody's contribution any more. Nothing may be added to the block afterwards.
  void stop_waiting(std::uint32_t block) { awaited_[block - range_.begin] = 0; }

  /// Turns a block's sum, times `factor`, into wire type, in place, and gives it: zero when nothing
  /// has come. A factor other than 1 is for floating types.
  std::span<const std::byte> seal(std::uint32_t block, double factor = 1);
  /// Replaces a block by bytes of wire type: a result on its way down.
  void replace(std::uint32_t block, std::span<const std::byte> wire_bytes,
               std::uint16_t contributors, HostSet from);

  /// The bytes of a sealed or replaced block.
  std::span<const std::byte> sealed(std::uint32_t block) const {
    return {memory_.get() + offset(block), geometry_.bytes_in(block)};
  }
  std::uint16_t contributors(std::uint32_t block) const {
    return contributors_[block - range_.begin];
  }
  /// The hosts whose ranks are in the block.
  HostSet hosts(std::uint32_t block) const {
    return HostSet(hosts_).subspan((block - range_.begin) * host_words_, host_words_);
  }

 private:
  std::size_t offset(std::uint32_t block) const { return (block - range_.begin) * stride_bytes_; }

  Geometry geometry_;
  BlockRange range_;
  const reduce::Kernels* kernels_ = nullptr;
  std::size_t stride_bytes_;
  std::size_t host_words_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<std::uint16_t> contributors_;
  std::vector<std::uint16_t> awaited_;
  std::vector<std::uint64_t> hosts_;  // host_words_ for each block
};

}  // namespace gradplane::aggregate
