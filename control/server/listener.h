// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "control/server/socket_access.h"
#include "dataplane/base/result.h"
#include "dataplane/ipc/unique_fd.h"

namespace gradplane::server {

using ipc::UniqueFd;

/// A listening Unix socket (SOCK_SEQPACKET) at a path. Only one process at a time can have it: it
/// holds a lock on `<path>.lock` as long as this lives, so two daemons that start at once cannot
/// both succeed. A socket file that a dead daemon left is replaced. The destructor unlinks the
/// file.
class Listener {
 public:
  /// Creates the last folder of the path (0755) if it does not exist. Errors: another daemon
  /// listens there (the error names its pid), the path is no socket, another user could change the
  /// folder, or rights are missing.
  static Result<Listener> open(const std::string& path, const SocketAccess& access);

  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int fd() const { return socket_.get(); }
  const std::string& path() const { return path_; }

 private:
  Listener(std::string path, UniqueFd lock, UniqueFd socket);

  std::string path_;
  UniqueFd lock_;
  UniqueFd socket_;
};

}  // namespace gradplane::server
