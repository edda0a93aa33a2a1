// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/server/socket_end.h"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <mutex>
#include <semaphore>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace gradplane::server {
namespace {

/// The sockets that wait to be closed. It is never freed, because the thread that closes them may
/// outlive main().
struct Closing {
  std::mutex mutex;
  std::vector<int> waiting;
  std::size_t in_hand = 0;
  bool running = false;
};

Closing& closing() {
  static auto* one = new Closing;
  return *one;
}

/// Closes descriptors without waiting, even if closing them would block. The last close() of a TCP
/// socket blocks for as long as SO_LINGER says, except in a task that is exiting. So a thread gets
/// its own table of descriptors, becomes the last owner of these, and exits. False: the thread got
/// no table, and nothing is closed.
bool close_by_ending(std::span<const int> descriptors) {
  std::binary_semaphore holds(0);
  std::binary_semaphore is_last(0);
  bool has_table = false;
  std::thread holder([&] {
    has_table = ::unshare(CLONE_FILES) == 0;
    holds.release();
    is_last.acquire();
  });
  holds.acquire();
  if (has_table) {
    for (const int descriptor : descriptors) ::close(descriptor);
  }
  is_last.release();
  holder.join();
  return has_table;
}

void close_all_waiting() noexcept {
  Closing& all = closing();
  std::unique_lock lock(all.mutex);
  while (!all.waiting.empty()) {
    const std::vector<int> batch = std::exchange(all.waiting, {});
    all.in_hand = batch.size();
    lock.unlock();
    bool closed = false;
    try {
      closed = close_by_ending(batch);
    } catch (const std::exception&) {  // no thread
    }
    lock.lock();
    all.in_hand = 0;
    if (closed) continue;
    // These are tried again when the next socket ends.
    all.waiting.insert(all.waiting.end(), batch.begin(), batch.end());
    break;
  }
  all.running = false;
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
  // From here on no message can arrive, so an empty queue stays empty.
  ::shutdown(socket.get(), SHUT_RDWR);
  // With SO_PASSCRED every message carries credentials, so peek_head() says kDescriptors for every
  // message, even for an empty one, which otherwise looks like the end of the connection.
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  if (peek_head(socket.get()) != Head::kDescriptors) return;
  Closing& all = closing();
  const std::lock_guard lock(all.mutex);
  try {
    all.waiting.push_back(socket.get());
    (void)socket.release();
    if (all.running) return;
    std::thread(close_all_waiting).detach();
    all.running = true;
  } catch (const std::exception&) {
    // Without a thread, the next end_socket() tries again. Without memory, the descriptor stays
    // open: to close it here could block.
    (void)socket.release();
  }
}

std::size_t unclosed_sockets() noexcept {
  const std::lock_guard lock(closing().mutex);
  return closing().waiting.size() + closing().in_hand;
}

}  // namespace gradplane::server
