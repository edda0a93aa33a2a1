// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Blocks in a narrower type than the trainer's, and their rounding errors.
#include <cstring>

#include "dataplane/aggregate/tree.h"
#include "dataplane/base/assert.h"
#include "dataplane/reduce/wire_codec.h"

namespace gradplane::aggregate {

void Tree::Outbound::write(std::byte* out) const {
  if (is_narrowed_late)
    return reduce::encode(wire, out, bytes.data(), bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
}

/// The wire type of elements that have not been narrowed yet.
WireType Tree::fitting_wire_type(const Round& round, std::uint32_t block,
                                 std::span<const std::byte> elements) {
  const WireType wanted = round.wire_type(block);
  return wanted == WireType::kElements
             ? wanted
             : reduce::fitting(wanted, elements.data(), round.geometry.elements_in(block));
}

/// Narrows a sum on its way up. A relay without ranks has no next gradient that could carry its
/// rounding errors, so it pushes plain elements if the job carries.
void Tree::narrow_push(const Context& job, const Round& round, std::uint32_t block) {
  if (!round.narrows()) return;
  const bool could_not_carry = job.compensation == Compensation::kCarry && job.ranks.empty();
  slots_[round.slot()].sums.narrow(block,
                                   could_not_carry ? WireType::kElements : round.wire_type(block));
}

/// The elements of a sealed sum at its root, rounded as everybody will have them. A root without
/// ranks adds its residual itself, because no contribution of its own does.
std::span<const std::byte> Tree::round_result(const Context& job, Round& round,
                                              std::uint32_t block) {
  Accumulator& sums = slots_[round.slot()].sums;
  if (!round.narrows()) return sums.elements(block);
  Residual* residual = round.bucket->residual();
  // A block without contributions was not rounded, and the residual waits for the next round.
  const bool has_sum = sums.contributors(block) > 0;
  const bool is_carried_here = residual != nullptr && job.ranks.empty() && residual->has(block);
  if (is_carried_here && has_sum) {
    residual->move_to(block, sums.elements(block).data());
    ++job.counters.blocks_carried;
  }
  sums.narrow(block, round.wire_type(block));
  const WireType wire = sums.wire_type(block);
  if (residual != nullptr && has_sum && wire != WireType::kElements) {
    residual->keep_error(block, wire, sums.elements(block).data(), sums.sealed(block));
  }
  return sums.round(block);
}

/// The result contains this node's push, so the push's rounding error is carried.
void Tree::keep_push_error(const Context& job, Round& round, std::uint32_t block) {
  if (!round.narrows() || round.bucket->residual() == nullptr) return;
  Residual& residual = *round.bucket->residual();
  if (sums_) {
    Accumulator& sums = slots_[round.slot()].sums;
    const WireType wire = sums.wire_type(block);
    if (wire == WireType::kElements) return;
    residual.keep_error(block, wire, sums.elements(block).data(), sums.sealed(block));
    return;
  }
  const std::span<const std::byte> elements = job.ranks.bytes(0, round, block);
  const WireType wire = fitting_wire_type(round, block, elements);
  if (wire == WireType::kElements) return;
  const std::size_t count = round.geometry.elements_in(block);
  alignas(64) std::byte bytes[kMaxBlockBytes];
  reduce::encode(wire, bytes, elements.data(), count);
  residual.keep_error(block, wire, elements.data(),
                      {bytes, wire_bytes(wire, ElementType::kFloat32, count)});
}

}  // namespace gradplane::aggregate
