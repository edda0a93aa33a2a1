// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/wire/block.h"
#include "dataplane/wire/envelope.h"
#include "dataplane/wire/seal.h"

/// Packets that carry no block: they only show what the link does to them.
namespace gradplane::wire {

/// A packet of a sounding, or the answer to one. A sounding's packet is as long as one with a full
/// block of its job, so that the link takes as long for it. An answer has nothing behind its
/// fields.
struct Sounding {
  std::uint16_t epoch = 0;  // of the plan, modulo 2^16
  /// As the sender has measured it, in kRoundTripUnit; 0: not yet.
  std::uint16_t round_trip = 0;
  /// Of a sounding: its number among those from this sender to this receiver, from 1 on; all its
  /// packets have the same. Of an answer: the number of the sounding that it answers.
  std::uint32_t number = 0;
  /// Of an answer: the sending time of the packet that it answers. Otherwise 0.
  std::uint32_t echo_us = 0;
  bool is_answer = false;
};
inline constexpr std::size_t kSoundingFixedBytes = 12;  // between the envelope and the padding
inline constexpr std::size_t kSoundingAnswerBytes =
    kEnvelopeBytes + kSoundingFixedBytes + kTagBytes;
static_assert(kSoundingAnswerBytes < kBlockOverheadBytes, "a sounding's packet has padding");

/// The length of a sounding's packet, of a job with blocks of `block_bytes`.
constexpr std::size_t sounding_bytes(std::size_t block_bytes) {
  return kBlockOverheadBytes + block_bytes;
}

/// Checks everything behind the envelope. `packet` has no tag any more; see open(). kNone: `out` is
/// filled. Nobody reads the padding.
[[nodiscard]] ParseError read_sounding(const Envelope& envelope, std::span<const std::byte> packet,
                                       Sounding& out);

/// Writes a packet of a sounding with all its padding into the whole of `out`
/// (sounding_bytes()), or an answer into its beginning. It leaves room for the tag. Returns the
/// bytes of the whole packet with the tag.
std::size_t write_sounding(std::span<std::byte> out, const Envelope& envelope,
                           const Sounding& sounding);

}  // namespace gradplane::wire
