// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/seal.h"

#include "dataplane/base/bytes.h"
#include "dataplane/base/siphash.h"

namespace gradplane::wire {
namespace {

/// What the tag covers before the packet itself: 16 bits of the receiver, 16 zeros, and the high
/// half of the packet number. The low half is in the envelope.
std::uint64_t tag_of(std::span<const std::byte> untagged, const Key& key, Receiver receiver,
                     std::uint64_t number) {
  constexpr int kReceiverShift = 48;
  constexpr int kHalf = 32;
  std::array<std::byte, sizeof(std::uint64_t)> covered;
  store(covered.data(), std::uint64_t{receiver.covered()} << kReceiverShift | number >> kHalf);
  return siphash24(key, covered, untagged);
}

void finish(std::span<std::byte> packet, std::uint64_t number) {
  GP_ASSERT(packet.size() >= kEnvelopeBytes + kTagBytes);
  store(packet.data() + kNumberAt, static_cast<std::uint32_t>(number));
}

}  // namespace

void seal(std::span<std::byte> packet, const Key& key, Receiver receiver, std::uint64_t number) {
  finish(packet, number);
  const std::span<std::byte> untagged = packet.first(packet.size() - kTagBytes);
  store(untagged.data() + untagged.size(), tag_of(untagged, key, receiver, number));
}

void number_unsealed(std::span<std::byte> packet, std::uint64_t number) {
  finish(packet, number);
  store(packet.data() + packet.size() - kTagBytes, std::uint64_t{0});
}

std::optional<std::span<const std::byte>> open(std::span<const std::byte> datagram, const Key& key,
                                               Receiver receiver, std::uint64_t number) {
  const std::span<const std::byte> untagged = open_unsealed(datagram);
  const auto tag = load<std::uint64_t>(untagged.data() + untagged.size());
  if (tag != tag_of(untagged, key, receiver, number)) return std::nullopt;
  return untagged;
}

std::span<const std::byte> open_unsealed(std::span<const std::byte> datagram) {
  GP_ASSERT(datagram.size() >= kEnvelopeBytes + kTagBytes);
  return datagram.first(datagram.size() - kTagBytes);
}

}  // namespace gradplane::wire
