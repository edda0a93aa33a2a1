// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Memory that a NIC reads where it lies.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "dataplane/port/dpdk/dpdk_port.h"
#include "tests/conformance/port_suite.h"
#include "tests/support/catch.h"

namespace gradplane::conformance {
namespace {

constexpr std::uint16_t kPort = 4791;
constexpr std::size_t kPagesBytes = 1 << 16;

/// Sends datagrams without lent bytes until the left NIC has let go of `pages`.
bool get_back(PortPair& p, const Pages& pages) {
  std::vector<Received> got;
  return poll_until([&] { return p.left.remove_memory(pages.bytes()); },
                    [&] {
                      send(p.left, {p.right.address(), kPort}, kPort, pattern(8, 3));
                      receive_into(p.right, got);
                    });
}

/// Lends `lent` between two ends, and waits until it has arrived. Returns how many frames were sent
/// without a copy.
std::uint64_t lend(PortPair& p, std::span<const std::byte> lent) {
  const std::uint64_t before = p.left.total_counters().tx_lent;
  const std::vector<std::byte> head = pattern(60, 1);
  const std::vector<std::byte> tail = pattern(16, 2);
  const std::size_t whole_bytes = head.size() + lent.size() + tail.size();
  std::vector<Received> got;
  REQUIRE(send_parts(p.left.queue(0), {p.right.address(), kPort}, kPort, {head, lent, tail}));
  // The short datagrams of get_back() may still come.
  const auto is_it = [&] { return !got.empty() && got.back().payload.size() == whole_bytes; };
  REQUIRE(poll_until(is_it, [&] {
    if (!is_it()) receive_into(p.right, got);
  }));
  CHECK(std::equal(lent.begin(), lent.end(),
                   got.back().payload.begin() + static_cast<std::ptrdiff_t>(head.size())));
  return p.left.total_counters().tx_lent - before;
}

}  // namespace

TEST_CASE("pci: a NIC reads added memory where it lies, and copies all other") {
  PortPair& p = ports();
  connect(p);
  REQUIRE(p.left.queue(0).lends_from_bytes() < SIZE_MAX);  // else there is no IOMMU of 48 bits
  Pages pages(kPagesBytes);
  const std::span<std::byte> lent = pages.bytes().subspan(2 * kPageBytes, 1200);
  std::fill(lent.begin(), lent.end(), std::byte{7});
  CHECK(lend(p, lent) == 0);
  REQUIRE(p.left.add_memory(pages.bytes()));
  CHECK(lend(p, lent) == 1);
  CHECK(lend(p, pages.bytes().last(1000)) == 1);
  CHECK(lend(p, pages.bytes().first(1000)) == 1);
  CHECK_FALSE(
      p.left.remove_memory(pages.bytes()));  // the NIC has the last frame until it needs room
  CHECK(lend(p, lent) == 0);
  REQUIRE(get_back(p, pages));
  CHECK(lend(p, lent) == 0);
}

TEST_CASE("pci: lent bytes may cross pages") {
  if (std::getenv("GP_PCI_CROSSES_PAGES") == nullptr) {
    WARN(
        "skipped: GP_PCI_CROSSES_PAGES is not set; emulated NICs may drop frames of which a buffer "
        "crosses pages that are not adjacent");
    return;
  }
  PortPair& p = ports();
  connect(p);
  Pages pages(kPagesBytes);
  REQUIRE(p.left.add_memory(pages.bytes()));
  const std::vector<std::byte> content = pattern(pages.bytes().size(), 5);
  std::copy(content.begin(), content.end(), pages.bytes().begin());
  for (const std::size_t before : {std::size_t{1}, std::size_t{700}, std::size_t{1199}})
    CHECK(lend(p, pages.bytes().subspan(3 * kPageBytes - before, 1200)) == 1);
  REQUIRE(get_back(p, pages));
}

TEST_CASE("pci: a NIC has a limited number of pieces of memory, and each can come back") {
  PortPair& p = ports();
  connect(p);
  std::vector<std::unique_ptr<Pages>> all;
  for (std::size_t n = 0; n < port::kMaxDmaRegions; ++n) {
    all.push_back(std::make_unique<Pages>(kPagesBytes));
    REQUIRE(p.left.add_memory(all.back()->bytes()));
    CHECK(lend(p, all.back()->bytes().subspan(n * 16, 1100)) == 1);
  }
  Pages more(kPagesBytes);
  CHECK_FALSE(p.left.add_memory(more.bytes()));
  CHECK(lend(p, more.bytes().first(1100)) == 0);
  REQUIRE(get_back(p, *all[10]));
  REQUIRE(p.left.add_memory(more.bytes()));
  CHECK(lend(p, more.bytes().first(1100)) == 1);
  REQUIRE(get_back(p, more));
  all.erase(all.begin() + 10);
  for (const auto& pages : all) CHECK(get_back(p, *pages));
}

}  // namespace gradplane::conformance
