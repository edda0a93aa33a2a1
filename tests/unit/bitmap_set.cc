// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <random>
#include <set>

#include "dataplane/base/bitmap.h"
#include "tests/support/catch.h"

using gradplane::Bitmap;

TEST_CASE("a bitmap is a set of small numbers") {
  const std::size_t size = GENERATE(1u, 63u, 64u, 65u, 128u, 200u);
  Bitmap bitmap(256);
  bitmap.reset(size);
  std::set<std::size_t> model;
  std::mt19937 random(7);
  for (int step = 0; step < 2000; ++step) {
    const std::size_t i = random() % size;
    if (random() % 2 == 0) {
      bitmap.set(i);
      model.insert(i);
    } else {
      bitmap.clear(i);
      model.erase(i);
    }
    const std::size_t from = random() % (size + 3);
    const auto next = model.lower_bound(from);
    REQUIRE(bitmap.test(i) == (model.count(i) == 1));
    REQUIRE(bitmap.count() == model.size());
    REQUIRE(bitmap.next_set(from) == (next == model.end() ? Bitmap::kNone : *next));
  }
}

TEST_CASE("bits past the size are always 0") {
  Bitmap bitmap(128);
  bitmap.reset(70);
  bitmap.set_all();
  CHECK(bitmap.count() == 70);
  CHECK(bitmap.word(1) == 63);
  bitmap.set_word(1, ~std::uint64_t{0});
  CHECK(bitmap.word(1) == 63);
  CHECK(bitmap.full_word(0) == ~std::uint64_t{0});
  CHECK(bitmap.next_set(70) == Bitmap::kNone);
  bitmap.reset(128);
  CHECK(bitmap.count() == 0);
  bitmap.reset(0);
  CHECK(bitmap.words_in_use() == 0);
  CHECK(bitmap.next_set(0) == Bitmap::kNone);
}

TEST_CASE("a range adds exactly its numbers") {
  Bitmap bitmap(200);
  for (std::size_t begin = 0; begin < 200; ++begin) {
    for (std::size_t end = begin; end <= 200; ++end) {
      bitmap.reset(200);
      bitmap.set_range(begin, end);
      REQUIRE(bitmap.count() == end - begin);
      if (begin == end) continue;
      REQUIRE(bitmap.next_set(0) == begin);
      REQUIRE(bitmap.test(end - 1));
    }
  }
}
