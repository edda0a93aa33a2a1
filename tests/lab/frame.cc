// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/lab/frame.h"

#include "dataplane/base/assert.h"

namespace gradplane::lab {
namespace {

constexpr std::size_t kMacBytes = 6;
constexpr std::size_t kEtherTypeOffset = 12;
constexpr std::uint32_t kEtherTypeIpv4 = 0x0800;
constexpr std::size_t kIpv4HeaderBytes = 20;
constexpr std::size_t kVersionOffset = kEthernetHeaderBytes;
constexpr std::size_t kTosOffset = kEthernetHeaderBytes + 1;
constexpr std::size_t kChecksumOffset = kEthernetHeaderBytes + 10;
constexpr std::uint32_t kEcnBits = 3;

std::uint64_t read_mac(std::span<const std::byte> bytes) {
  std::uint64_t mac = 0;
  for (const std::byte byte : bytes.first(kMacBytes)) {
    mac = mac << 8 | std::to_integer<std::uint64_t>(byte);
  }
  return mac;
}

std::uint32_t read_u16(std::span<const std::byte> bytes, std::size_t offset) {
  return std::to_integer<std::uint32_t>(bytes[offset]) << 8 |
         std::to_integer<std::uint32_t>(bytes[offset + 1]);
}

}  // namespace

std::uint64_t destination_mac(std::span<const std::byte> frame) {
  return read_mac(frame);
}

std::uint64_t source_mac(std::span<const std::byte> frame) {
  return read_mac(frame.subspan(kMacBytes));
}

bool is_group(std::uint64_t mac) {
  return (mac >> 40 & 1) != 0;
}

bool is_ecn_capable(std::span<const std::byte> frame) {
  return frame.size() >= kEthernetHeaderBytes + kIpv4HeaderBytes &&
         read_u16(frame, kEtherTypeOffset) == kEtherTypeIpv4 &&
         std::to_integer<std::uint32_t>(frame[kVersionOffset]) >> 4 == 4 &&
         (std::to_integer<std::uint32_t>(frame[kTosOffset]) & kEcnBits) != 0;
}

void mark_congestion(std::span<std::byte> frame) {
  GP_ASSERT(is_ecn_capable(frame));
  const std::uint32_t before = read_u16(frame, kVersionOffset);
  const std::uint32_t after = before | kEcnBits;
  frame[kTosOffset] = static_cast<std::byte>(after & 0xff);
  // RFC 1624, equation 3.
  std::uint32_t sum = (~read_u16(frame, kChecksumOffset) & 0xffff) + (~before & 0xffff) + after;
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  const std::uint32_t checksum = ~sum & 0xffff;
  frame[kChecksumOffset] = static_cast<std::byte>(checksum >> 8);
  frame[kChecksumOffset + 1] = static_cast<std::byte>(checksum & 0xff);
}

}  // namespace gradplane::lab
