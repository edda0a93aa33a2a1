// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/lab/control_socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gradplane::lab {
namespace {

constexpr std::size_t kMaxConnections = 16;
constexpr std::size_t kMaxRequestBytes = 65536;
// The answer about all links is one message.
constexpr int kSendBufferBytes = 4 << 20;

}  // namespace

Result<ControlSocket> ControlSocket::open(const std::string& path, int epoll_fd) {
  const auto failure = [&path](const char* what) {
    return Error{"control socket " + path + ": " + what + ": " + std::strerror(errno)};
  };
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return failure("bind");
  }
  path.copy(address.sun_path, path.size());
  ControlSocket control;
  control.epoll_fd_ = epoll_fd;
  control.listener_ =
      ipc::UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  unlink(path.c_str());
  if (bind(control.listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
      0) {
    return failure("bind");
  }
  control.path_ = path;
  if (listen(control.listener_.get(), kMaxConnections) != 0) return failure("listen");
  epoll_event event = {.events = EPOLLIN, .data = {.fd = control.listener_.get()}};
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, control.listener_.get(), &event);
  return control;
}

ControlSocket::~ControlSocket() {
  if (listener_.get() >= 0 && !path_.empty()) unlink(path_.c_str());
}

void ControlSocket::accept_new() {
  for (;;) {
    ipc::UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.get() < 0) return;
    if (connections_.size() == kMaxConnections) continue;
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kSendBufferBytes, sizeof(kSendBufferBytes));
    epoll_event event = {.events = EPOLLIN, .data = {.fd = fd.get()}};
    epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd.get(), &event);
    connections_.push_back(std::move(fd));
  }
}

ControlSocket::Received ControlSocket::receive(int fd, std::string& request) {
  request.resize(kMaxRequestBytes);
  const ssize_t size = recv(fd, request.data(), request.size(), 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return Received::kNothing;
  if (size <= 0) return Received::kEnd;
  request.resize(static_cast<std::size_t>(size));
  return Received::kMessage;
}

bool ControlSocket::reply(int fd, const std::string& text) {
  return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

}  // namespace gradplane::lab
