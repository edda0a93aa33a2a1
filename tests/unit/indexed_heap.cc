// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/base/indexed_heap.h"

#include <map>
#include <random>

#include "tests/support/catch.h"

using namespace gradplane;

TEST_CASE("a heap agrees with a sorted map, whatever is put in, moved and taken out") {
  constexpr std::uint16_t kCapacity = 37;
  IndexedHeap<std::uint32_t> heap(kCapacity);
  std::map<std::uint16_t, std::uint32_t> model;
  std::mt19937 random(3);
  for (int n = 0; n < 20'000; ++n) {
    const auto index = static_cast<std::uint16_t>(random() % kCapacity);
    if (random() % 3 == 0) {
      heap.erase(index);
      model.erase(index);
    } else {
      const auto key = static_cast<std::uint32_t>(random() % 50);
      heap.set(index, key);
      model[index] = key;
    }
    REQUIRE(heap.empty() == model.empty());
    REQUIRE(heap.contains(index) == (model.count(index) == 1));
    if (model.empty()) continue;
    std::uint32_t least = UINT32_MAX;
    for (const auto& [i, key] : model) {
      least = std::min(least, key);
      REQUIRE(heap.key_of(i) == key);
    }
    REQUIRE(heap.top_key() == least);
    REQUIRE(model[heap.top()] == least);
  }
}
