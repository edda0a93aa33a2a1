// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/ipc/unique_fd.h"

namespace gradplane::server {

/// Threads that may be busy with the closing of sockets; what comes beyond stays open until the
/// process ends.
inline constexpr int kMaxClosingThreads = 16;

enum class Head : unsigned char { kNothing, kMessage, kDescriptors };

/// What the next message of a socket is, without taking it. kDescriptors: whoever receives it must
/// close what it brings, and that may last: a TCP socket lingers for as long as its sender likes.
Head peek_head(int fd) noexcept;

/// Closes a client's socket without waiting for what its unread messages hold: if there are any, a
/// thread of its own does it. Any thread.
void end_socket(ipc::UniqueFd socket) noexcept;

}  // namespace gradplane::server
