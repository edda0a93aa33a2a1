// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace gradplane::test {

/// Runs `action` in a child process as user `uid`, and returns what it returned. Needs root.
inline bool is_true_as(uid_t uid, const std::function<bool()>& action) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::setgid(uid) == 0 && ::setuid(uid) == 0 && action() ? 0 : 1);
  int status = -1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

/// Calls listen() on a bound socket as another user, so that the kernel reports that user as its
/// owner.
inline bool listen_as(uid_t uid, int listener) {
  return is_true_as(uid, [listener] { return ::listen(listener, 1) == 0; });
}

}  // namespace gradplane::test
