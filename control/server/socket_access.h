// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "dataplane/base/result.h"

namespace gradplane::server {

/// Who may connect to the control socket. The kernel asks: a stranger's connect() fails, and costs
/// the daemon nothing.
struct SocketAccess {
  /// Name or number of a group whose members may; empty: none.
  std::string group = {};
  /// Users who may besides root and our own.
  std::vector<uid_t> users = {};
  /// Whether who may not connect is told, by a file, that he must not go on without us.
  bool require = false;
  /// False is for tests of what older kernels leave to us.
  bool refuse_descriptors = true;
};

/// Gives a socket file the rights that `access` asks for: a mode for us and the group, and an
/// access list for the users.
Status grant_access(const std::string& path, const SocketAccess& access);

}  // namespace gradplane::server
