// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstdlib>

#include "tests/conformance/port_suite.h"
#include "tests/conformance/veth.h"
#include "tests/support/catch.h"

/// An af_packet port on an interface with an operator's queue discipline. af_xdp bypasses that.
namespace gradplane::conformance {
namespace {

class Shaped {
 public:
  Shaped() : ok_(run("tc qdisc add dev gpa0 root tbf rate 50mbit burst 3000 limit 6000")) {}
  ~Shaped() { run("tc qdisc del dev gpa0 root"); }
  Shaped(const Shaped&) = delete;
  Shaped& operator=(const Shaped&) = delete;
  bool ok() const { return ok_; }

 private:
  static bool run(const char* command) { return std::system(command) == 0; }
  bool ok_;
};

TEST_CASE("shaped: what a full queue refuses leaves later, without another transmit") {
  if (kind_under_test() != port::DeviceKind::kAfPacket) return;
  PortPair& p = ports();
  std::vector<Received> got;
  REQUIRE(poll_until([&] { return !got.empty(); },
                     [&] {
                       send(p.left, {p.right.address(), 4791}, 1, pattern(64, 1));
                       receive_into(p.left, got);
                       receive_into(p.right, got);
                     }));
  while (got.size() > 0) {
    got.clear();
    receive_into(p.right, got);
  }
  const Shaped shaped;
  REQUIRE(shaped.ok());
  constexpr std::size_t kDatagrams = 200;
  for (std::uint32_t i = 0; i < kDatagrams; ++i) {
    REQUIRE(send(p.left, {p.right.address(), 4791}, 1, pattern(1400, i)));
  }
  REQUIRE(poll_until([&] { return got.size() == kDatagrams; },
                     [&] {
                       p.left.queue(0).tick(now());
                       receive_into(p.right, got);
                     }));
  for (std::uint32_t i = 0; i < kDatagrams; ++i) {
    if (got[i].payload != pattern(1400, i)) FAIL("datagram " << i);
  }
}

}  // namespace
}  // namespace gradplane::conformance
