// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "dataplane/base/bitmap.h"
#include "dataplane/model/geometry.h"
#include "dataplane/model/wire_type.h"

namespace gradplane::aggregate {

/// Keeps what a bucket has lost at this node, and adds it to the bucket's next gradient: pushed
/// blocks that did not enter the sum, and rounding errors of other blocks. This is error feedback
/// (Stich et al., NeurIPS 2018, Karimireddy et al., ICML 2019). All local ranks share one residual,
/// because the node pushes their sum. Delivered + kept = submitted, element for element (I5
/// in docs/protocol.md).
class Residual {
 public:
  /// Has room for a whole bucket. The constructor touches every byte, so that no page fault occurs
  /// later.
  explicit Residual(const Geometry& geometry);

  /// Keeps the sum of `parts`, one block of each local rank. Returns false and keeps nothing if the
  /// sum is not finite, because no later step could use it.
  bool keep(std::uint32_t block, std::span<const std::byte* const> parts);
  /// Keeps the rounding error of these fp32 elements, which go as `wire_bytes`.
  void keep_error(std::uint32_t block, WireType wire, const std::byte* elements,
                  std::span<const std::byte> wire_bytes);
  void forget(std::uint32_t block) { kept_.clear(block); }
  bool has(std::uint32_t block) const { return kept_.test(block); }
  /// The first kept block at or after `from`; Bitmap::kNone if there is none.
  std::size_t next(std::size_t from) const { return kept_.next_set(from); }

  /// Adds what is kept of `block` to `elements`, and forgets it.
  void move_to(std::uint32_t block, std::byte* elements);

 private:
  std::byte* at(std::uint32_t block) { return bytes_.get() + geometry_.offset_bytes(block); }

  Geometry geometry_;
  std::unique_ptr<std::byte[]> bytes_;
  Bitmap kept_;
};

}  // namespace gradplane::aggregate
