// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/base/bitmap.h"
#include "dataplane/model/wire_type.h"
#include "dataplane/wire/envelope.h"

/// Parity of the blocks of a round: a receiver that lacks some blocks computes them from as many
/// rows of parity, whichever blocks they are. So a loss at the end of a round costs no round trip.
namespace gradplane::hop {

using wire::kMaxParityRows;

/// The most rounds of edges for which a job has parity at a time. Further rounds have none.
inline constexpr std::size_t kMaxParities = 64;
/// Below this loss, a round that loses something at its end is too rare to pay for parity of all
/// rounds.
inline constexpr double kMinParityLoss = 0.001;
/// If fewer packets are in flight, each is sent twice: a copy repairs as much as a row, and shows
/// that a round has begun.
inline constexpr std::uint32_t kMinParityPackets = 4;
/// At most one row for this many blocks in flight.
inline constexpr std::uint32_t kParityShare = 2;
static_assert(kMinParityPackets >= 2 * kParityShare,
              "what goes with parity has rows for the blocks of two packets");

/// The factor of a block in a row: a non-zero element of the field with 256 elements. Both ends
/// compute the same factor. It looks random, so any rows nearly always recover as many blocks,
/// whichever they are.
std::uint8_t parity_factor(std::uint32_t block, std::size_t row);

/// The number of rows for this many blocks in flight, if this share of packets with so many blocks
/// each is lost: up to 3 % of losses less than one round in five hundred lacks more, and less than
/// one in three hundred where the last packet has one block more. 0: more than kMaxParityRows would
/// be needed.
std::size_t parity_rows_for(std::uint32_t blocks, double loss, std::size_t blocks_per_packet = 1);

/// The rows of one round's blocks, at their sender or at their receiver. A sender adds every block
/// once, and the rows are what it sends. A receiver adds the blocks that have come and the rows
/// that have come, which leaves the parity of the blocks that it lacks.
class Parity {
 public:
  /// `store` holds the rows, and must have room for kMaxParityRows of them.
  Parity(std::byte* store, std::size_t block_bytes, std::size_t max_blocks);

  void open(std::size_t rows, std::uint32_t blocks);
  /// Adds a block, by its number in the edge's range, as it is on the wire. A block that was added
  /// before is ignored.
  void add(std::uint32_t block, std::span<const std::byte> bytes, WireType type);
  bool has(std::uint32_t block) const { return added_.test(block); }
  /// The number of blocks that were added.
  std::uint32_t added() const { return added_count_; }
  /// The number of rows; 0 if the parity is spoilt.
  std::size_t rows() const { return rows_; }
  void spoil() { rows_ = 0; }
  std::span<const std::byte> row(std::size_t r) const {
    return {store_ + r * block_bytes_, block_bytes_};
  }

  /// The parity of the blocks' wire types, in a row.
  std::uint8_t types(std::size_t r) const { return types_[r]; }
  /// The narrowest wire type among the blocks that were added.
  WireType narrowest() const { return narrowest_; }
  /// The bytes of the longest block that was added.
  std::size_t longest_bytes() const { return longest_bytes_; }

  /// Adds a row that has come. False if it came before. `bytes` must not be longer than a block.
  bool take_row(std::size_t r, std::span<const std::byte> bytes, std::uint8_t types);
  std::uint32_t rows_taken() const;
  bool has_row(std::size_t r) const { return (taken_ >> r & 1) != 0; }

 private:
  friend class ParityTable;

  std::byte* store_;  // the rows, one after the other
  std::size_t block_bytes_;
  Bitmap added_;
  std::uint32_t added_count_ = 0;
  std::size_t rows_ = 0;
  std::array<std::uint8_t, kMaxParityRows> types_{};
  WireType narrowest_ = WireType::kElements;
  std::size_t longest_bytes_ = 0;
  std::uint64_t taken_ = 0;  // rows that have come, one bit each
  std::uint32_t users_ = 0;  // edges that use it
};
static_assert(kMaxParityRows <= 64, "Parity::taken_ has a bit for each row");

/// The parities of one job. Everything is allocated in the constructor.
class ParityTable {
 public:
  ParityTable(std::size_t block_bytes, std::size_t max_blocks);

  /// nullptr if all are in use.
  Parity* take(std::size_t rows, std::uint32_t blocks);
  /// One more edge uses it.
  static Parity* share(Parity* parity) {
    ++parity->users_;
    return parity;
  }
  /// An edge uses it no longer; it is set to nullptr. Does nothing for nullptr.
  static void release(Parity*& parity);
  /// For tests.
  std::size_t in_use() const;

  /// Computes the blocks that a receiver lacks, at most as many as rows have come. False if the
  /// rows are linearly dependent; then another row is needed.
  bool recover(const Parity& parity, std::span<const std::uint32_t> missing);
  /// After recover(): the i-th block of `missing`, padded to the longest block.
  std::span<const std::byte> recovered(std::size_t i) const {
    return std::span(recovered_).subspan(i * block_bytes_, block_bytes_);
  }
  /// After recover(): what a sender says is the wire type of the i-th block of `missing`.
  std::uint8_t recovered_type(std::size_t i) const { return recovered_types_[i]; }

 private:
  static constexpr std::size_t kCells = kMaxParityRows * kMaxParityRows;
  static constexpr std::size_t kTableBytes = 32;  // table bytes of one factor

  std::size_t block_bytes_;
  // Not written before use, so the kernel maps no pages for it: most jobs never use it.
  std::unique_ptr<std::byte[]> store_;  // NOLINT(modernize-avoid-c-arrays)
  std::vector<Parity> parities_;
  std::vector<std::byte> recovered_;
  std::array<std::uint8_t, kMaxParityRows> recovered_types_{};
  // Scratch of recover().
  std::array<std::uint8_t, kCells> factors_{};
  std::array<std::uint8_t, kCells> inverse_{};
  std::vector<std::uint8_t> tables_;
};

}  // namespace gradplane::hop
