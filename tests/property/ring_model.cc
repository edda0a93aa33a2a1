// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <deque>
#include <memory>
#include <random>

#include "dataplane/ipc/ring.h"
#include "tests/support/catch.h"

using namespace gradplane::ipc;

TEST_CASE("any interleaving of push and pop behaves as a bounded queue") {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto memory = std::make_unique<RingMemory<Completion>>();
    RingProducer<Completion> producer(*memory);
    RingConsumer<Completion> consumer(*memory);
    std::deque<std::uint32_t> model;
    std::uint32_t next = 0;
    const std::uint32_t push_of_8 = 1 + seed % 7;
    for (int step = 0; step < 2000; ++step) {
      if (random() % 8 < push_of_8) {
        const bool pushed = producer.push({.round = next, .contributors = next ^ 0x55u});
        REQUIRE(pushed == (model.size() < kRingEntries));
        if (pushed) model.push_back(next++);
      } else {
        Completion taken{};
        REQUIRE(consumer.pop(taken) == !model.empty());
        if (model.empty()) continue;
        REQUIRE(taken.round == model.front());
        REQUIRE(taken.contributors == (model.front() ^ 0x55u));
        model.pop_front();
      }
    }
    REQUIRE_FALSE(producer.broken());
    REQUIRE_FALSE(consumer.broken());
  }
}

TEST_CASE("whatever the other side writes, an end stops or takes at most what a ring holds") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto to_us = std::make_unique<RingMemory<Completion>>();
    const auto from_us = std::make_unique<RingMemory<Completion>>();
    RingConsumer<Completion> consumer(*to_us);
    RingProducer<Completion> producer(*from_us);
    std::uint32_t taken_count = 0;
    std::uint32_t pushed_count = 0;
    for (int step = 0; step < 100; ++step) {
      const std::uint32_t near_count = taken_count + static_cast<std::uint32_t>(random() % 40) - 2;
      const std::uint32_t tail =
          random() % 4 == 0 ? static_cast<std::uint32_t>(random()) : near_count;
      to_us->tail.store(tail);
      from_us->head.store(pushed_count - static_cast<std::uint32_t>(random() % 36));
      std::uint32_t burst_count = 0;
      Completion taken{};
      while (consumer.pop(taken)) ++burst_count;
      REQUIRE(burst_count <= kRingEntries);
      taken_count += burst_count;
      burst_count = 0;
      while (burst_count <= kRingEntries && producer.push({})) ++burst_count;
      REQUIRE(burst_count <= kRingEntries);
      pushed_count += burst_count;
    }
  }
}
