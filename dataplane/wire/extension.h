// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/bytes.h"
#include "dataplane/model/limits.h"
#include "dataplane/wire/envelope.h"

/// The extension that a packet may have between the header of its type and its body: a source
/// route, then a coverage set. The envelope has its length, in words of 8 bytes.
namespace gradplane::wire {

/// Network-order integers inside a packet, which are read without copying.
template <std::unsigned_integral T>
class Numbers {
 public:
  Numbers() = default;
  explicit Numbers(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::size_t size() const { return bytes_.size() / sizeof(T); }
  bool empty() const { return bytes_.empty(); }
  T operator[](std::size_t i) const { return load<T>(bytes_.data() + i * sizeof(T)); }

 private:
  std::span<const std::byte> bytes_;
};

inline constexpr std::size_t kExtensionWordBytes = 8;
/// One bit for each host.
inline constexpr std::size_t kMaxCoverageWords = coverage_bytes(kMaxNodes) / kExtensionWordBytes;
/// The most nodes that a packet visits after its sender.
inline constexpr std::size_t kMaxRouteNodes = 15;
/// The words of a route: its length and the index of its next node, one byte each, and then the
/// node ids.
constexpr std::size_t route_words(std::size_t nodes) {
  const std::size_t bytes = 2 + nodes * sizeof(std::uint16_t);
  return (bytes + kExtensionWordBytes - 1) / kExtensionWordBytes;
}
inline constexpr std::size_t kRouteNextAt = 1;  // offset in the extension
inline constexpr std::size_t kMaxExtensionWords = kMaxCoverageWords + route_words(kMaxRouteNodes);
static_assert(kMaxExtensionWords <= UINT8_MAX);
static_assert(kMaxRouteNodes <= UINT8_MAX);

/// An extension that was read.
struct Extension {
  /// The hosts whose ranks are in a partial block: bit i is the i-th member of the plan with ranks.
  /// Empty if the packet has no set.
  Numbers<std::uint64_t> coverage;
  Numbers<std::uint16_t> route;  // node ids, the receiver last; empty if the packet goes directly
  std::uint8_t route_next = 0;   // index into route of the node that gets the packet next
};

/// An extension to be written. Empty fields are not written.
struct ExtensionFields {
  std::span<const std::uint64_t> coverage = {};
  std::span<const std::uint16_t> route = {};
  std::uint8_t route_next = 0;

  bool empty() const { return coverage.empty() && route.empty(); }
};

/// Reads the extension that `envelope` announces, from the front of `bytes`. kNone: `out`, which
/// must have been empty, is filled.
[[nodiscard]] ParseError read_extension(const Envelope& envelope, std::span<const std::byte> bytes,
                                        Extension& out);

/// Writes `fields` into a packet at `at`, and their flags and length into its envelope. Returns the
/// length of what it wrote at `at`.
std::size_t write_extension(std::span<std::byte> packet, std::size_t at,
                            const ExtensionFields& fields);

}  // namespace gradplane::wire
