// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/extension.h"

#include <algorithm>
#include <optional>

#include "dataplane/base/assert.h"

namespace gradplane::wire {
namespace {

constexpr std::size_t kRouteIdsAt = 2;

/// Reads the route at the front of `bytes`. Returns its length in words, or nothing if it is no
/// valid route.
std::optional<std::size_t> read_route(std::span<const std::byte> bytes, Extension& out) {
  const auto count = load<std::uint8_t>(bytes.data());
  out.route_next = load<std::uint8_t>(bytes.data() + kRouteNextAt);
  const std::size_t words = route_words(count);
  if (count == 0 || count > kMaxRouteNodes || out.route_next > count) return std::nullopt;
  if (bytes.size() < words * kExtensionWordBytes) return std::nullopt;
  const std::size_t end = kRouteIdsAt + count * sizeof(std::uint16_t);
  const auto padding = bytes.subspan(end, words * kExtensionWordBytes - end);
  if (std::any_of(padding.begin(), padding.end(), [](std::byte b) { return b != std::byte{}; })) {
    return std::nullopt;
  }
  out.route = Numbers<std::uint16_t>(bytes.subspan(kRouteIdsAt, end - kRouteIdsAt));
  return words;
}

}  // namespace

ParseError read_extension(const Envelope& envelope, std::span<const std::byte> bytes,
                          Extension& out) {
  const std::size_t size = envelope.extension_words * kExtensionWordBytes;
  if (bytes.size() < size) return ParseError::kBadLength;
  std::span<const std::byte> left = bytes.first(size);
  if ((envelope.flags & kFlagRoute) != 0) {
    const std::optional<std::size_t> words = read_route(left, out);
    if (!words) return ParseError::kBadField;
    left = left.subspan(*words * kExtensionWordBytes);
  }
  const bool has_coverage = is_block(envelope.type) && (envelope.flags & kFlagCoverage) != 0;
  if (has_coverage == left.empty()) return ParseError::kBadField;
  if (left.size() > kMaxCoverageWords * kExtensionWordBytes) return ParseError::kBadField;
  out.coverage = Numbers<std::uint64_t>(left);
  return ParseError::kNone;
}

std::size_t write_extension(std::span<std::byte> packet, std::size_t at,
                            const ExtensionFields& fields) {
  GP_ASSERT(fields.coverage.size() <= kMaxCoverageWords);
  GP_ASSERT(fields.route.size() <= kMaxRouteNodes && fields.route_next <= fields.route.size());
  const std::size_t of_route = fields.route.empty() ? 0 : route_words(fields.route.size());
  const std::size_t words = of_route + fields.coverage.size();
  GP_ASSERT(packet.size() >= at + words * kExtensionWordBytes);
  auto flags = load<std::uint8_t>(packet.data() + kFlagsAt);
  if (!fields.coverage.empty()) flags |= kFlagCoverage;
  if (!fields.route.empty()) flags |= kFlagRoute;
  store(packet.data() + kFlagsAt, flags);
  store(packet.data() + kExtensionWordsAt, static_cast<std::uint8_t>(words));

  std::byte* out = packet.data() + at;
  if (!fields.route.empty()) {
    std::fill_n(out, of_route * kExtensionWordBytes, std::byte{});
    store(out, static_cast<std::uint8_t>(fields.route.size()));
    store(out + kRouteNextAt, fields.route_next);
    for (std::size_t i = 0; i < fields.route.size(); ++i) {
      store(out + kRouteIdsAt + i * sizeof(std::uint16_t), fields.route[i]);
    }
    out += of_route * kExtensionWordBytes;
  }
  for (const std::uint64_t word : fields.coverage) {
    store(out, word);
    out += kExtensionWordBytes;
  }
  return words * kExtensionWordBytes;
}

}  // namespace gradplane::wire
