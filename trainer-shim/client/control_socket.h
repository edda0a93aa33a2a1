// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/time.h"
#include "dataplane/ipc/unique_fd.h"
#include "trainer-shim/client/failure.h"

namespace gradplane::client {

/// A received message: its text, and the descriptors that came with it.
struct Received {
  std::string text;
  std::vector<ipc::UniqueFd> descriptors;
};

/// The rank's end of the control socket. No call waits longer than until its deadline, and none
/// raises a signal. One thread at a time.
class ControlSocket {
 public:
  /// Connects to the socket file at `path`. Fails unless the server there is of root, of this
  /// process's user, or of `daemon_uid`.
  Failure connect(const std::string& path, uid_t daemon_uid, Instant deadline);

  /// Sends one message; waits for room until `deadline`.
  Failure send(std::string_view text, Instant deadline);
  /// Sends one message if there is room; else drops it.
  void try_send(std::string_view text) noexcept;

  enum class Got { kMessage, kNothing, kEnd };
  /// Takes a message, without waiting. kEnd: the daemon is gone, or has sent an invalid message.
  Got receive(Received& out);
  /// Waits for a message until `deadline`.
  Failure receive(Received& out, Instant deadline);

  /// Closes the connection.
  void close() noexcept { fd_.reset(); }
  int fd() const noexcept { return fd_.get(); }

 private:
  ipc::UniqueFd fd_;
  std::vector<char> buffer_;
};

}  // namespace gradplane::client
