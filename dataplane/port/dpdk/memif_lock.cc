// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/memif_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "dataplane/ipc/trusted_folder.h"

namespace gradplane::port {
namespace {

std::string because() {
  return std::strerror(errno);
}

std::string end_text(const DpdkPortOptions& o) {
  if (o.memif_role == MemifRole::kServer) return "the server of " + o.memif_socket;
  return "the client of " + o.memif_socket + " with id " + std::to_string(o.memif_id);
}

/// The process that holds the lock has written its number into the file. Another writer could only
/// cause a wrong number in the message.
std::string holder_text(int fd) {
  std::array<char, 16> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  std::string digits;
  for (ssize_t i = 0; i < size && text[i] >= '0' && text[i] <= '9'; ++i) digits += text[i];
  return digits.empty() ? "another process" : "process " + digits;
}

}  // namespace

Result<MemifLock> MemifLock::take(const DpdkPortOptions& o) {
  const bool is_server = o.memif_role == MemifRole::kServer;
  std::string path = o.memif_socket;
  if (!is_server) path += '.' + std::to_string(o.memif_id);
  path += ".lock";
  // A process that may create names there could take the lock first, or pose as the other end.
  const Status folder = ipc::check_trusted_folder(path.substr(0, path.rfind('/') + 1));
  if (!folder)
    return Error{"port: the memif socket " + o.memif_socket + ": " + folder.error().message};
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return Error{"port: " + path + " cannot be opened: " + because() +
                 "; create its folder, for the two ends alone, or choose another memif socket"};
  }
  MemifLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return Error{"port: " + holder_text(fd) + " is " + end_text(o) + " already (it holds " + path +
                 "); stop it, or give this one another memif socket" + (is_server ? "" : " or id")};
  }
  const std::string number = std::to_string(::getpid());
  if (::ftruncate(fd, 0) != 0 ||
      ::pwrite(fd, number.data(), number.size(), 0) != static_cast<ssize_t>(number.size())) {
    return Error{"port: " + path + " cannot be written: " + because() + "; make room on its disk"};
  }
  return lock;
}

MemifLock::~MemifLock() {
  if (fd_ >= 0) ::close(fd_);
}

Status remove_stale_socket(const std::string& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return Nothing{};
  if (!S_ISSOCK(facts.st_mode)) {
    return Error{"port: " + path + " exists and is no socket; choose another path"};
  }
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.c_str(), std::min(path.size(), sizeof name.sun_path - 1));
  // This socket has another type than memif's. So the kernel tells whether somebody listens, and
  // the listener notices nothing.
  const int probe = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int met = ::connect(probe, reinterpret_cast<const sockaddr*>(&name), sizeof name);
  const int error = met == 0 ? 0 : errno;
  if (probe >= 0) ::close(probe);
  if (error == ENOENT) return Nothing{};
  if (error != ECONNREFUSED) {
    return Error{"port: somebody else listens on the memif socket " + path + " (" +
                 std::strerror(error) +
                 "); stop that process, make this end the client, or choose another memif socket"};
  }
  if (::unlink(path.c_str()) != 0) {
    return Error{"port: the socket " + path + " is left over and cannot be removed: " + because()};
  }
  return Nothing{};
}

}  // namespace gradplane::port
