// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/server/connection.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "control/server/socket_end.h"
#include "dataplane/base/assert.h"

namespace gradplane::server {

namespace {

constexpr Duration kTokenInterval = Duration::ns(1000000000 / kMessagesPerSecond);

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS;
}

}  // namespace

Connection::Connection(UniqueFd socket, Instant now)
    : socket_(std::move(socket)), tokens_full_at_(now) {
  // The longest message must fit the send buffer, whatever the system's default is.
  constexpr int kSendBuffer = static_cast<int>(2 * protocol::kMaxSocketMessageBytes);
  ::setsockopt(fd(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
}

Connection::~Connection() {
  end_socket(std::move(socket_));
}

Connection::Read Connection::read(std::span<char> buffer, std::size_t& size) {
  GP_ASSERT(buffer.size() > protocol::kMaxSocketMessageBytes);
  switch (peek_head(fd())) {
    case Head::kNothing:
      return Read::kNothing;
    case Head::kDescriptors:
      return Read::kDescriptors;
    case Head::kBroken:
      return Read::kClosed;
    case Head::kMessage:
      break;
  }
  const ssize_t got = ::recv(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0) return would_block() || errno == EINTR ? Read::kNothing : Read::kClosed;
  if (got == 0) return Read::kClosed;
  size = static_cast<std::size_t>(got);
  return size > protocol::kMaxSocketMessageBytes ? Read::kTooLong : Read::kMessage;
}

Connection::Write Connection::send(std::string text, std::span<const int> fds) {
  GP_ASSERT(fds.size() <= kMaxPassedFds);
  if (queue_.empty()) {
    const Write sent = transmit(text, fds);
    if (sent != Write::kBlocked) return sent;
  }
  if (queue_.size() >= kMaxQueuedMessages || queued_bytes_ + text.size() > kMaxQueuedBytes)
    return Write::kOverflow;
  Pending& pending = queue_.emplace_back();
  for (const int fd : fds) {
    pending.fds.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!pending.fds.back()) return Write::kOverflow;
  }
  queued_bytes_ += text.size();
  pending.text = std::move(text);
  return Write::kBlocked;
}

Connection::Write Connection::flush() {
  while (!queue_.empty()) {
    const Pending& pending = queue_.front();
    std::vector<int> fds;
    for (const UniqueFd& fd : pending.fds) fds.push_back(fd.get());
    const Write sent = transmit(pending.text, fds);
    if (sent == Write::kBlocked) return sent;
    if (sent != Write::kDone) {
      queue_.clear();
      queued_bytes_ = 0;
      return sent;
    }
    queued_bytes_ -= pending.text.size();
    queue_.pop_front();
  }
  return Write::kDone;
}

Connection::Write Connection::transmit(const std::string& text, std::span<const int> fds) {
  iovec data{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxPassedFds)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return Write::kDone;
  if (would_block()) return Write::kBlocked;
  return errno == EPIPE || errno == ECONNRESET ? Write::kClosed : Write::kOverflow;
}

bool Connection::take_token(Instant now) {
  const Instant floor = std::max(tokens_full_at_, now);
  if (floor - now > kTokenInterval * (kMessageBurst - 1)) return false;
  tokens_full_at_ = floor + kTokenInterval;
  return true;
}

Instant Connection::resume_at(Instant now) const {
  return std::max(now, tokens_full_at_ - kTokenInterval * (kMessageBurst - 1));
}

}  // namespace gradplane::server
