// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/wire/block.h"
#include "dataplane/wire/envelope.h"
#include "dataplane/wire/seal.h"

/// Packets without a block, which only serve to measure the link.
namespace gradplane::wire {

/// A packet of a sounding, or an answer. A sounding's packet is as long as one with a full block of
/// its job, so that the link needs the same time for it. An answer has no padding.
struct Sounding {
  std::uint16_t epoch = 0;  // the plan's epoch, modulo 2^16
  /// The sender's measurement, in kRoundTripUnit; 0: none yet.
  std::uint16_t round_trip = 0;
  /// In a sounding: its number among those from this sender to this receiver, from 1 on; all its
  /// packets have the same. In an answer: the number of the sounding that it answers.
  std::uint32_t number = 0;
  /// In an answer: the sending time of the packet that it answers. Otherwise 0.
  std::uint32_t echo_us = 0;
  bool is_answer = false;
};
inline constexpr std::size_t kSoundingFixedBytes = 12;  // between the envelope and the padding
inline constexpr std::size_t kSoundingAnswerBytes =
    kEnvelopeBytes + kSoundingFixedBytes + kTagBytes;
static_assert(kSoundingAnswerBytes < kBlockOverheadBytes, "a sounding's packet has padding");

/// The length of a sounding's packet, in a job with blocks of `block_bytes`.
constexpr std::size_t sounding_bytes(std::size_t block_bytes) {
  return kBlockOverheadBytes + block_bytes;
}

/// Reads a packet, and checks everything after the envelope except the padding. `packet` is without
/// tag; see open(). kNone: `out` is filled.
[[nodiscard]] ParseError read_sounding(const Envelope& envelope, std::span<const std::byte> packet,
                                       Sounding& out);

/// Writes a packet of a sounding with padding that fills `out` (sounding_bytes()), or an answer at
/// the beginning of `out`. Leaves room for the tag. Returns the length of the whole packet,
/// including the tag.
std::size_t write_sounding(std::span<std::byte> out, const Envelope& envelope,
                           const Sounding& sounding);

}  // namespace gradplane::wire
