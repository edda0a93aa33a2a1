// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/rss.h"

#include <algorithm>

#include "dataplane/base/assert.h"

namespace gradplane::port {
namespace {

/// Of the last bit of the destination port, counted from the first bit of the source address.
constexpr std::size_t kLastBit = 95;
constexpr std::size_t kHashBits = 32;
/// The bit of the key that the last bit of the port puts at place kRssBits - 1 of the hash. The bit
/// before the last one puts it one place lower, and those before the last kRssBits past its end.
constexpr std::size_t kKeyBit = kLastBit + kHashBits - kRssBits;
static_assert(kKeyBit / 8 < kMinRssKeyBytes);

/// Bits in reverse order: the last bit of the port is the highest of the hash.
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
