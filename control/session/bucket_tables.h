// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "control/protocol/node_messages.h"
#include "dataplane/api/bounds.h"
#include "dataplane/base/result.h"

/// Carries the tables of buckets between a rank, its daemon, the coordinator and the members: cuts
/// a table into parts that fit a message, and puts the parts together again.
namespace gradplane::session {

/// The most tensors of all buckets of one job. Buckets beyond it stay exact.
inline constexpr std::size_t kMaxTensorsPerJob = 65536;
inline constexpr std::size_t kMaxTensorNameBytes = 256;
/// A rule is a pattern and little more.
inline constexpr std::size_t kMaxRuleBytes = 320;

/// Some of the `total` tensors of a bucket, from number `first` on.
struct TablePart {
  std::uint32_t bucket = 0;
  ElementType type = ElementType::kFloat32;
  std::uint32_t elements = 0;  // of the bucket; 0: up to the end of its last tensor
  std::uint32_t total = 0;
  std::uint32_t first = 0;
  std::vector<api::BoundedTensor> tensors;
};

/// The parts of a table, each at most protocol::kMaxBucketPartBytes. In network byte order they
/// have: bucket u32, type u8, elements u32, total u16, first u16, count u16; then for each tensor
/// offset u32, elements u32, bound (an IEEE 754 single) u32, reason u8, wire type u8, name and rule
/// (with a 16-bit length each). Names and rules are cut to their bounds.
std::vector<std::vector<std::byte>> encode_table(const api::BucketBounds& table);

/// Decodes a part, and checks each field that can be judged alone. TableCollector checks numbers,
/// places and order. make_bucket() refuses element types that no bucket may have.
Result<TablePart> decode_table_part(std::span<const std::byte> bytes);

/// Assembles the tables of one job from parts that come in order. It accepts each bucket once, and
/// at most kMaxTensorsPerJob tensors in all. One thread.
class TableCollector {
 public:
  /// Returns the table when this was its last part and the job may have it. Returns an error for a
  /// part that no correct sender sends; then it gives up the table to which the part belongs.
  Result<std::optional<api::BucketBounds>> add(TablePart part);
  /// Forgets the table that has come only in part.
  void drop_open() { open_.reset(); }
  bool is_open() const { return open_.has_value(); }
  /// How many tables were left out because the job had too many tensors.
  std::size_t left_out() const { return left_out_; }

 private:
  Status check(const TablePart& part) const;

  std::optional<api::BucketBounds> open_;  // the table that has come in part
  std::uint32_t open_total_ = 0;
  std::vector<bool> taken_ = std::vector<bool>(kMaxBuckets + 1);
  std::size_t tensors_ = 0;  // in all tables that add() has returned
  std::size_t left_out_ = 0;
};

}  // namespace gradplane::session
