// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// The socket inside DPDK's af_packet driver, for what the driver does not offer itself.
namespace gradplane::port {

/// Finds the newest AF_PACKET sockets of this process that are bound to the interface, at most
/// `count`. The driver has one for each queue, and keeps them open as long as the device is.
std::vector<int> find_packet_sockets(int interface_index, std::size_t count);

/// Keeps the driver from blocking the poll thread, and from receiving frames that we sent.
///
/// The driver sleeps in poll() when its ring is full and the socket has more than half of its send
/// buffer in flight, and leaves frames unsent in the ring when the buffer is full. So the buffer is
/// made larger than the whole ring. Then a full ring is reported at once, and we count the drops.
void tune_packet_socket(int socket, std::size_t ring_bytes);

/// Asks the kernel to send the frames that wait in the ring. True if some still wait.
bool push_packet_socket(int socket);

/// Frames that the kernel dropped because the ring was full, since the last call.
std::uint64_t take_packet_socket_drops(int socket);

}  // namespace gradplane::port
