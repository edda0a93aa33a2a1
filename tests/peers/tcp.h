// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// Kernel TCP for the parameter server and its workers. The kernel tunes the sizes of socket
// buffers; a fixed size would switch that off.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace gradplane::peers {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Endpoint {
  std::string address;
  std::uint16_t port = 0;
  std::string congestion_control;
};

/// Both throw std::runtime_error, which says what failed and where. Connections inherit the
/// listener's congestion control.
Socket listen_on(const Endpoint& at);
/// Tries again for a limited time while no process listens there.
Socket connect_to(const Endpoint& peer);
Socket accept_from(const Socket& listener);
void make_nonblocking(const Socket& socket);

/// Data segments that this end has sent on the connection.
struct Segments {
  std::uint64_t sent = 0;
  std::uint64_t retransmitted = 0;
};
Segments segments_of(const Socket& socket);

/// For a non-blocking socket: returns the number of bytes, or 0 if it would block. Both throw if
/// the connection has failed, and receive_some also if the peer has closed it.
std::size_t send_some(const Socket& socket, const void* data, std::size_t bytes, bool more);
std::size_t receive_some(const Socket& socket, void* data, std::size_t bytes);
/// Waits until all bytes have arrived, or nothing arrives for a limited time.
void receive_all(const Socket& socket, void* data, std::size_t bytes);

}  // namespace gradplane::peers
