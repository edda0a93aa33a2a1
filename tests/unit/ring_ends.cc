// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstdint>
#include <memory>

#include "dataplane/ipc/ring.h"
#include "tests/support/catch.h"

using namespace gradplane::ipc;

namespace {

struct Ring {
  std::unique_ptr<RingMemory<Submission>> memory = std::make_unique<RingMemory<Submission>>();
  RingProducer<Submission> producer{*memory};
  RingConsumer<Submission> consumer{*memory};

  bool push(std::uint32_t round) {
    return producer.push(
        {.round = round, .elements = round + 1, .bucket = static_cast<std::uint16_t>(~round)});
  }
  void fill() {
    for (std::uint32_t round = 0; round < kRingEntries; ++round) REQUIRE(push(round));
  }
};

}  // namespace

TEST_CASE("an empty ring gives nothing") {
  Ring ring;
  Submission taken{};
  CHECK(ring.consumer.empty());
  CHECK_FALSE(ring.consumer.pop(taken));
  CHECK_FALSE(ring.consumer.broken());
}

TEST_CASE("entries come out whole and in order") {
  Ring ring;
  ring.fill();
  CHECK_FALSE(ring.consumer.empty());
  for (std::uint32_t round = 0; round < kRingEntries; ++round) {
    Submission taken{};
    REQUIRE(ring.consumer.pop(taken));
    REQUIRE(taken.round == round);
    REQUIRE(taken.elements == round + 1);
    REQUIRE(taken.bucket == static_cast<std::uint16_t>(~round));
  }
  CHECK(ring.consumer.empty());
}

TEST_CASE("a full ring refuses, and takes again after one was taken") {
  Ring ring;
  ring.fill();
  CHECK_FALSE(ring.push(99));
  CHECK_FALSE(ring.producer.broken());
  Submission taken{};
  REQUIRE(ring.consumer.pop(taken));
  CHECK(ring.push(99));
  CHECK_FALSE(ring.push(100));
  for (std::uint32_t i = 1; i <= kRingEntries; ++i) REQUIRE(ring.consumer.pop(taken));
  CHECK(taken.round == 99);
}

TEST_CASE("a consumer that meets an impossible tail is broken for good") {
  for (const std::uint32_t tail : {kRingEntries + 1, 0x80000000u, 0xffffffffu}) {
    Ring ring;
    ring.memory->tail.store(tail);
    Submission taken{};
    CHECK_FALSE(ring.consumer.pop(taken));
    CHECK(ring.consumer.broken());
    ring.memory->tail.store(1);  // a correct tail does not repair the ring
    CHECK_FALSE(ring.consumer.pop(taken));
    CHECK(ring.consumer.empty());
  }
}

TEST_CASE("a tail that runs backwards breaks the consumer") {
  Ring ring;
  REQUIRE(ring.push(0));
  REQUIRE(ring.push(1));
  Submission taken{};
  REQUIRE(ring.consumer.pop(taken));
  REQUIRE(ring.consumer.pop(taken));
  ring.memory->tail.store(1);
  CHECK_FALSE(ring.consumer.pop(taken));
  CHECK(ring.consumer.broken());
}

TEST_CASE("the consumer's own index is not read back") {
  Ring ring;
  REQUIRE(ring.push(7));
  ring.memory->head.store(12345);
  Submission taken{};
  REQUIRE(ring.consumer.pop(taken));
  CHECK(taken.round == 7);
  CHECK(ring.memory->head.load() == 1);
}

TEST_CASE("a producer that meets an impossible head is broken for good") {
  for (const std::uint32_t head : {kRingEntries + 1, 0x80000000u, 0xffffffffu}) {
    Ring ring;
    ring.fill();
    ring.memory->head.store(head);
    CHECK_FALSE(ring.push(99));
    CHECK(ring.producer.broken());
    ring.memory->head.store(1);
    CHECK_FALSE(ring.push(99));
  }
}

TEST_CASE("the producer's own index is not read back") {
  Ring ring;
  REQUIRE(ring.push(1));
  ring.memory->tail.store(77);
  REQUIRE(ring.push(2));
  CHECK(ring.memory->tail.load() == 2);
}
