// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "control/server/socket_access.h"
#include "dataplane/base/result.h"
#include "dataplane/ipc/unique_fd.h"

namespace gradplane::server {

using ipc::UniqueFd;

/// A listening Unix socket (SOCK_SEQPACKET) at a path, taken by one process at a time: a lock on
/// `<path>.lock` is held as long as this lives, so two daemons that start at once cannot both win.
/// A socket file that a dead daemon left is replaced. The file is unlinked at the end.
class Listener {
 public:
  /// Creates the last folder of the path (0755) when it is not there.
  /// Errors: another daemon lives there (its pid is named), something else is at the path, somebody
  /// else could change what stands there, rights.
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
