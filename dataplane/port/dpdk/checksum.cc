// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/checksum.h"

#include <cstring>

#include "dataplane/base/bytes.h"

namespace gradplane::port {

// Adds 32-bit words to a 64-bit sum. So no carry occurs for less than 16 GiB, and the compiler
// vectorises the loop.
std::uint64_t checksum_add(std::uint64_t sum, std::span<const std::byte> bytes) noexcept {
  const std::byte* at = bytes.data();
  const std::size_t words = bytes.size() / 4;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint32_t word;
    std::memcpy(&word, at + i * 4, 4);
    sum += word;
  }
  const std::size_t rest = bytes.size() - words * 4;
  if (rest > 0) {
    std::uint32_t word = 0;
    std::memcpy(&word, at + words * 4, rest);
    sum += word;
  }
  return sum;
}

// Swapping the bytes of each word swaps those of the sum (RFC 1071, section 2 B).
std::uint64_t checksum_add_odd(std::uint64_t sum, std::span<const std::byte> bytes) noexcept {
  return sum + __builtin_bswap16(checksum_fold(checksum_add(0, bytes)));
}

std::uint16_t checksum_fold(std::uint64_t sum) noexcept {
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

std::uint64_t udp_pseudo_sum(Ipv4 source, Ipv4 destination, std::uint16_t udp_bytes) noexcept {
  constexpr std::uint32_t kUdp = 17;
  std::uint64_t sum = 0;
  sum += to_network_order(source.value);
  sum += to_network_order(destination.value);
  sum += to_network_order(kUdp << 16 | udp_bytes);
  return sum;
}

}  // namespace gradplane::port
