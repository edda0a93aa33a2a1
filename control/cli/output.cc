// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/output.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "control/cli/exit_codes.h"

namespace gradplane::cli {

int print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      return kExitOk;
    } else if (errno != EINTR) {
      complain(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
      return kExitFailure;
    }
  }
  return kExitOk;
}

void complain(std::string_view text) {
  fmt::print(stderr, "gradplane: {}\n", text);
}

bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}

bool wait_for_turn(int milliseconds) {
  pollfd output{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return poll(&output, 1, milliseconds) <= 0;
}

}  // namespace gradplane::cli
