// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "dataplane/aggregate/coverage.h"
#include "dataplane/model/geometry.h"
#include "dataplane/model/wire_type.h"
#include "dataplane/reduce/kernels.h"

namespace gradplane::aggregate {

/// The sums of one tree's blocks in one round at one node, and whose contributions are in each.
/// Which source may contribute is the caller's knowledge (its bitmaps). This counts contributions,
/// joins their sets of hosts and adds bytes. Once a block is sealed, its bytes are as they go and
/// stay there until the round ends, to be sent again when they are lost.
class Accumulator {
 public:
  /// Room for `capacity_blocks` blocks of `block_bytes`; every byte is touched here, not later. A
  /// set of hosts has `host_words`. The sums are in memory of std::pmr's default resource, for
  /// which a daemon has huge pages.
  Accumulator(std::size_t capacity_blocks, std::size_t block_bytes, std::size_t host_words);

  /// Starts over: `sources` contributions are awaited for each block of `range`. `narrows`: there
  /// is room for what narrow() makes of a block.
  void open(const Geometry& geometry, BlockRange range, std::uint16_t sources,
            bool narrows = false);
  /// Right after open(): for these blocks another number of contributions is awaited.
  void await(BlockRange blocks, std::uint16_t sources);

  /// Adds one source's bytes, which are the sum over `contributors` ranks on the hosts of `from`.
  /// With 0 contributors the bytes mean nothing, and may be none. True when no source is awaited
  /// any more.
  bool add(std::uint32_t block, std::span<const std::byte> wire_bytes, std::uint16_t contributors,
           HostSet from, WireType wire = WireType::kElements);

  /// The same for bytes that stay as they are until the block is sealed or replaced. The first ones
  /// are read when the next contribution comes, and not copied before.
  bool add_lasting(std::uint32_t block, std::span<const std::byte> wire_bytes,
                   std::uint16_t contributors, HostSet from);

  /// Whether some source's contribution to a block is awaited.
  bool is_gathered(std::uint32_t block) const { return awaited_[block - range_.begin] == 0; }
  /// Awaits nobody's contribution any more. Nothing may be added to the block afterwards.
  void stop_waiting(std::uint32_t block) { awaited_[block - range_.begin] = 0; }

  /// Turns a block's sum, times `factor`, into the elements' type, in place, and gives it: zero
  /// when nothing has come. A factor other than 1 is for floating types.
  std::span<const std::byte> seal(std::uint32_t block, double factor = 1);
  /// A sealed block of fp32 goes as `wanted`, or as it is where that cannot hold it. Its elements
  /// stay as they are. open() has said that there is room.
  void narrow(std::uint32_t block, WireType wanted);
  /// The elements of a block that was sealed: of one that was narrowed, before it was rounded.
  std::span<std::byte> elements(std::uint32_t block) {
    return {memory_.data() + offset(block), geometry_.bytes_in(block)};
  }
  /// They become what everybody reads out of the block, and are given.
  std::span<const std::byte> round(std::uint32_t block);
  /// Replaces a block by bytes as they go: a result on its way down.
  void replace(std::uint32_t block, std::span<const std::byte> wire_bytes,
               std::uint16_t contributors, HostSet from, WireType wire = WireType::kElements);

  /// The bytes of a sealed or replaced block, and in which type they are.
  std::span<const std::byte> sealed(std::uint32_t block) const {
    return {memory_.data() + wire_offset(block), bytes_in(block, wire_type(block))};
  }
  WireType wire_type(std::uint32_t block) const { return wire_types_[block - range_.begin]; }
  std::uint16_t contributors(std::uint32_t block) const {
    return contributors_[block - range_.begin];
  }
  /// The hosts whose ranks are in the block.
  HostSet hosts(std::uint32_t block) const {
    return HostSet(hosts_).subspan((block - range_.begin) * host_words_, host_words_);
  }

 private:
  void take_in(std::uint32_t block, const std::byte* wire_bytes, WireType wire);
  bool count_in(std::size_t i, std::uint16_t contributors, HostSet from);
  std::size_t offset(std::uint32_t block) const { return (block - range_.begin) * stride_bytes_; }
  /// Where the bytes that go are. Beside the sum, where there is room for them.
  std::size_t wire_offset(std::uint32_t block) const {
    return offset(block) + (wire_type(block) == WireType::kElements ? 0 : narrow_at_);
  }
  std::size_t bytes_in(std::uint32_t block, WireType wire) const {
    return wire_bytes(wire, geometry_.type, geometry_.elements_in(block));
  }

  Geometry geometry_;
  BlockRange range_;
  const reduce::Kernels* kernels_ = nullptr;
  std::size_t block_bytes_;    // at most
  std::size_t stride_bytes_;   // from one sum to the next, in the round that is open
  std::size_t narrow_at_ = 0;  // from a sum to its bytes in a narrower type
  std::size_t host_words_;
  std::pmr::vector<std::byte> memory_;
  std::vector<const std::byte*> lasting_;  // the first contribution, while it is nowhere else
  std::vector<WireType> wire_types_;       // of sealed blocks
  std::vector<std::uint16_t> contributors_;
  std::vector<std::uint16_t> awaited_;
  std::vector<std::uint64_t> hosts_;  // host_words_ for each block
};

}  // namespace gradplane::aggregate
