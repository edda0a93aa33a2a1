// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "dataplane/base/result.h"
#include "dataplane/port/dpdk/dpdk_port.h"

namespace gradplane::port {

/// A lock that lets only one daemon be one end of a memif. It is held for the lifetime of the
/// object, and the kernel releases it when the process dies. It is a file beside the socket:
/// `.lock` for the server, `.ID.lock` for the client with this id. The file is never removed.
class MemifLock {
 public:
  static Result<MemifLock> take(const DpdkPortOptions& options);
  MemifLock(MemifLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  MemifLock& operator=(MemifLock&&) = delete;
  ~MemifLock();

 private:
  explicit MemifLock(int fd) : fd_(fd) {}
  int fd_;
};

/// Removes a socket file that a dead process has left behind. Only for a server that has its lock.
/// Fails if somebody listens there, or if the file is no socket.
///
/// It does not connect to the socket. DPDK 22.11 (memif_listener_handler) closes the descriptor of
/// a peer that hangs up before it is greeted, but leaves it in the interrupt thread's list; that
/// thread ends the process (rte_panic).
Status remove_stale_socket(const std::string& path);

}  // namespace gradplane::port
