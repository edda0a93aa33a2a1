// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "dataplane/base/result.h"
#include "dataplane/port/dpdk/dpdk_port.h"

namespace gradplane::port {

/// One daemon for one end of a memif: held for the life of the object, given back by the kernel
/// when the process dies. A file beside the socket: `.lock` of the server, `.ID.lock` of the client
/// with this id. The file stays.
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

/// For a server that has its lock: removes a socket file that a process left behind that is gone.
/// Fails when somebody listens there, or when it is no socket.
///
/// Nobody is connected to for this. DPDK 22.11 (memif_listener_handler) closes the descriptor of a
/// peer that hangs up before it is greeted, but leaves it in the interrupt thread's list; that
/// thread ends the process (rte_panic).
Status remove_stale_socket(const std::string& path);

}  // namespace gradplane::port
