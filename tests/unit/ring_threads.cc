// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Built twice: as it is, and with ThreadSanitizer.
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "dataplane/ipc/doorbell.h"
#include "dataplane/ipc/ring.h"
#include "tests/support/catch.h"

using namespace gradplane::ipc;

namespace {

constexpr std::uint32_t kEntries = 200000;

Submission make(std::uint32_t i) {
  return {.round = i, .elements = i * 3, .bucket = ~i};
}
bool is_entry(const Submission& s, std::uint32_t i) {
  return s.round == i && s.elements == i * 3 && s.bucket == ~i;
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
  // Not atomic: what the arena is. ThreadSanitizer sees a race if an ordering of the ring is
  // missing.
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

TEST_CASE("no wake-up is lost between a sleeper and a waker") {
  const auto memory = std::make_unique<RingMemory<Submission>>();
  std::atomic<std::uint32_t> sleeps{0};
  std::atomic<std::uint32_t> rings{0};
  constexpr std::uint32_t kRounds = kEntries / 10;
  std::thread waking([&] {
    RingProducer<Submission> producer(*memory);
    for (std::uint32_t i = 0; i < kRounds; ++i) {
      while (!producer.push(make(i))) std::this_thread::yield();
      if (is_asleep(sleeps)) rings.fetch_add(1);
    }
  });
  // A sleeper that only a ring can wake: a lost wake-up would hang the test for ever.
  RingConsumer<Submission> consumer(*memory);
  for (std::uint32_t i = 0; i < kRounds;) {
    Submission taken{};
    if (consumer.pop(taken)) {
      ++i;
      continue;
    }
    const std::uint32_t rings_before = rings.load();
    announce_sleep(sleeps);
    while (consumer.empty() && rings.load() == rings_before) std::this_thread::yield();
    end_sleep(sleeps);
  }
  waking.join();
  CHECK(consumer.empty());
}
