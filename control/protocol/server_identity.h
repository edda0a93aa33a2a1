// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace gradplane::protocol {

/// Names one more user whose daemon is trusted, besides root and the client's own.
inline constexpr const char* kDaemonUidVariable = "GRADPLANE_DAEMON_UID";
/// The uid that the kernel reports for every user unknown to the client's user namespace.
inline constexpr uid_t kUnknownUid = 65534;

/// The uid that kDaemonUidVariable holds; nothing when `text` is no uid.
std::optional<uid_t> parse_uid(std::string_view text);

/// Whether this user is trusted to run the daemon: root, the client's own user, and `named` (0:
/// nobody else). kUnknownUid may be anybody, so it is trusted only when it is named.
bool is_trusted(uid_t uid, uid_t named);

/// Why the server behind a connected Unix socket is not trusted, as a sentence; empty when it is.
/// The owner of the socket's folder can run a server of his own there, and clients would send him
/// the keys of jobs. The kernel tells which user has called listen().
std::string why_not_trusted(int fd, std::string_view path, uid_t named);

}  // namespace gradplane::protocol
