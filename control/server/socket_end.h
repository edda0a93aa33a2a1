// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>

#include "dataplane/ipc/unique_fd.h"

namespace gradplane::server {

enum class Head : unsigned char { kNothing, kMessage, kDescriptors, kBroken };

/// Looks at the next message of a socket without taking it. At the end of the connection it says
/// kMessage, too. Call recv() only after kMessage: after kNothing, a message with descriptors could
/// arrive just before recv(). After kDescriptors the receiver would have to close the descriptors,
/// which may block: the sender of a TCP socket decides how long it lingers.
Head peek_head(int fd) noexcept;

/// Closes a client's socket without blocking. If there are unread messages, which may hold
/// descriptors that are slow to close, a thread closes it by exiting: then the kernel does not
/// linger. Any thread.
void end_socket(ipc::UniqueFd socket) noexcept;

/// The number of sockets that no exiting thread has taken yet. Any thread. For tests.
std::size_t unclosed_sockets() noexcept;

}  // namespace gradplane::server
