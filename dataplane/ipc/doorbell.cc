// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/ipc/doorbell.h"

#include <sys/socket.h>

#include <cerrno>

#include "dataplane/ipc/system_error.h"

namespace gradplane::ipc {
namespace {

enum class Head { kRing, kNothing, kDescriptors };

/// Looks at the next message. Receiving an unwanted descriptor would mean closing it, and that may
/// block for as long as its sender likes, because a TCP socket lingers. Peeking does not close the
/// sender's file for good.
Head peek(int listen_fd) noexcept {
  msghdr message{};
  if (::recvmsg(listen_fd, &message, MSG_PEEK | MSG_DONTWAIT) < 0) return Head::kNothing;
  return (message.msg_flags & MSG_CTRUNC) != 0 ? Head::kDescriptors : Head::kRing;
}

}  // namespace

// A doorbell is neither an eventfd nor a pipe. O_NONBLOCK belongs to the open file description,
// which both sides would share, and a side that clears it makes write() and read() block. A pipe
// also has a mutex that the other side can hold. The sockets are datagram sockets, because
// shutdown() of one end of a stream also hangs up the other.
Result<Doorbell> create_doorbell() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return system_error("cannot create a pair of sockets", errno, "raise the limit of open files");
  }
  Doorbell bell{UniqueFd(ends[0]), UniqueFd(ends[1])};
  if (::shutdown(bell.ring.get(), SHUT_RD) != 0) {
    return system_error("cannot shut down one way of a socket", errno, "report this as a bug");
  }
  // The kernel raises this to its minimum, which has room for some six rings.
  const int least = 0;
  if (::setsockopt(bell.ring.get(), SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)) != 0) {
    return system_error("cannot bound the queue of a socket", errno, "report this as a bug");
  }
  return bell;
}

void ring_doorbell(int ring_fd) noexcept {
  const int saved_errno = errno;
  const char ring = 0;
  // send() fails if the queue is full, and then the sleeper is awake already; or if the sleeper has
  // broken its own end.
  [[maybe_unused]] const auto sent =
      ::send(ring_fd, &ring, sizeof(ring), MSG_DONTWAIT | MSG_NOSIGNAL);
  errno = saved_errno;
}

bool silence_doorbell(int listen_fd) noexcept {
  const int saved_errno = errno;
  Head head = Head::kNothing;
  for (int i = 0; i < kMaxRingsSilenced; ++i) {
    head = peek(listen_fd);
    if (head != Head::kRing) break;
    char ring;
    [[maybe_unused]] const auto got = ::recv(listen_fd, &ring, sizeof(ring), MSG_DONTWAIT);
  }
  errno = saved_errno;
  return head != Head::kDescriptors;
}

}  // namespace gradplane::ipc
