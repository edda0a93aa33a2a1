// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/ipc/doorbell.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "tests/support/catch.h"

using namespace gradplane::ipc;

namespace {

constexpr unsigned kHangsAfterSeconds = 20;

bool is_ringing(int fd) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

Doorbell make_doorbell() {
  auto bell = create_doorbell();
  REQUIRE(bell.ok());
  return std::move(bell.value());
}

/// Returns whether `body` returns true in a child process. The child dies if `body` blocks or
/// raises a signal.
bool holds_in_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kHangsAfterSeconds);
    ::_exit(body() ? 0 : 1);
  }
  int status = -1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

/// A hostile process that holds an end can make it blocking.
void make_blocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

bool send_descriptor(int fd, int passed) {
  char ring = 0;
  iovec part{&ring, sizeof(ring)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &passed, sizeof(passed));
  return ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

}  // namespace

TEST_CASE("a doorbell rings until it is silenced, however often it was rung") {
  const Doorbell bell = make_doorbell();
  for (const int rings : {1, 2, 1000}) {
    CHECK_FALSE(is_ringing(bell.listen.get()));
    for (int i = 0; i < rings; ++i) ring_doorbell(bell.ring.get());
    CHECK(is_ringing(bell.listen.get()));
    CHECK(silence_doorbell(bell.listen.get()));
  }
  CHECK_FALSE(is_ringing(bell.listen.get()));
}

TEST_CASE("a doorbell is not inherited over exec, and keeps errno") {
  const Doorbell bell = make_doorbell();
  CHECK((::fcntl(bell.ring.get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((::fcntl(bell.listen.get(), F_GETFD) & FD_CLOEXEC) != 0);
  errno = 1234;
  CHECK(silence_doorbell(bell.listen.get()));  // nothing to receive
  CHECK(errno == 1234);
  for (int i = 0; i < 1000; ++i) ring_doorbell(bell.ring.get());  // the queue is full
  CHECK(errno == 1234);
  CHECK(is_ringing(bell.listen.get()));
}

TEST_CASE("a listener that makes its end block, and does not listen, holds up nobody") {
  CHECK(holds_in_child([] {
    const Doorbell bell = make_doorbell();
    make_blocking(bell.listen.get());
    make_blocking(bell.ring.get());
    for (int i = 0; i < 1000; ++i) ring_doorbell(bell.ring.get());
    return is_ringing(bell.listen.get());
  }));
}

TEST_CASE("a ringer that makes its end block, fills it or leaves it empty, holds up nobody") {
  CHECK(holds_in_child([] {
    const Doorbell bell = make_doorbell();
    make_blocking(bell.ring.get());
    make_blocking(bell.listen.get());
    bool silent = silence_doorbell(bell.listen.get());
    const int most = 1 << 30;
    ::setsockopt(bell.ring.get(), SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
    int sent_count = 0;
    char longest[256] = {};
    while (::send(bell.ring.get(), longest, sizeof(longest), MSG_DONTWAIT) > 0) ++sent_count;
    ring_doorbell(bell.ring.get());  // an honest process rings by the same end
    for (int i = 0; i < sent_count && is_ringing(bell.listen.get()); ++i) {
      silent = silent && silence_doorbell(bell.listen.get());
    }
    return silent && !is_ringing(bell.listen.get());
  }));
}

TEST_CASE("an end that is shut down, disconnected or closed holds up and kills nobody") {
  CHECK(holds_in_child([] {
    const Doorbell bell = make_doorbell();
    ::shutdown(bell.listen.get(), SHUT_RDWR);
    ring_doorbell(bell.ring.get());
    Doorbell closed = make_doorbell();
    closed.listen.reset();
    ring_doorbell(closed.ring.get());
    return true;
  }));
  CHECK(holds_in_child([] {
    const Doorbell bell = make_doorbell();
    ring_doorbell(bell.ring.get());
    ::shutdown(bell.ring.get(), SHUT_RDWR);
    return silence_doorbell(bell.listen.get()) && !is_ringing(bell.listen.get());
  }));
  CHECK(holds_in_child([] {
    const Doorbell bell = make_doorbell();
    ring_doorbell(bell.ring.get());
    sockaddr nowhere{};
    nowhere.sa_family = AF_UNSPEC;
    const bool disconnected = ::connect(bell.ring.get(), &nowhere, sizeof(nowhere)) == 0;
    return disconnected && silence_doorbell(bell.listen.get()) && !is_ringing(bell.listen.get());
  }));
}

TEST_CASE("a listener cannot send to who rings") {
  const Doorbell bell = make_doorbell();
  const char byte = 0;
  CHECK(::send(bell.listen.get(), &byte, sizeof(byte), MSG_DONTWAIT | MSG_NOSIGNAL) < 0);
  CHECK(errno == EPIPE);
}

// Closing a TCP socket with SO_LINGER takes as long as the process that set it up likes.
TEST_CASE("a descriptor that comes with a ring is not closed by who silences it") {
  const Doorbell bell = make_doorbell();
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  SECTION("behind honest rings") {
    ring_doorbell(bell.ring.get());
  }
  SECTION("first") {}
  REQUIRE(send_descriptor(bell.ring.get(), writing.get()));
  writing.reset();
  errno = 1234;
  CHECK_FALSE(silence_doorbell(bell.listen.get()));
  CHECK(errno == 1234);
  pollfd p{reading.get(), POLLIN, 0};
  CHECK(::poll(&p, 1, 0) == 0);  // no hang-up: the descriptor is still open in the queue
}
