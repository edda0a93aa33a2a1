// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/peers/tcp.h"

#include <arpa/inet.h>
#include <fcntl.h>
// The C library's netinet/tcp.h has a tcp_info without the number of data segments.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace gradplane::peers {
namespace {

constexpr int kConnectAttempts = 400;
constexpr timespec kPauseBetweenAttempts{.tv_sec = 0, .tv_nsec = 50'000'000};
constexpr int kSilenceMs = 120'000;
constexpr int kMaxWaiting = 64;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

std::string text_of(const Endpoint& e) {
  return e.address + ":" + std::to_string(e.port);
}

sockaddr_in address_of(const Endpoint& e) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(e.port);
  if (inet_pton(AF_INET, e.address.c_str(), &address.sin_addr) != 1) {
    throw std::runtime_error("'" + e.address + "' is no IPv4 address");
  }
  return address;
}

void set_no_delay(const Socket& s) {
  const int on = 1;
  if (setsockopt(s.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("TCP_NODELAY");
}

Socket make_socket(const Endpoint& e) {
  Socket s(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (s.fd() < 0) fail("socket");
  set_no_delay(s);
  const std::string& name = e.congestion_control;
  const auto bytes = static_cast<socklen_t>(name.size());
  if (setsockopt(s.fd(), IPPROTO_TCP, TCP_CONGESTION, name.data(), bytes) != 0) {
    fail("congestion control '" + name +
         "' cannot be had (see net.ipv4.tcp_available_congestion_control)");
  }
  return s;
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Socket listen_on(const Endpoint& at) {
  Socket s = make_socket(at);
  const int on = 1;
  setsockopt(s.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = address_of(at);
  if (bind(s.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(s.fd(), kMaxWaiting) != 0) {
    fail("listening on " + text_of(at));
  }
  return s;
}

Socket connect_to(const Endpoint& peer) {
  const sockaddr_in address = address_of(peer);
  for (int attempt = 1; attempt <= kConnectAttempts; ++attempt) {
    Socket s = make_socket(peer);
    if (connect(s.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return s;
    if (errno != ECONNREFUSED) break;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &kPauseBetweenAttempts, nullptr);
    errno = ECONNREFUSED;
  }
  fail("connecting to " + text_of(peer));
}

Socket accept_from(const Socket& listener) {
  pollfd waiting{.fd = listener.fd(), .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, kSilenceMs) == 0) throw std::runtime_error("waited long for a worker");
  Socket s(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (s.fd() < 0) fail("accept");
  set_no_delay(s);
  return s;
}

void make_nonblocking(const Socket& socket) {
  const int flags = fcntl(socket.fd(), F_GETFL);
  if (flags < 0 || fcntl(socket.fd(), F_SETFL, flags | O_NONBLOCK) != 0) fail("O_NONBLOCK");
}

Segments segments_of(const Socket& socket) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (getsockopt(socket.fd(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) fail("TCP_INFO");
  return {info.tcpi_data_segs_out, info.tcpi_total_retrans};
}

std::size_t send_some(const Socket& socket, const void* data, std::size_t bytes, bool more) {
  const ssize_t sent = send(socket.fd(), data, bytes, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return 0;
  fail("send");
}

std::size_t receive_some(const Socket& socket, void* data, std::size_t bytes) {
  const ssize_t got = recv(socket.fd(), data, bytes, 0);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) throw std::runtime_error("the other end has closed the connection");
  if (errno == EAGAIN || errno == EINTR) return 0;
  fail("recv");
}

void receive_all(const Socket& socket, void* data, std::size_t bytes) {
  auto* next = static_cast<std::byte*>(data);
  while (bytes > 0) {
    pollfd waiting{.fd = socket.fd(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, kSilenceMs) == 0) throw std::runtime_error("the other end is silent");
    const std::size_t got = receive_some(socket, next, bytes);
    next += got;
    bytes -= got;
  }
}

}  // namespace gradplane::peers
