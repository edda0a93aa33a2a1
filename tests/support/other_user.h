// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/support/catch.h"

namespace gradplane::testing {

inline constexpr uid_t kStranger = 65534;
inline constexpr uid_t kOther = 65533;

/// Whether the test may run processes as another user. Warns if not.
inline bool can_change_user() {
  if (::geteuid() == 0) return true;
  WARN("needs root to become somebody else");
  return false;
}

/// A child process that runs as another user, without root's rights. Its exit status is what `act`
/// returns.
class OtherUser {
 public:
  OtherUser(uid_t uid, gid_t gid, const std::function<int()>& act) : pid_(::fork()) {
    REQUIRE(pid_ >= 0);
    if (pid_ > 0) return;
    const bool changed = ::setgroups(0, nullptr) == 0 && ::setresgid(gid, gid, gid) == 0 &&
                         ::setresuid(uid, uid, uid) == 0;
    ::_exit(changed ? status_of(act) : 99);
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;
  ~OtherUser() {
    if (!ended_) wait();
  }
  pid_t pid() const { return pid_; }
  /// Whether the child process has ended.
  bool ended() {
    if (!ended_) ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
    return ended_;
  }
  int wait() {
    if (!ended_) ended_ = ::waitpid(pid_, &status_, 0) == pid_;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }

 private:
  /// Catches exceptions of `act`. Otherwise the child would go on and run the parent's other tests.
  static int status_of(const std::function<int()>& act) {
    try {
      return act();
    } catch (...) {
      return 98;
    }
  }

  pid_t pid_;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace gradplane::testing
