// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/assert.h"
#include "dataplane/wire/envelope.h"
#include "dataplane/wire/gmac.h"

/// Authentication of packets. A valid tag proves that a node with the job's key has written the
/// packet, for this receiver and with this packet number. The tag is that of AES-128-GMAC, cut to
/// its first half (docs/decisions/0031-gmac.md). A cipher that also hides the payload could replace
/// it without a change to callers: they pass whole packets and their names, and get back what they
/// may read.
namespace gradplane::wire {

/// The tag is at the end of a packet. It is 0 if authentication is off.
inline constexpr std::size_t kTagBytes = 8;
/// Control packets have no tag here, because the session's datagram inside has its own.
constexpr std::size_t tag_bytes(PacketType type) {
  return type == PacketType::kControl ? 0 : kTagBytes;
}

/// The node or the group that a packet is for. No field of a packet names it, but the tag covers
/// it. It has its own type, so that nobody passes a sender instead.
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

/// The unique name of a packet under its key. A writer uses each number only once for one receiver.
struct PacketName {
  std::uint16_t writer = 0;  // the node that seals: the sender, or a relay
  Receiver receiver;
  std::uint64_t number = 0;
};

/// Finishes a packet that is no control packet. It writes the low half of the number into the
/// envelope, and the tag into the last kTagBytes of `packet`, which the caller has left free.
/// `lent` is the end of the payload, if that is not in `packet`; it will go before the tag.
void seal(std::span<std::byte> packet, const Gmac& key, const PacketName& name,
          std::span<const std::byte> lent = {});
/// The same if authentication is off.
void number_unsealed(std::span<std::byte> packet, std::uint64_t number);

/// Verifies a datagram that read_envelope() has accepted. Returns the packet without its tag, or
/// nothing if the tag does not match the packet, the key, and the name with the full number.
std::optional<std::span<const std::byte>> open(std::span<const std::byte> datagram, const Gmac& key,
                                               const PacketName& name);
/// The same if authentication is off: the bytes in place of the tag are ignored.
std::span<const std::byte> open_unsealed(std::span<const std::byte> datagram);

}  // namespace gradplane::wire
