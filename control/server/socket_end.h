// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>

#include "dataplane/ipc/unique_fd.h"

namespace gradplane::server {

enum class Head : unsigned char { kNothing, kMessage, kDescriptors, kBroken };

/// What the next message of a socket is, without taking it; kMessage also at the end of the
/// connection. Only after kMessage may it be taken: else one that comes a moment later could bring
/// what nobody has looked at. kDescriptors: whoever receives it must
/// close what it brings, and that may last: a TCP socket lingers for as long as its sender likes.
Head peek_head(int fd) noexcept;

/// Closes a client's socket without waiting for what its unread messages hold: if there are any, it
/// is left to a thread that ends with it, and that therefore lingers for nothing. Any thread.
void end_socket(ipc::UniqueFd socket) noexcept;

/// Sockets that are not handed to an ending thread yet. Any thread.
std::size_t unclosed_sockets() noexcept;

}  // namespace gradplane::server
