// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/conformance/memif.h"
#include "tests/conformance/port_suite.h"
#include "tests/support/catch.h"

namespace gradplane::conformance {
namespace {

constexpr Ipv4 kServer{0x0a500001};
constexpr Ipv4 kClient{0x0a500002};

bool exchange(port::Port& from, port::Port& to) {
  std::vector<Received> at_from, at_to;
  return poll_until([&] { return !at_to.empty(); },
                    [&] {
                      send(from, {to.address(), 4791}, 1, pattern(100, 1));
                      receive_into(from, at_from);
                      receive_into(to, at_to);
                    });
}

TEST_CASE("memif: a client may come before its server, and outlives it") {
  // The path is another name for the same file: in one process DPDK's driver has one entry for each
  // name, and the client's entry has no listener.
  const auto client = open_memif("./late", port::MemifRole::kClient, kClient);
  std::vector<Received> ignored;
  receive_into(*client, ignored);
  CHECK_FALSE(send(*client, {kServer, 4791}, 1, pattern(100, 1)));
  for (int life = 0; life < 2; ++life) {
    const auto server = open_memif("late", port::MemifRole::kServer, kServer);
    REQUIRE(exchange(*client, *server));
    REQUIRE(exchange(*server, *client));
  }
}

}  // namespace
}  // namespace gradplane::conformance
