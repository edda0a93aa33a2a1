// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/endpoint.h"

namespace gradplane::port {

/// The Internet checksum (RFC 1071). Sums are kept in the byte order of memory, so a folded
/// checksum is stored as it is. Bytes after a span of odd length begin at an odd offset.
std::uint64_t checksum_add(std::uint64_t sum, std::span<const std::byte> bytes) noexcept;
/// The same for bytes at an odd offset of the summed data.
std::uint64_t checksum_add_odd(std::uint64_t sum, std::span<const std::byte> bytes) noexcept;
/// The 16-bit sum, not inverted.
std::uint16_t checksum_fold(std::uint64_t sum) noexcept;
/// The sum over UDP's pseudo header for IPv4.
std::uint64_t udp_pseudo_sum(Ipv4 source, Ipv4 destination, std::uint16_t udp_bytes) noexcept;

}  // namespace gradplane::port
