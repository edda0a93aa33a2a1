// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <deque>
#include <random>
#include <thread>

#include "dataplane/base/fixed_queue.h"
#include "dataplane/base/spsc_queue.h"
#include "tests/support/catch.h"

using namespace gradplane;

TEST_CASE("a fixed queue keeps order and refuses what does not fit") {
  FixedQueue<int> queue(5);
  std::deque<int> model;
  std::mt19937 random(3);
  for (int step = 0; step < 5000; ++step) {
    if (random() % 2 == 0) {
      const bool fits = model.size() < 5;
      REQUIRE(queue.push(step) == fits);
      if (fits) model.push_back(step);
    } else if (!model.empty()) {
      REQUIRE(queue.front() == model.front());
      queue.pop();
      model.pop_front();
    }
    REQUIRE(queue.size() == model.size());
    REQUIRE(queue.empty() == model.empty());
    REQUIRE(queue.full() == (model.size() == 5));
  }
}

TEST_CASE("a queue between threads says how much room it surely has") {
  SpscQueue<int> queue(3);  // the capacity is rounded up to 4
  CHECK(queue.room() == 4);
  CHECK(queue.front() == nullptr);
  for (int i = 0; i < 4; ++i) CHECK(queue.push(i));
  CHECK_FALSE(queue.push(4));
  CHECK(queue.room() == 0);
  REQUIRE(queue.front() != nullptr);
  CHECK(*queue.front() == 0);
  queue.pop();
  CHECK(queue.room() == 1);
}

TEST_CASE("a queue between threads loses and repeats nothing") {
  constexpr std::uint64_t kEntries = 200'000;
  SpscQueue<std::uint64_t> queue(8);
  std::thread producer([&queue] {
    for (std::uint64_t i = 0; i < kEntries;) {
      if (queue.push(i)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  bool in_order = true;
  for (std::uint64_t expected = 0; expected < kEntries;) {
    const std::uint64_t* entry = queue.front();
    if (entry == nullptr) {
      std::this_thread::yield();
      continue;
    }
    in_order = in_order && *entry == expected;
    queue.pop();
    ++expected;
  }
  producer.join();
  CHECK(in_order);
}
