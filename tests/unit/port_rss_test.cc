// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// RSS that steers by UDP port, with the Toeplitz hash of Microsoft's specification.
#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/port/dpdk/rss.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::port;

namespace {

/// From "Verifying the RSS Hash Calculation" (Windows network driver design guide): each set bit of
/// the input adds the 32 bits of the key that begin at the same place.
std::uint32_t toeplitz(std::span<const std::uint8_t> key, std::span<const std::uint8_t> input) {
  const auto bit_of = [](std::span<const std::uint8_t> bytes, std::size_t bit) {
    return bytes[bit / 8] >> (7 - bit % 8) & 1U;
  };
  std::uint32_t hash = 0;
  for (std::size_t i = 0; i < input.size() * 8; ++i) {
    if (bit_of(input, i) == 0) continue;
    std::uint32_t window = 0;
    for (std::size_t b = 0; b < 32; ++b) window = window << 1 | bit_of(key, i + b);
    hash ^= window;
  }
  return hash;
}

struct Flow {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;

  std::array<std::uint8_t, 12> bytes() const {
    std::array<std::uint8_t, 12> out{};
    auto put = [&out, at = std::size_t{0}](std::uint32_t value, int width) mutable {
      for (int shift = (width - 1) * 8; shift >= 0; shift -= 8) {
        out[at++] = static_cast<std::uint8_t>(value >> shift);
      }
    };
    put(source, 4);
    put(destination, 4);
    put(source_port, 2);
    put(destination_port, 2);
    return out;
  }
};

constexpr std::array kFlows = {
    Flow{0x0a4d0001, 0x0a4d0002, 49152, 0},
    Flow{0x0a4d0002, 0x0a4d0001, 57343, 0},
    Flow{0xc0a801fe, 0xef470102, 1, 0},
    Flow{0xffffffff, 0xffffffff, 65535, 0},
    Flow{0, 0, 0, 0},
};

constexpr std::array<std::uint16_t, 5> kFirstPorts = {1024, 4791, 47000, 47013, 65520};

}  // namespace

TEST_CASE("the hash of the test is that of the specification") {
  const std::vector<std::uint8_t> key = {
      0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
      0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
      0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
  // 66.9.149.187:2794 to 161.142.100.80:1766.
  const Flow flow{0x420995bb, 0xa18e6450, 2794, 1766};
  CHECK(toeplitz(key, flow.bytes()) == 0x51ccc178);
}

TEST_CASE("RSS gives each queue what comes to its UDP port, from whomever") {
  const std::size_t key_bytes = GENERATE(as<std::size_t>{}, kMinRssKeyBytes, 40, 52);
  std::vector<std::uint8_t> key(key_bytes, 0xff);
  write_rss_key(key);
  for (std::size_t count = 1; count <= kMaxQueues; ++count) {
    for (const std::uint16_t first : kFirstPorts) {
      const Steering steering{.queue_count = count, .first_udp_port = first};
      for (std::size_t queue = 0; queue < count; ++queue) {
        for (Flow flow : kFlows) {
          flow.destination_port = static_cast<std::uint16_t>(first + queue);
          CAPTURE(count, first, queue);
          REQUIRE(queue_of_rss_hash(steering, toeplitz(key, flow.bytes())) == queue);
        }
      }
    }
  }
}

TEST_CASE("RSS sends what is nobody's to a queue that there is") {
  const Steering steering{.queue_count = 3, .first_udp_port = 47000};
  std::array<int, 3> entries{};
  for (std::size_t hash = 0; hash < 128; ++hash) {
    const std::size_t queue = queue_of_rss_hash(steering, hash);
    REQUIRE(queue < 3);
    ++entries[queue];
  }
  CHECK(entries[1] == 8);
  CHECK(entries[2] == 8);
  // Packets other than UDP have the hash 0 or none, so they come to any queue.
  CHECK(entries[0] == 112);
}
