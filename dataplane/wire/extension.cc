// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/extension.h"

#include <algorithm>

#include "dataplane/base/assert.h"

namespace gradplane::wire5 {
namespace {

constexpr std::size_t kRouteIdsAt = 2;

/// The words that the route at the front of `bytes` takes, or nothing if it is not a route.
std::optional<std::size_t> read_route(std::span<const std::byte> bytes, Extension& out) {
  const auto count = load<std::uint8_t>(bytes.data());
  out.route_next = load<std::uint8_t>(bytes.data() + 1);
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

std::uint8_t ExtensionFields::flags() const {
  return static_cast<std::uint8_t>((coverage.empty() ? 0 : kFlagCoverage) |
                                   (route.empty() ? 0 : kFlagRoute));
}

std::uint8_t ExtensionFields::words() const {
  GP_ASSERT(coverage.size() <= kMaxCoverageWords && route.size() <= kMaxRouteNodes);
  const std::size_t of_route = route.empty() ? 0 : route_words(route.size());
  return static_cast<std::uint8_t>(of_route + coverage.size());
}

std::optional<Extension> read_extension(const Envelope& envelope, std::span<const std::byte> bytes,
                                        ParseError& error) {
  Extension out;
  if (envelope.extension_words == 0) return out;
  const std::size_t size = envelope.extension_words * kExtensionWordBytes;
  if (bytes.size() < size) {
    error = ParseError::kBadLength;
    return std::nullopt;
  }
  std::span<const std::byte> left = bytes.first(size);
  error = ParseError::kBadField;
  if ((envelope.flags & kFlagRoute) != 0) {
    const std::optional<std::size_t> words = read_route(left, out);
    if (!words) return std::nullopt;
    left = left.subspan(*words * kExtensionWordBytes);
  }
  const bool has_coverage = is_block(envelope.type) && (envelope.flags & kFlagCoverage) != 0;
  if (has_coverage == left.empty()) return std::nullopt;
  if (left.size() > kMaxCoverageWords * kExtensionWordBytes) return std::nullopt;
  out.coverage = Numbers<std::uint64_t>(left);
  return out;
}

void write_extension(std::span<std::byte> out, const ExtensionFields& fields) {
  const std::size_t size = fields.words() * kExtensionWordBytes;
  GP_ASSERT(out.size() >= size && fields.route_next <= fields.route.size());
  std::byte* at = out.data();
  if (!fields.route.empty()) {
    const std::size_t route_bytes = route_words(fields.route.size()) * kExtensionWordBytes;
    std::fill_n(at, route_bytes, std::byte{});
    store(at, static_cast<std::uint8_t>(fields.route.size()));
    store(at + 1, fields.route_next);
    for (std::size_t i = 0; i < fields.route.size(); ++i) {
      store(at + kRouteIdsAt + i * sizeof(std::uint16_t), fields.route[i]);
    }
    at += route_bytes;
  }
  for (const std::uint64_t word : fields.coverage) {
    store(at, word);
    at += kExtensionWordBytes;
  }
}

}  // namespace gradplane::wire5
