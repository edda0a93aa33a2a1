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
/// What the kernel calls every user that the client's user namespace does not know.
inline constexpr uid_t kUnknownUid = 65534;

/// The uid that kDaemonUidVariable holds; nothing when `text` is no uid.
std::optional<uid_t> parse_uid(std::string_view text);

/// Whether what this user says of the daemon counts: root, the client's own user, and `named` (0:
/// nobody else). kUnknownUid may be anybody, so it is trusted only when it is named.
bool is_trusted(uid_t uid, uid_t named);

/// Why the server behind a connected Unix socket must not be told anything, as a sentence; empty
/// when it may. Whoever owns the folder of a socket can serve there, and would be told the secrets
/// of jobs. The kernel names the user who called listen().
std::string why_not_trusted(int fd, std::string_view path, uid_t named);

}  // namespace gradplane::protocol
