// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/ipc/doorbell.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <cstdint>
#include <limits>

#include "tests/support/catch.h"

using namespace gradplane::ipc;

namespace {

bool is_ringing(int fd) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

}  // namespace

TEST_CASE("a doorbell rings until it is silenced, however often it was rung") {
  auto bell = create_doorbell();
  REQUIRE(bell.ok());
  const int fd = bell.value().get();
  CHECK_FALSE(is_ringing(fd));
  ring_doorbell(fd);
  ring_doorbell(fd);
  CHECK(is_ringing(fd));
  silence_doorbell(fd);
  CHECK_FALSE(is_ringing(fd));
}

TEST_CASE("a doorbell never blocks, is not inherited over exec, and keeps errno") {
  auto bell = create_doorbell();
  REQUIRE(bell.ok());
  const int fd = bell.value().get();
  CHECK((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
  CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  errno = 1234;
  silence_doorbell(fd);  // nothing to read
  CHECK(errno == 1234);
  const std::uint64_t almost_full = std::numeric_limits<std::uint64_t>::max() - 1;
  REQUIRE(::write(fd, &almost_full, sizeof(almost_full)) == sizeof(almost_full));
  errno = 1234;
  ring_doorbell(fd);  // the counter is full
  CHECK(errno == 1234);
  CHECK(is_ringing(fd));
}
