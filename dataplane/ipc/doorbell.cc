// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/ipc/doorbell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "dataplane/ipc/system_error.h"

namespace gradplane::ipc {

Result<UniqueFd> create_doorbell() {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) return system_error("cannot create an eventfd", errno, "raise the limit of open files");
  return fd;
}

void ring_doorbell(int fd) noexcept {
  const int saved_errno = errno;
  const std::uint64_t one = 1;
  // It fails only when the counter is full, and then the sleeper is awake already.
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof(one));
  errno = saved_errno;
}

void silence_doorbell(int fd) noexcept {
  const int saved_errno = errno;
  std::uint64_t rings;
  [[maybe_unused]] const auto got = ::read(fd, &rings, sizeof(rings));
  errno = saved_errno;
}

}  // namespace gradplane::ipc
