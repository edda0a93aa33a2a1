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

/// Keeps the blocks of a bucket that this node pushed and that did not enter the sum, and what was
/// lost of others because it was rounded here, and adds them to the bucket's next gradient. This is
/// error feedback (Stich et al., NeurIPS 2018, Karimireddy et al., ICML 2019). All local ranks
/// share one residual, because the node pushes their sum. Delivered + kept = submitted, element for
/// element (I5).
class Residual {
 public:
  /// Room for a whole bucket; every byte is touched here, not later.
  explicit Residual(const Geometry& geometry);

  /// Keeps the sum of `parts`, one block of each local rank. Returns false and keeps
  /// nothing when the sum is not finite, because no later step could use it.
  bool keep(std::uint32_t block, std::span<const std::byte* const> parts);
  /// Keeps what is lost of these elements of fp32 when they go as `wire_bytes`: the rounding error.
  void keep_error(std::uint32_t block, WireType wire, const std::byte* elements,
                  std::span<const std::byte> wire_bytes);
  void forget(std::uint32_t block) { kept_.clear(block); }
  bool has(std::uint32_t block) const { return kept_.test(block); }
  /// The first block at or after `from` that is kept; Bitmap::kNone.
  std::size_t next(std::size_t from) const { return kept_.next_set(from); }

  /// Adds what is kept of `block` to `elements`, and keeps it no more.
  void move_to(std::uint32_t block, std::byte* elements);

 private:
  std::byte* at(std::uint32_t block) { return bytes_.get() + geometry_.offset_bytes(block); }

  Geometry geometry_;
  std::unique_ptr<std::byte[]> bytes_;
  Bitmap kept_;
};

}  // namespace gradplane::aggregate
