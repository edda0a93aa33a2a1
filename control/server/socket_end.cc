// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/server/socket_end.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace gradplane::server {
namespace {

/// Who closes what. Leaked on purpose: its threads may outlive main().
struct Closing {
  std::mutex mutex;
  std::vector<int> waiting;
  int threads = 0;
};

Closing& closing() {
  static auto* one = new Closing;
  return *one;
}

void close_all_waiting() {
  Closing& all = closing();
  std::unique_lock lock(all.mutex);
  while (!all.waiting.empty()) {
    const int fd = all.waiting.back();
    all.waiting.pop_back();
    lock.unlock();
    ::close(fd);  // may last
    lock.lock();
  }
  --all.threads;
}

}  // namespace

Head peek_head(int fd) noexcept {
  msghdr message{};
  if (::recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT) < 0) {
    const bool nothing = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    return nothing ? Head::kNothing : Head::kBroken;
  }
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
  Closing& all = closing();
  const std::lock_guard lock(all.mutex);
  try {
    all.waiting.push_back(socket.get());
    (void)socket.release();
    if (all.threads == kMaxClosingThreads) return;
    std::thread(close_all_waiting).detach();
    ++all.threads;
  } catch (const std::exception&) {  // no memory or no thread: the next one may have better luck
    if (socket) (void)socket.release();
  }
}

std::size_t unclosed_sockets() noexcept {
  const std::lock_guard lock(closing().mutex);
  return closing().waiting.size();
}

}  // namespace gradplane::server
