// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <cstring>
#include <vector>

#include "dataplane/aggregate/accumulator.h"
#include "tests/support/catch.h"

using namespace gradplane;
using aggregate::Accumulator;

namespace {

const std::vector<std::uint64_t> kSomebody{1};

std::vector<std::byte> floats(std::size_t count, float value) {
  std::vector<std::byte> bytes(count * sizeof value);
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
  return bytes;
}

float first_float(std::span<const std::byte> bytes) {
  float value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

TEST_CASE("a block is complete when its last source is in, and names all contributors") {
  const Geometry geometry = Geometry::of(ElementType::kFloat32, 300, 512);  // 128, 128, 44
  Accumulator sums(3, 512, 1);
  sums.open(geometry, {0, 3}, 3);
  CHECK_FALSE(sums.add(1, floats(128, 1), 1, kSomebody));
  CHECK_FALSE(sums.add(2, floats(44, 7), 1, kSomebody));
  CHECK_FALSE(sums.add(1, floats(128, 10), 2, kSomebody));
  CHECK(sums.contributors(1) == 3);
  CHECK(sums.add(1, floats(128, 100), 4, kSomebody));
  CHECK(sums.contributors(1) == 7);
  CHECK(first_float(sums.seal(1)) == 111);
  CHECK(sums.sealed(1).size() == 512);
  CHECK(sums.sealed(2).size() == 44 * 4);
  CHECK(sums.contributors(2) == 1);
}

TEST_CASE("bytes that last are summed when they are needed") {
  const Geometry geometry = Geometry::of(ElementType::kFloat32, 128 * 5, 512);
  Accumulator sums(5, 512, 1);
  sums.open(geometry, {0, 5}, 2);
  const std::vector<std::byte> lasting = floats(128, 1);
  const std::vector<std::byte> other = floats(128, 10);
  SECTION("by the next contribution") {
    CHECK_FALSE(sums.add_lasting(1, lasting, 1, kSomebody));
    CHECK(sums.add(1, other, 2, kSomebody));
    CHECK(first_float(sums.seal(1)) == 11);
    CHECK(sums.contributors(1) == 3);
  }
  SECTION("as the next contribution") {
    CHECK_FALSE(sums.add(2, other, 2, kSomebody));
    CHECK(sums.add_lasting(2, lasting, 1, kSomebody));
    CHECK(first_float(sums.seal(2)) == 11);
  }
  SECTION("both last") {
    CHECK_FALSE(sums.add_lasting(2, lasting, 1, kSomebody));
    CHECK(sums.add_lasting(2, lasting, 1, kSomebody));
    CHECK(first_float(sums.seal(2)) == 2);
  }
  SECTION("at the end, alone") {
    CHECK_FALSE(sums.add_lasting(3, lasting, 1, kSomebody));
    CHECK(sums.add(3, {}, 0, kSomebody));
    CHECK(first_float(sums.seal(3, 3)) == 3);
    CHECK(sums.contributors(3) == 1);
  }
  SECTION("not where a result has come") {
    CHECK_FALSE(sums.add_lasting(4, lasting, 1, kSomebody));
    sums.stop_waiting(4);
    sums.replace(4, other, 2, kSomebody);
    CHECK(first_float(sums.seal(4)) == 10);
  }
  SECTION("not in the next round") {
    CHECK_FALSE(sums.add_lasting(0, lasting, 1, kSomebody));
    sums.open(geometry, {0, 5}, 1);
    CHECK(sums.add(0, other, 1, kSomebody));
    CHECK(first_float(sums.seal(0)) == 10);
  }
}

TEST_CASE("a slot that is opened again begins at nothing") {
  const Geometry geometry = Geometry::of(ElementType::kFloat32, 128, 512);
  Accumulator sums(4, 512, 1);
  sums.open(geometry, {0, 1}, 1);
  CHECK(sums.add(0, floats(128, 5), 1, kSomebody));
  sums.open(geometry, {0, 1}, 1);
  CHECK(sums.add(0, floats(128, 6), 1, kSomebody));
  CHECK(first_float(sums.seal(0)) == 6);
  CHECK(sums.contributors(0) == 1);
}

TEST_CASE("half precision is summed in single and rounded once") {
  // 2048 + 1 + 1 is 2050 in fp32; in fp16 each addition of 1 to 2048 would be lost.
  const Geometry geometry = Geometry::of(ElementType::kFloat16, 256, 512);
  const auto halves = [](std::uint16_t bits) {
    std::vector<std::byte> bytes(512);
    for (std::size_t i = 0; i < 256; ++i) std::memcpy(&bytes[2 * i], &bits, 2);
    return bytes;
  };
  Accumulator sums(2, 512, 1);
  sums.open(geometry, {3, 5}, 3);
  CHECK_FALSE(sums.add(4, halves(0x6800), 1, kSomebody));  // 2048
  CHECK_FALSE(sums.add(4, halves(0x3c00), 1, kSomebody));  // 1
  CHECK(sums.add(4, halves(0x3c00), 1, kSomebody));
  const std::span<const std::byte> sealed = sums.seal(4);
  REQUIRE(sealed.size() == 512);
  std::uint16_t last;
  std::memcpy(&last, &sealed[510], 2);
  CHECK(last == 0x6801);  // 2050
}

TEST_CASE("a result replaces a sum and what it names") {
  const Geometry geometry = Geometry::of(ElementType::kFloat32, 128, 512);
  Accumulator sums(1, 512, 1);
  sums.open(geometry, {0, 1}, 1);
  CHECK(sums.add(0, floats(128, 5), 1, kSomebody));
  (void)sums.seal(0);
  sums.replace(0, floats(128, 50), 9, kSomebody);
  CHECK(first_float(sums.sealed(0)) == 50);
  CHECK(sums.contributors(0) == 9);
}

TEST_CASE("a block that ends without all contributions is what came, times the factor") {
  const Geometry geometry = Geometry::of(ElementType::kFloat32, 384, 512);
  Accumulator sums(3, 512, 1);
  sums.open(geometry, {0, 3}, 4);
  (void)sums.add(0, floats(128, 3), 1, kSomebody);
  (void)sums.add(0, floats(128, 5), 1, kSomebody);
  (void)sums.add(1, floats(128, 7), 3, kSomebody);
  CHECK_FALSE(sums.is_gathered(0));
  for (std::uint32_t b = 0; b < 3; ++b) sums.stop_waiting(b);
  CHECK(sums.is_gathered(0));
  CHECK(first_float(sums.seal(0, 2)) == 16);
  CHECK(sums.contributors(0) == 2);
  CHECK(first_float(sums.seal(1)) == 7);
  CHECK(first_float(sums.seal(2)) == 0);
  CHECK(sums.contributors(2) == 0);
}

TEST_CASE("a block knows the hosts whose contributions are in it") {
  const Geometry geometry = Geometry::of(ElementType::kFloat32, 256, 512);
  const std::vector<std::uint64_t> first{1, 0}, second{0, std::uint64_t{1} << 5}, both{1, 1U << 5};
  const auto is = [&](std::uint32_t block, const std::vector<std::uint64_t>& hosts,
                      Accumulator& a) {
    return std::equal(hosts.begin(), hosts.end(), a.hosts(block).begin(), a.hosts(block).end());
  };
  Accumulator sums(2, 512, 2);
  sums.open(geometry, {6, 8}, 3);
  (void)sums.add(7, floats(128, 1), 1, first);
  CHECK(is(7, first, sums));
  CHECK(is(6, {0, 0}, sums));
  (void)sums.add(7, floats(128, 1), 2, second);
  CHECK(is(7, both, sums));
  CHECK(sums.add(7, floats(128, 99), 0, second));  // no contributors: the payload is ignored
  CHECK(first_float(sums.seal(7)) == 2);
  sums.replace(7, floats(128, 9), 2, second);
  CHECK(is(7, second, sums));
  sums.open(geometry, {6, 8}, 3);
  CHECK(is(7, {0, 0}, sums));
}

TEST_CASE("what one rank alone has stays as it is, bit by bit") {
  for (const ElementType type : kElementTypes) {
    CAPTURE(element_type_name(type));
    const std::size_t width = element_bytes(type);
    const auto elements = static_cast<std::uint32_t>(512 / width);
    const Statement said{.type = type, .elements = elements, .operation = Operation::kBroadcast};
    // All values of 16 bits. In each type they include quiet and signalling NaNs with payloads, and
    // -0.
    std::vector<std::byte> bytes(512);
    for (std::uint32_t first = 0; first < 0x1'0000; first += 256) {
      for (std::size_t i = 0; i < 256; ++i) {
        const auto half = static_cast<std::uint16_t>(first + i);
        std::memcpy(&bytes[2 * i], &half, 2);
      }
      Accumulator sums(1, 512, 1);
      sums.open(Geometry::of(said, 512, 4), {0, 1}, 3);
      CHECK_FALSE(sums.add(0, {}, 0, kSomebody));
      CHECK_FALSE(sums.add(0, bytes, 1, kSomebody));
      CHECK(sums.add(0, {}, 0, kSomebody));
      const std::span<const std::byte> sealed = sums.seal(0);
      REQUIRE(std::equal(sealed.begin(), sealed.end(), bytes.begin(), bytes.end()));
    }
  }
}

TEST_CASE("blocks may await different numbers of sources") {
  Accumulator sums(3, 512, 1);
  sums.open(Geometry::of(ElementType::kFloat32, 384, 512), {4, 7}, 2);
  sums.await({5, 6}, 1);
  sums.await({6, 7}, 0);
  CHECK(sums.is_gathered(6));
  CHECK(sums.add(5, floats(128, 1), 1, kSomebody));
  CHECK_FALSE(sums.add(4, floats(128, 1), 1, kSomebody));
  CHECK(sums.add(4, floats(128, 1), 1, kSomebody));
}
