// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/server/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "control/protocol/socket_messages.h"
#include "control/server/socket_end.h"
#include "dataplane/ipc/trusted_folder.h"

namespace gradplane::server {

namespace {

constexpr int kBacklog = 128;

Error failure(const std::string& what, const std::string& path, const std::string& remedy) {
  return Error{fmt::format("{} {}: {}; {}", what, path, std::strerror(errno), remedy)};
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return Error{
        fmt::format("the socket path {} has {} bytes, but 1 to {} are possible; choose a "
                    "shorter control.socket",
                    path, path.size(), sizeof address.sun_path - 1)};
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

UniqueFd new_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// The process that listens at `address`; 0 when none does.
pid_t pid_of_listener(const sockaddr_un& address) {
  const UniqueFd probe = new_socket();
  if (!probe) return 0;
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return 0;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 0;
  return peer.pid;
}

Error another_daemon(const std::string& path, pid_t pid) {
  const std::string who = pid > 0 ? fmt::format(", pid {}", pid) : "";
  return Error{
      fmt::format("another gradplaned is running on {}{}; stop it, or choose another "
                  "control.socket",
                  path, who)};
}

/// Makes the folder of the socket if it does not exist.
Status make_folder(const std::string& path) {
  if (!path.starts_with('/'))
    return Error{fmt::format("control.socket: {} is no absolute path; choose one", path)};
  const Status made =
      ipc::make_trusted_folder(path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)));
  if (made.ok()) return made;
  return Error{fmt::format("cannot serve on {}: {}; or choose another control.socket", path,
                           made.error().message)};
}

/// Writes the file that tells clients which may not connect that they must not go on without
/// gradplane. Removes an old one.
Status tell_strangers(const std::string& path, bool require) {
  const std::string told = path + std::string(protocol::kRequireFileSuffix);
  ::unlink(told.c_str());
  if (!require) return Nothing{};
  const UniqueFd file(
      ::open(told.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (file && ::fchmod(file.get(), 0644) == 0) return Nothing{};
  return failure("cannot write", told, "check the rights of its folder");
}

/// Makes the kernel refuse clients that pass descriptors, where it can (Linux 6.16). Accepted
/// sockets inherit this from their listener.
void refuse_descriptors(int socket) {
  constexpr int kPassRights = 83;  // SO_PASSRIGHTS, which our C library does not know yet
  const int off = 0;
  ::setsockopt(socket, SOL_SOCKET, kPassRights, &off, sizeof off);
}

/// Removes a socket file that nobody listens on. Anything else at the path is left alone.
Status clear_path(const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return Nothing{};
    return failure("cannot look at", path, "check the rights of its folder");
  }
  if (!S_ISSOCK(info.st_mode))
    return Error{
        fmt::format("{} is there and is no socket; remove it, or choose another "
                    "control.socket",
                    path)};
  if (const pid_t pid = pid_of_listener(address); pid > 0) return another_daemon(path, pid);
  if (::unlink(path.c_str()) != 0)
    return failure("cannot remove the stale socket", path, "remove it by hand");
  return Nothing{};
}

}  // namespace

Result<Listener> Listener::open(const std::string& path, const SocketAccess& access) {
  const Result<sockaddr_un> address = address_of(path);
  if (!address.ok()) return address.error();
  const Status folder = make_folder(path);
  if (!folder.ok()) return folder.error();

  const std::string lock_path = path + ".lock";
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock)
    return failure("cannot open", lock_path, "run as root, or choose another control.socket");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return another_daemon(path, pid_of_listener(address.value()));
  const Status cleared = clear_path(path, address.value());
  if (!cleared.ok()) return cleared.error();

  UniqueFd socket = new_socket();
  if (!socket) return failure("cannot create a socket for", path, "raise the limit of open files");
  if (access.refuse_descriptors) refuse_descriptors(socket.get());
  const auto* raw = reinterpret_cast<const sockaddr*>(&address.value());
  // Nobody can connect before listen(), and by then the rights are set.
  if (::bind(socket.get(), raw, sizeof(sockaddr_un)) != 0)
    return failure("cannot bind", path, "check the rights of its folder");
  Listener listener(path, std::move(lock), std::move(socket));
  if (Status told = tell_strangers(path, access.require); !told) return told.error();
  if (Status granted = grant_access(path, access); !granted) return granted.error();
  if (::listen(listener.fd(), kBacklog) != 0)
    return failure("cannot listen on", path, "check the rights of its folder");
  return listener;
}

Listener::Listener(std::string path, UniqueFd lock, UniqueFd socket)
    : path_(std::move(path)), lock_(std::move(lock)), socket_(std::move(socket)) {}

Listener::~Listener() {
  if (!socket_) return;
  ::unlink(path_.c_str());
  ::unlink((path_ + std::string(protocol::kRequireFileSuffix)).c_str());
  // Closing the listener would close all connections that wait, with descriptors in their messages,
  // and that may block. So they are accepted and ended one by one.
  ::shutdown(socket_.get(), SHUT_RDWR);
  for (;;) {
    ipc::UniqueFd waiting(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!waiting) break;
    end_socket(std::move(waiting));
  }
}

}  // namespace gradplane::server
