// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/assert.h"
#include "dataplane/wire/envelope.h"

/// What makes a packet one that only a node with the job's key can have written, and only for this
/// receiver and this packet number. The tag is SipHash-2-4. A cipher can take its place without a
/// change to those who call: they give whole packets, key, receiver and number, and get back what
/// they may read.
namespace gradplane::wire {

using Key = std::array<std::byte, 16>;

/// The tag is at the end of a packet. It is 0 where authentication is off.
inline constexpr std::size_t kTagBytes = 8;
/// Control packets have no tag here: the session's datagram inside has one of its own.
constexpr std::size_t tag_bytes(PacketType type) {
  return type == PacketType::kControl ? 0 : kTagBytes;
}

/// The node or the group of nodes that a packet is for. No field of a packet names it, but the tag
/// covers it. It is a type of its own so that nobody can pass a sender in its place.
class Receiver {
 public:
  static constexpr Receiver node(std::uint16_t id) {
    GP_ASSERT(id < kFirstGroup);
    return Receiver(id);
  }
  static constexpr Receiver group(std::uint16_t id) {
    GP_ASSERT(id < kFirstGroup);
    return Receiver(static_cast<std::uint16_t>(kFirstGroup + id));
  }
  constexpr std::uint16_t covered() const { return covered_; }

 private:
  static constexpr std::uint16_t kFirstGroup = 0x8000;
  static_assert(kMaxNodes <= kFirstGroup);

  constexpr explicit Receiver(std::uint16_t covered) : covered_(covered) {}
  std::uint16_t covered_;
};

/// Finishes a packet that is not of control. It writes the low half of `number` into the envelope
/// and the tag into the last kTagBytes of `packet`, which the caller has left room for. A number is
/// used once under a key by one sender to one receiver.
void seal(std::span<std::byte> packet, const Key& key, Receiver receiver, std::uint64_t number);
/// The same where authentication is off.
void number_unsealed(std::span<std::byte> packet, std::uint64_t number);

/// The packet without its tag, or nothing if the tag fits neither the packet nor the key, the
/// receiver and the full packet number. read_envelope() has taken the datagram.
std::optional<std::span<const std::byte>> open(std::span<const std::byte> datagram, const Key& key,
                                               Receiver receiver, std::uint64_t number);
/// The same where authentication is off: whatever stands in the place of the tag is ignored.
std::span<const std::byte> open_unsealed(std::span<const std::byte> datagram);

}  // namespace gradplane::wire
