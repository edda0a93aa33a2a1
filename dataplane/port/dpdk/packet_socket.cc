// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/packet_socket.h"

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>

namespace gradplane::port {
namespace {

// A frame in flight is charged with more than its bytes, because of the kernel's buffer header and
// rounding.
constexpr std::size_t kChargePerByte = 2;
constexpr std::size_t kMaxSendBufferBytes = std::size_t{1} << 30;

bool is_bound_to(int fd, int interface_index) {
  sockaddr_ll name{};
  socklen_t size = sizeof name;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0 &&
         name.sll_family == AF_PACKET && name.sll_ifindex == interface_index;
}

}  // namespace

std::vector<int> find_packet_sockets(int interface_index, std::size_t count) {
  std::vector<int> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    if (is_bound_to(fd, interface_index)) found.push_back(fd);
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  if (found.size() > count) found.resize(count);
  return found;
}

void tune_packet_socket(int socket, std::size_t ring_bytes) {
  // The kernel doubles this size. poll() begins to sleep at half of the buffer.
  const int bytes = static_cast<int>(std::min(ring_bytes * kChargePerByte, kMaxSendBufferBytes));
  if (setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0) {
    (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  }
  const int on = 1;
  (void)setsockopt(socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
}

bool push_packet_socket(int socket) {
  return send(socket, nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
         (errno == ENOBUFS || errno == EAGAIN);
}

std::uint64_t take_packet_socket_drops(int socket) {
  tpacket_stats stats{};
  socklen_t size = sizeof stats;
  if (getsockopt(socket, SOL_PACKET, PACKET_STATISTICS, &stats, &size) != 0) return 0;
  return stats.tp_drops;
}

}  // namespace gradplane::port
