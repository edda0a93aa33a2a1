// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/kernel_address.h"

#include "tests/support/catch.h"

using namespace gradplane::daemon;

TEST_CASE("a port on which the kernel has an address too brings a warning") {
  CHECK(kernel_address_warning("eth1", {}).empty());
  const std::string warning = kernel_address_warning("eth1", {"192.0.2.1", "192.0.2.9"});
  CHECK(warning.find("the kernel has the address 192.0.2.1, 192.0.2.9 on eth1") !=
        std::string::npos);
  CHECK(warning.find("give gradplane an interface of its own") != std::string::npos);
}

TEST_CASE("an interface that is not there has no addresses") {
  CHECK(kernel_addresses("").empty());
  CHECK(kernel_addresses("no-such-if").empty());
}
