// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/client/control_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>

#include "control/protocol/server_identity.h"
#include "control/protocol/socket_messages.h"
#include "dataplane/model/core_part.h"
#include "trainer-shim/client/clock.h"

namespace gradplane::client {
namespace {

/// The most descriptors of one message. The kernel drops more.
constexpr std::size_t kMaxDescriptors = 2 + kMaxCores;
/// The pause between two tries to connect while the listen queue is full. poll() cannot wait for
/// that.
constexpr Duration kConnectPause = Duration::ms(5);

std::string errno_text(int value) {
  return std::generic_category().message(value);
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

Failure connect_failure(const std::string& path, int error) {
  const std::string what = "cannot reach gradplaned at " + path + ": " + errno_text(error);
  if (error == EACCES || error == EPERM) {
    return {GP_REFUSED,
            what + "; user " + std::to_string(::geteuid()) +
                " may not use this daemon: run as root or as the daemon's user, or ask its "
                "operator to add you to its control.group or to control.allow_uids"};
  }
  // Ranks tell each other why they go on without gradplane, so the text names the host.
  return {GP_NO_DAEMON, what + "; start gradplaned on host " + host_name() +
                            ", or set GRADPLANE_SOCKET "
                            "to its socket there"};
}

/// Takes ownership of every descriptor of a message, whatever their number.
std::vector<ipc::UniqueFd> take_descriptors(msghdr& header) {
  std::vector<ipc::UniqueFd> taken;
  taken.reserve(kMaxDescriptors);
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      taken.emplace_back(fd);
    }
  }
  return taken;
}

}  // namespace

Failure ControlSocket::connect(const std::string& path, uid_t daemon_uid, Instant deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return {GP_BAD_ARGUMENT, "the socket path '" + path + "' is empty or longer than " +
                                 std::to_string(sizeof(address.sun_path) - 1) + " bytes"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  fd_ = ipc::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_) return connect_failure(path, errno);
  buffer_.resize(protocol::kMaxSocketMessageBytes);
  while (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return connect_failure(path, errno);
    if (monotonic_now() >= deadline) {
      return {GP_TIMEOUT, "gradplaned at " + path + " does not accept connections; is it stopped?"};
    }
    poll_for({}, kConnectPause);
  }
  const std::string doubt = protocol::why_not_trusted(fd_.get(), path, daemon_uid);
  if (!doubt.empty()) return {GP_NO_DAEMON, doubt};
  return {};
}

Failure ControlSocket::send(std::string_view text, Instant deadline) {
  while (::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EINTR) continue;
    // The daemon has hung up. Its last message, which says why, can still be received.
    if (errno == EPIPE || errno == ECONNRESET) return {};
    if (errno != EAGAIN) {
      return {GP_BROKEN, "gradplaned closed the connection: " + errno_text(errno)};
    }
    const Instant now = monotonic_now();
    if (now >= deadline) return {GP_TIMEOUT, "gradplaned does not read its socket; is it stopped?"};
    pollfd writable{fd_.get(), POLLOUT, 0};
    poll_for({&writable, 1}, deadline - now);
  }
  return {};
}

void ControlSocket::try_send(std::string_view text) noexcept {
  [[maybe_unused]] const auto sent =
      ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

ControlSocket::Got ControlSocket::receive(Received& out) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  iovec part{buffer_.data(), buffer_.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t got = -1;
  do {
    got = ::recvmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // A daemon that hangs up before it has read everything resets the connection. The error comes
    // once, and its last messages can be received after it.
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0) return errno == EAGAIN ? Got::kNothing : Got::kEnd;
  out.descriptors = take_descriptors(header);
  // The daemon sends no empty messages, so this is the end of the connection. A message that was
  // cut is not accepted.
  if (got == 0 || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return Got::kEnd;
  out.text.assign(buffer_.data(), static_cast<std::size_t>(got));
  return Got::kMessage;
}

Failure ControlSocket::receive(Received& out, Instant deadline) {
  for (;;) {
    const Got got = receive(out);
    if (got == Got::kMessage) return {};
    if (got == Got::kEnd) return {GP_BROKEN, "gradplaned closed the connection without an answer"};
    const Instant now = monotonic_now();
    if (now >= deadline) return {GP_TIMEOUT, "gradplaned does not answer; is it stopped?"};
    pollfd readable{fd_.get(), POLLIN, 0};
    poll_for({&readable, 1}, deadline - now);
  }
}

}  // namespace gradplane::client
