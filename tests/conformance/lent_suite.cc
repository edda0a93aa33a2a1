// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Datagrams with lent payloads, which stay in the sender's memory.
#include <algorithm>

#include "tests/conformance/port_suite.h"
#include "tests/support/catch.h"

namespace gradplane::conformance {
namespace {

using port::PortDrop;

constexpr std::uint16_t kPort = 4791;

/// The payload is sent as its first `head` bytes, lent bytes, and its last `tail` bytes.
struct Cut {
  std::size_t head = 0;
  std::size_t tail = 0;
};

bool send_lent(port::PortQueue& from, const Endpoint& to, const std::vector<std::byte>& payload,
               Cut cut, bool is_tagged) {
  std::vector<std::byte> lent(payload.begin() + static_cast<std::ptrdiff_t>(cut.head),
                              payload.end() - static_cast<std::ptrdiff_t>(cut.tail));
  const std::span<const std::byte> whole = payload;
  const bool sent =
      send_parts(from, to, kPort, {whole.first(cut.head), lent, whole.last(cut.tail), is_tagged});
  // The payload may change now, because transmit() has read it.
  std::fill(lent.begin(), lent.end(), std::byte{0xee});
  return sent;
}

}  // namespace

TEST_CASE("port: a payload with lent bytes arrives whole, however it is cut") {
  PortPair& p = ports();
  connect(p);
  const std::size_t largest = p.left.mtu_payload_bytes();
  std::uint32_t seed = 0;
  for (const std::size_t size : {std::size_t{200}, std::size_t{1401}, largest - 1, largest}) {
    for (const Cut cut : {Cut{60, 8}, Cut{61, 8}, Cut{1, 1}, Cut{0, 8}, Cut{48, 0}, Cut{20, 100}}) {
      const bool is_tagged = ++seed % 2 == 0;  // without a checksum, or with one
      const std::vector<std::byte> payload = pattern(size, seed);
      std::vector<Received> got;
      REQUIRE(send_lent(p.left.queue(0), {p.right.address(), kPort}, payload, cut, is_tagged));
      REQUIRE(poll_until([&] { return !got.empty(); }, [&] { receive_into(p.right, got); }));
      if (got[0].payload != payload)
        FAIL("size " << size << ", cut after " << cut.head << " and before the last " << cut.tail);
    }
  }
}

TEST_CASE("port: what lends leaves no buffer behind, and counts as what it is") {
  PortPair& p = ports();
  connect(p);
  const std::size_t spare = spare_buffers(p.left);
  const port::PortCounters before = p.left.total_counters();
  const std::vector<std::byte> payload = pattern(1000, 5);
  const std::size_t sends = 4 * spare;  // more than any pool has buffers
  std::vector<Received> got;
  for (std::size_t n = 0; n < sends; ++n) {
    REQUIRE(send_lent(p.left.queue(0), {p.right.address(), kPort}, payload, {40, 8}, true));
    if (n % 16 == 15) {
      REQUIRE(poll_until([&] { return got.size() > n; }, [&] { receive_into(p.right, got); }));
    }
  }
  CHECK(spare_buffers(p.left) + p.kept_count >= spare);
  const port::PortCounters after = p.left.total_counters();
  CHECK(after.tx_datagrams - before.tx_datagrams == sends);
  CHECK(after.tx_bytes - before.tx_bytes == sends * payload.size());
}

TEST_CASE("port: memory that a port may read late arrives whole, and comes back") {
  PortPair& p = ports();
  connect(p);
  constexpr std::uint32_t kCount = 40;
  Pages pages(kCount * kPageBytes);
  REQUIRE(p.left.add_memory(pages.bytes()));
  const std::vector<std::byte> head = pattern(60, 1);
  const std::vector<std::byte> tail = pattern(8, 2);
  for (std::uint32_t n = 0; n < kCount; ++n) {
    CAPTURE(n);
    const std::span<std::byte> lent = pages.bytes().subspan(n * kPageBytes + 16 * n, 1300);
    const std::vector<std::byte> content = pattern(lent.size(), n);
    std::copy(content.begin(), content.end(), lent.begin());
    std::vector<Received> got;
    REQUIRE(send_parts(p.left.queue(0), {p.right.address(), kPort}, kPort,
                       {head, lent, tail, n % 2 == 0}));
    REQUIRE(poll_until([&] { return !got.empty(); }, [&] { receive_into(p.right, got); }));
    REQUIRE(got[0].payload.size() == head.size() + lent.size() + tail.size());
    CHECK(std::equal(lent.begin(), lent.end(), got[0].payload.begin() + head.size()));
  }
  std::vector<Received> got;
  REQUIRE(poll_until([&] { return p.left.remove_memory(pages.bytes()); },
                     [&] {
                       send(p.left, {p.right.address(), kPort}, kPort, pattern(8, 3));
                       receive_into(p.right, got);
                     }));
  CHECK(p.left.remove_memory(pages.bytes()));
}

TEST_CASE("port: lent bytes count for the longest datagram") {
  PortPair& p = ports();
  connect(p);
  const std::uint64_t before = drops(p.left, PortDrop::kTooLong);
  const std::vector<std::byte> payload = pattern(p.left.mtu_payload_bytes() + 1, 1);
  CHECK_FALSE(send_lent(p.left.queue(0), {p.right.address(), kPort}, payload, {40, 8}, true));
  CHECK(drops(p.left, PortDrop::kTooLong) == before + 1);
}

}  // namespace gradplane::conformance
