// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/stream_copy.h"

#include <vector>

#include "tests/support/catch.h"

using namespace gradplane;

TEST_CASE("a copy past the caches has every byte, and touches none beside") {
  constexpr std::size_t kLongest = 400;
  constexpr std::byte kUntouched{0xee};
  std::vector<std::byte> from(kLongest + 64);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 37 + 1);
  for (std::size_t to_offset = 0; to_offset < 64; ++to_offset) {
    const std::size_t from_offset = to_offset * 7 % 64;
    for (std::size_t bytes = 0; bytes <= kLongest; ++bytes) {
      std::vector<std::byte> to(64 + kLongest + 64, kUntouched);
      shim::stream_copy(to.data() + to_offset, from.data() + from_offset, bytes);
      bool correct = true;
      for (std::size_t i = 0; i < to.size(); ++i) {
        const bool is_copied = i >= to_offset && i - to_offset < bytes;
        const std::byte wanted = is_copied ? from[from_offset + i - to_offset] : kUntouched;
        correct = correct && to[i] == wanted;
      }
      CAPTURE(to_offset, bytes);
      REQUIRE(correct);
    }
  }
}
