// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Rings between threads. This test is built twice: as it is, and with ThreadSanitizer.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "dataplane/ipc/doorbell.h"
#include "dataplane/ipc/ring.h"
#include "tests/support/catch.h"

using namespace gradplane::ipc;

namespace {

constexpr std::uint32_t kEntries = 200000;

Submission make(std::uint32_t i) {
  return {.round = i, .elements = i * 3, .bucket = static_cast<std::uint16_t>(~i)};
}
bool is_entry(const Submission& s, std::uint32_t i) {
  return s.round == i && s.elements == i * 3 && s.bucket == static_cast<std::uint16_t>(~i);
}

}  // namespace

TEST_CASE("two threads pass every entry once, whole and in order") {
  const auto memory = std::make_unique<RingMemory<Submission>>();
  std::thread producing([&memory] {
    RingProducer<Submission> producer(*memory);
    for (std::uint32_t i = 0; i < kEntries;) {
      if (producer.push(make(i))) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  RingConsumer<Submission> consumer(*memory);
  std::uint32_t wrong_count = 0;
  for (std::uint32_t i = 0; i < kEntries && !consumer.broken();) {
    Submission taken{};
    if (consumer.pop(taken)) {
      wrong_count += is_entry(taken, i) ? 0 : 1;
      ++i;
    } else {
      std::this_thread::yield();
    }
  }
  producing.join();
  CHECK(wrong_count == 0);
  CHECK_FALSE(consumer.broken());
  CHECK(consumer.empty());
}

TEST_CASE("plain memory written before a push is seen after the pop") {
  const auto memory = std::make_unique<RingMemory<Submission>>();
  constexpr std::uint32_t kSlots = 16;
  // The slots are not atomic, like those of the arena. If the ring lacks a memory ordering,
  // ThreadSanitizer sees a race.
  std::uint32_t slots[kSlots] = {};
  std::atomic<std::uint32_t> taken_count{0};
  std::thread producing([&] {
    RingProducer<Submission> producer(*memory);
    for (std::uint32_t i = 0; i < kEntries / 10; ++i) {
      while (i - taken_count.load(std::memory_order_acquire) >= kSlots) std::this_thread::yield();
      slots[i % kSlots] = i;
      while (!producer.push(make(i))) std::this_thread::yield();
    }
  });
  RingConsumer<Submission> consumer(*memory);
  std::uint32_t wrong_count = 0;
  for (std::uint32_t i = 0; i < kEntries / 10;) {
    Submission taken{};
    if (!consumer.pop(taken)) {
      std::this_thread::yield();
      continue;
    }
    wrong_count += slots[taken.round % kSlots] == i ? 0 : 1;
    taken_count.store(++i, std::memory_order_release);
  }
  producing.join();
  CHECK(wrong_count == 0);
}

TEST_CASE("what a consumer did before it took an entry is seen once its place is free") {
  const auto memory = std::make_unique<RingMemory<Submission>>();
  constexpr std::uint32_t kRounds = kEntries / 10;
  std::vector<std::uint32_t> log(kRounds);  // not atomic, as above
  std::uint32_t wrong_count = 0;
  std::thread producing([&] {
    RingProducer<Submission> producer(*memory);
    for (std::uint32_t i = 0; i < kRounds; ++i) {
      while (!producer.push(make(i))) std::this_thread::yield();
      if (i >= kRingEntries) wrong_count += log[i - kRingEntries] == i ? 0 : 1;
    }
  });
  RingConsumer<Submission> consumer(*memory);
  for (std::uint32_t i = 0; i < kRounds;) {
    Submission taken{};
    if (consumer.empty()) {
      std::this_thread::yield();
      continue;
    }
    log[i] = i + kRingEntries;
    if (consumer.pop(taken)) ++i;
  }
  producing.join();
  CHECK(wrong_count == 0);
}

TEST_CASE("no wake-up is lost between a sleeper and a waker") {
  const auto memory = std::make_unique<RingMemory<Submission>>();
  std::atomic<std::uint32_t> sleeps{0};
  std::atomic<std::uint32_t> rings{0};
  std::atomic<bool> lost{false};
  constexpr std::uint32_t kRounds = kEntries / 10;
  std::thread waking([&] {
    RingProducer<Submission> producer(*memory);
    for (std::uint32_t i = 0; i < kRounds && !lost.load(); ++i) {
      while (!producer.push(make(i)) && !lost.load()) std::this_thread::yield();
      if (is_asleep(sleeps)) rings.fetch_add(1);
    }
  });
  // A sleeper wakes only by a ring. If a ring is lost, this bound ends the test.
  const auto bound = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  RingConsumer<Submission> consumer(*memory);
  for (std::uint32_t i = 0; i < kRounds && !lost.load();) {
    Submission taken{};
    if (consumer.pop(taken)) {
      ++i;
      continue;
    }
    const std::uint32_t rings_before = rings.load();
    announce_sleep(sleeps);
    if (consumer.empty()) {
      while (rings.load() == rings_before && !lost.load()) {
        std::this_thread::yield();
        lost.store(std::chrono::steady_clock::now() > bound);
      }
    }
    end_sleep(sleeps);
  }
  waking.join();
  CHECK_FALSE(lost.load());
}
