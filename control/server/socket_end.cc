// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/server/socket_end.h"

#include <sys/socket.h>

#include <atomic>
#include <system_error>
#include <thread>
#include <utility>

namespace gradplane::server {
namespace {

std::atomic<int> closing_threads{0};

bool take_place() noexcept {
  if (closing_threads.fetch_add(1) < kMaxClosingThreads) return true;
  closing_threads.fetch_sub(1);
  return false;
}

}  // namespace

Head peek_head(int fd) noexcept {
  msghdr message{};
  if (::recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT) < 0) return Head::kNothing;
  return (message.msg_flags & MSG_CTRUNC) != 0 ? Head::kDescriptors : Head::kMessage;
}

void end_socket(ipc::UniqueFd socket) noexcept {
  if (!socket) return;
  // From here on nothing more can come in, so that an empty queue stays empty.
  ::shutdown(socket.get(), SHUT_RDWR);
  // With credentials asked for, every message looks as if it brought something, even an empty one
  // that would pass for the end of the connection.
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  if (peek_head(socket.get()) != Head::kDescriptors) return;
  const int fd = socket.release();
  if (!take_place()) return;
  try {
    std::thread([fd] {
      ipc::UniqueFd(fd).reset();
      closing_threads.fetch_sub(1);
    }).detach();
  } catch (const std::system_error&) {  // no more threads: it stays open
    closing_threads.fetch_sub(1);
  }
}

}  // namespace gradplane::server
