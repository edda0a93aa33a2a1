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

/// The sums of one tree's blocks in one round at one node, and the hosts whose contributions are in
/// each. The caller knows (from its bitmaps) which source may contribute. This class counts
/// contributions, joins their sets of hosts and adds bytes. Once a block is sealed, its bytes are
/// in wire type, and stay there until the round ends, so that they can be sent again.
class Accumulator {
 public:
  /// Has room for `capacity_blocks` blocks of `block_bytes`. The constructor touches every byte, so
  /// that no page fault occurs later. A set of hosts has `host_words` words. The sums are in
  /// `memory`, which gives memory_bytes() for them.
  Accumulator(std::size_t capacity_blocks, std::size_t block_bytes, std::size_t host_words,
              std::pmr::memory_resource& memory = *std::pmr::get_default_resource());
  static std::size_t memory_bytes(std::size_t capacity_blocks, std::size_t block_bytes);

  /// Starts over: each block of `range` awaits `sources` contributions. `narrows`: reserves room
  /// for the bytes that narrow() makes.
  void open(const Geometry& geometry, BlockRange range, std::uint16_t sources,
            bool narrows = false);
  /// Called right after open(): these blocks await another number of contributions.
  void await(BlockRange blocks, std::uint16_t sources);

  /// Adds one source's bytes, which are the sum over `contributors` ranks on the hosts of `from`.
  /// With 0 contributors the bytes are ignored and may be empty. True if the block awaits no
  /// further contribution.
  bool add(std::uint32_t block, std::span<const std::byte> wire_bytes, std::uint16_t contributors,
           HostSet from, WireType wire = WireType::kElements);

  /// The same for bytes that stay unchanged until the block is sealed or replaced. The first
  /// contribution is not copied, but read when the next one comes.
  bool add_lasting(std::uint32_t block, std::span<const std::byte> wire_bytes,
                   std::uint16_t contributors, HostSet from);

  /// Whether the block awaits no further contribution.
  bool is_gathered(std::uint32_t block) const { return awaited_[block - range_.begin] == 0; }
  /// Stops awaiting contributions. Nothing may be added to the block afterwards.
  void stop_waiting(std::uint32_t block) { awaited_[block - range_.begin] = 0; }

  /// Converts a block's sum, times `factor`, to the elements' type in place, and returns it. It is
  /// zero if nothing has come. A factor other than 1 is for floating-point types.
  std::span<const std::byte> seal(std::uint32_t block, double factor = 1);
  /// Prepares a sealed block of fp32 to go as `wanted`, or as plain elements if `wanted` cannot
  /// hold them. The block's elements stay as they are. open() must have reserved the room.
  void narrow(std::uint32_t block, WireType wanted);
  /// The elements of a sealed block, before any rounding to its wire type.
  std::span<std::byte> elements(std::uint32_t block) {
    return {memory_.data() + offset(block), geometry_.bytes_in(block)};
  }
  /// Rounds the elements to what all receivers will read from the wire type, and returns them.
  std::span<const std::byte> round(std::uint32_t block);
  /// Replaces a block by bytes in wire type: a result on its way down.
  void replace(std::uint32_t block, std::span<const std::byte> wire_bytes,
               std::uint16_t contributors, HostSet from, WireType wire = WireType::kElements);

  /// The bytes of a sealed or replaced block, in its wire type.
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
  /// The offset of the bytes in wire type; bytes of a narrow type are beside the sum.
  std::size_t wire_offset(std::uint32_t block) const {
    return offset(block) + (wire_type(block) == WireType::kElements ? 0 : narrow_at_);
  }
  std::size_t bytes_in(std::uint32_t block, WireType wire) const {
    return wire_bytes(wire, geometry_.type, geometry_.elements_in(block));
  }

  Geometry geometry_;
  BlockRange range_;
  const reduce::Kernels* kernels_ = nullptr;
  std::size_t block_bytes_;    // of the largest block
  std::size_t stride_bytes_;   // from one sum to the next in the open round
  std::size_t narrow_at_ = 0;  // from a sum to its bytes in a narrow type
  std::size_t host_words_;
  std::pmr::vector<std::byte> memory_;
  // The first contribution, as long as it has not been copied.
  std::vector<const std::byte*> lasting_;
  std::vector<WireType> wire_types_;  // wire types of sealed blocks
  std::vector<std::uint16_t> contributors_;
  std::vector<std::uint16_t> awaited_;
  std::vector<std::uint64_t> hosts_;  // host_words_ for each block
};

}  // namespace gradplane::aggregate
