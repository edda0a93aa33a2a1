// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace gradplane::ipc {

/// Owns one descriptor; closes it without touching errno. Any thread, but only one at a time.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const noexcept { return fd_; }
  /// Gives the descriptor up: the caller closes it, or the end of the process does.
  int release() noexcept { return std::exchange(fd_, -1); }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept {
    if (fd_ < 0) return;
    const int saved_errno = errno;
    ::close(std::exchange(fd_, -1));
    errno = saved_errno;
  }

 private:
  int fd_ = -1;
};

}  // namespace gradplane::ipc
