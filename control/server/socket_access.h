// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "dataplane/base/result.h"

namespace gradplane::server {

/// Who may connect to the control socket. The kernel enforces it: connect() fails for others, at no
/// cost to the daemon.
struct SocketAccess {
  /// Name or number of a group whose members may connect; empty: none.
  std::string group = {};
  /// Users who may connect besides root and our own user.
  std::vector<uid_t> users = {};
  /// Whether a file tells those who may not connect that they must not go on without gradplane.
  bool require = false;
  /// Whether the kernel refuses descriptors, if it can. Tests of the code for older kernels set it
  /// to false.
  bool refuse_descriptors = true;
};

/// Sets the rights of a socket file: the mode for us and the group, and an access list for the
/// users.
Status grant_access(const std::string& path, const SocketAccess& access);

}  // namespace gradplane::server
