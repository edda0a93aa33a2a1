// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace gradplane {

namespace detail {

/// The state of one SipHash-2-4 computation: it takes whole words and returns one number.
class SipState {
 public:
  explicit SipState(const std::array<std::byte, 16>& key) {
    std::uint64_t k[2];
    std::memcpy(k, key.data(), sizeof k);
    v0_ = 0x736f6d6570736575 ^ k[0];
    v1_ = 0x646f72616e646f6d ^ k[1];
    v2_ = 0x6c7967656e657261 ^ k[0];
    v3_ = 0x7465646279746573 ^ k[1];
  }

  void absorb(std::uint64_t word) {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
  }

  /// Absorbs the whole words of `bytes`. Returns the rest, which is less than a word.
  std::span<const std::byte> absorb_words(std::span<const std::byte> bytes) {
    while (bytes.size() >= sizeof(std::uint64_t)) {
      std::uint64_t word;
      std::memcpy(&word, bytes.data(), sizeof word);
      absorb(word);
      bytes = bytes.subspan(sizeof word);
    }
    return bytes;
  }

  std::uint64_t finish() {
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void round() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v1_;
    v0_ += v3_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_;
};

}  // namespace detail

/// SipHash-2-4 of the concatenation a|b under a 128-bit key: a tag that nobody without the key can
/// make. Does not copy or allocate. Any thread, including poll cores.
inline std::uint64_t siphash24(const std::array<std::byte, 16>& key, std::span<const std::byte> a,
                               std::span<const std::byte> b = {}) {
  detail::SipState state(key);
  const std::span<const std::byte> left = state.absorb_words(a);

  // The word that spans the end of a and the begin of b is filled byte by byte, with at most seven
  // bytes of each.
  std::uint64_t word = 0;
  std::size_t held = 0;
  const auto take = [&](std::byte byte) {
    word |= std::to_integer<std::uint64_t>(byte) << (8 * held);
    ++held;
  };
  for (const std::byte byte : left) take(byte);
  std::span<const std::byte> rest = b;
  while (held > 0 && held < sizeof word && !rest.empty()) {
    take(rest.front());
    rest = rest.subspan(1);
  }
  if (held == sizeof word) {
    state.absorb(word);
    word = 0;
    held = 0;
  }
  if (held == 0) rest = state.absorb_words(rest);
  for (const std::byte byte : rest) take(byte);

  const std::uint64_t length = a.size() + b.size();
  state.absorb(word | (length << 56));
  return state.finish();
}

}  // namespace gradplane
