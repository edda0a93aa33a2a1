// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <sys/types.h>

#include <vector>

#include "dataplane/ipc/channel_view.h"
#include "dataplane/ipc/unique_fd.h"
#include "trainer-shim/client/control_socket.h"
#include "trainer-shim/client/failure.h"

namespace gradplane::client {

/// What a rank has once a daemon has accepted it.
struct Attachment {
  ControlSocket control;
  ipc::ChannelView channel;
  std::vector<ipc::UniqueFd> daemon_doorbells;  // to ring the daemon, by core
  ipc::UniqueFd trainer_doorbell;               // to listen to the daemon
  Duration liveness_limit;                      // zero: the default
  bool require = false;                         // the daemon's operator forbids to go on without it
};

/// Whether the daemon says that its ranks must not go on without it. It also tells that to ranks
/// that may not attach. False when no trusted daemon answers in time.
bool daemon_requires(const char* socket_path, uid_t daemon_uid, Duration bound);

/// Connects, presents the key, and checks everything that comes back. Takes at most timeout_ms.
Failure attach(const gp_attach_options& options, Attachment& out);

}  // namespace gradplane::client
