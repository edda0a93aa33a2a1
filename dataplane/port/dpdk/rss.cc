// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/rss.h"

#include <algorithm>

#include "dataplane/base/assert.h"

namespace gradplane::port {
namespace {

/// The place of the destination port's last bit, counted from the first bit of the source address.
constexpr std::size_t kLastBit = 95;
constexpr std::size_t kHashBits = 32;
/// The key's set bit. The last bit of the port moves it to place kRssBits - 1 of the hash, the bit
/// before the last one to the next lower place. Bits before the last kRssBits move it past the end
/// of the hash.
constexpr std::size_t kKeyBit = kLastBit + kHashBits - kRssBits;
static_assert(kKeyBit / 8 < kMinRssKeyBytes);

/// Reverses the bits, because the last bit of the port is the highest bit of the hash.
constexpr std::size_t reversed(std::size_t bits) {
  std::size_t result = 0;
  for (std::size_t b = 0; b < kRssBits; ++b) result |= (bits >> b & 1) << (kRssBits - 1 - b);
  return result;
}

}  // namespace

void write_rss_key(std::span<std::uint8_t> key) {
  GP_ASSERT(key.size() >= kMinRssKeyBytes);
  std::fill(key.begin(), key.end(), std::uint8_t{0});
  key[kKeyBit / 8] = static_cast<std::uint8_t>(0x80U >> kKeyBit % 8);
}

std::size_t queue_of_rss_hash(const Steering& steering, std::size_t hash) {
  constexpr std::size_t kMask = (std::size_t{1} << kRssBits) - 1;
  const std::size_t ahead = (reversed(hash & kMask) - steering.first_udp_port) & kMask;
  return steering.queue_of(static_cast<std::uint16_t>(steering.first_udp_port + ahead));
}

}  // namespace gradplane::port
