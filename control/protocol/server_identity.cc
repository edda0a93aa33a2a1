// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/protocol/server_identity.h"

#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <system_error>

namespace gradplane::protocol {

std::optional<uid_t> parse_uid(std::string_view text) {
  uid_t uid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), uid);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || uid == static_cast<uid_t>(-1)) return std::nullopt;
  return uid;
}

bool is_trusted(uid_t uid, uid_t named) {
  const uid_t own = ::geteuid();
  return uid == 0 || (uid == own && own != kUnknownUid) || uid == named;
}

std::string why_not_trusted(int fd, std::string_view path, uid_t named) {
  ucred server{};
  socklen_t bytes = sizeof(server);
  const std::string where = "the server on " + std::string(path);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &bytes) != 0) {
    return where + " does not show whose it is (" + std::generic_category().message(errno) +
           "), so it was told nothing";
  }
  if (is_trusted(server.uid, named)) return "";
  const std::string uid = std::to_string(server.uid);
  const std::string who =
      server.uid == kUnknownUid ? uid + " (any user from outside this container)" : uid;
  return where + " belongs to uid " + who + ", not to root or uid " + std::to_string(::geteuid()) +
         ", so it was told nothing; stop it, or set " + kDaemonUidVariable + "=" + uid +
         " if it is your gradplaned";
}

}  // namespace gradplane::protocol
