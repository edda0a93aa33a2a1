// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/seal.h"

#include "dataplane/base/bytes.h"

namespace gradplane::wire {
namespace {

/// The tag covers the packet. Through the nonce it also covers what no field has: the writer, the
/// receiver, and the high half of the number.
std::uint64_t tag_of(std::span<const std::byte> untagged, const Gmac& key, const PacketName& name,
                     std::span<const std::byte> lent = {}) {
  Gmac::Nonce nonce;
  store(nonce.data(), name.writer);
  store(nonce.data() + 2, name.receiver.covered());
  store(nonce.data() + 4, name.number);
  const Gmac::Tag whole = key.tag(nonce, untagged, lent);
  return load<std::uint64_t>(whole.data());
}

void finish(std::span<std::byte> packet, std::uint64_t number) {
  GP_ASSERT(packet.size() >= kEnvelopeBytes + kTagBytes);
  store(packet.data() + kNumberAt, static_cast<std::uint32_t>(number));
}

}  // namespace

void seal(std::span<std::byte> packet, const Gmac& key, const PacketName& name,
          std::span<const std::byte> lent) {
  finish(packet, name.number);
  const std::span<std::byte> untagged = packet.first(packet.size() - kTagBytes);
  store(untagged.data() + untagged.size(), tag_of(untagged, key, name, lent));
}

void number_unsealed(std::span<std::byte> packet, std::uint64_t number) {
  finish(packet, number);
  store(packet.data() + packet.size() - kTagBytes, std::uint64_t{0});
}

std::optional<std::span<const std::byte>> open(std::span<const std::byte> datagram, const Gmac& key,
                                               const PacketName& name) {
  const std::span<const std::byte> untagged = open_unsealed(datagram);
  const auto tag = load<std::uint64_t>(untagged.data() + untagged.size());
  if (tag != tag_of(untagged, key, name)) return std::nullopt;
  return untagged;
}

std::span<const std::byte> open_unsealed(std::span<const std::byte> datagram) {
  GP_ASSERT(datagram.size() >= kEnvelopeBytes + kTagBytes);
  return datagram.first(datagram.size() - kTagBytes);
}

}  // namespace gradplane::wire
