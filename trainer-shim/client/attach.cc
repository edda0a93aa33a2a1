// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/client/attach.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <variant>

#include "control/protocol/server_identity.h"
#include "control/protocol/socket_messages.h"
#include "trainer-shim/client/clock.h"
#include "trainer-shim/client/text.h"

namespace gradplane::client {
namespace {

/// Descriptors from a daemon with one core. Each further core adds its doorbell.
constexpr std::size_t kAttachedDescriptors = 3;

Failure check(const gp_attach_options& options) {
  if (options.socket_path == nullptr) return {GP_BAD_ARGUMENT, "no socket path"};
  if (options.world_size == 0 || options.world_size > kMaxRanks) {
    return {GP_BAD_ARGUMENT, "a job has 1 to " + std::to_string(kMaxRanks) + " ranks, not " +
                                 std::to_string(options.world_size)};
  }
  if (options.rank >= options.world_size) {
    return {GP_BAD_ARGUMENT, "there is no rank " + std::to_string(options.rank) + " of " +
                                 std::to_string(options.world_size)};
  }
  return {};
}

protocol::ClientMessage attach_message(const gp_attach_options& options) {
  protocol::Attach message;
  static_assert(sizeof(message.key) == sizeof(options.job_key));
  std::memcpy(message.key.data(), options.job_key, sizeof(options.job_key));
  message.rank = options.rank;
  message.world_size = options.world_size;
  message.label = text_within(options.label, protocol::kMaxLabelBytes);
  message.run_id = text_within(options.run_id, protocol::kMaxRunIdBytes);
  return message;
}

/// Sends a message and takes the answer, which must be an `Answer`.
template <typename Answer>
Failure ask(ControlSocket& control, const protocol::ClientMessage& question, Instant deadline,
            Answer& answer, Received& received) {
  if (auto failure = control.send(protocol::encode(question), deadline)) return failure;
  if (auto failure = control.receive(received, deadline)) return failure;
  auto parsed = protocol::parse_daemon_message(received.text);
  if (!parsed.ok()) {
    return {GP_BROKEN, "gradplaned sent nonsense: " + parsed.rejection.text};
  }
  if (const auto* error = std::get_if<protocol::SocketError>(&*parsed.message)) {
    return {GP_REFUSED, "gradplaned refused: " + error->reason};
  }
  auto* wanted = std::get_if<Answer>(&*parsed.message);
  if (wanted == nullptr) return {GP_BROKEN, "gradplaned answered out of turn"};
  answer = std::move(*wanted);
  return {};
}

bool socket_option_is(int fd, int option, int wanted) {
  int value = -1;
  socklen_t value_bytes = sizeof(value);
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &value_bytes) == 0 && value == wanted;
}

/// Whether a descriptor is a Unix datagram socket, because other kinds could block.
bool is_doorbell(int fd) {
  return socket_option_is(fd, SO_DOMAIN, AF_UNIX) && socket_option_is(fd, SO_TYPE, SOCK_DGRAM);
}

Failure take_channel(const protocol::Attached& attached, Received& received, Attachment& out) {
  const std::size_t awaited = kAttachedDescriptors + attached.core_count - std::size_t{1};
  if (received.descriptors.size() != awaited) {
    return {GP_BROKEN, "gradplaned passed " + std::to_string(received.descriptors.size()) +
                           " descriptors, not " + std::to_string(awaited)};
  }
  auto view = ipc::ChannelView::map(received.descriptors[0].get());
  if (!view) return {GP_BROKEN, view.error().message};
  const ipc::ChannelSizes told{attached.slot_count, attached.slot_bytes, attached.core_count};
  if (!(view.value().sizes() == told) || attached.total_bytes != told.total_bytes()) {
    return {GP_BROKEN, "gradplaned announced another channel than it passed"};
  }
  out.channel = std::move(view.value());
  const auto bells = std::span(received.descriptors).subspan(1);
  if (!std::all_of(bells.begin(), bells.end(), [](const auto& b) { return is_doorbell(b.get()); }))
    return {GP_BROKEN, "gradplaned passed descriptors that are no doorbells"};
  out.trainer_doorbell = std::move(received.descriptors[2]);
  out.daemon_doorbells.push_back(std::move(received.descriptors[1]));
  for (std::size_t d = kAttachedDescriptors; d < awaited; ++d)
    out.daemon_doorbells.push_back(std::move(received.descriptors[d]));
  return {};
}

Failure say_hello(ControlSocket& control, Instant deadline, protocol::DaemonHello& daemon,
                  Received& received) {
  protocol::ClientHello hello;
  hello.pid = static_cast<std::uint32_t>(::getpid());
  return ask(control, hello, deadline, daemon, received);
}

}  // namespace

bool daemon_requires(const char* socket_path, uid_t daemon_uid, Duration bound) {
  if (socket_path == nullptr) return false;
  const Instant deadline = monotonic_now() + bound;
  ControlSocket control;
  if (const auto failure = control.connect(socket_path, daemon_uid, deadline)) {
    // The kernel refuses the connection, so a file beside the socket tells whether ranks must not
    // go on without the daemon.
    const std::string told = socket_path + std::string(protocol::kRequireFileSuffix);
    struct stat info {};
    return failure.status == GP_REFUSED && ::lstat(told.c_str(), &info) == 0 &&
           protocol::is_trusted(info.st_uid, daemon_uid);
  }
  Received received;
  protocol::DaemonHello daemon;
  if (!say_hello(control, deadline, daemon, received)) return daemon.require;
  // The error for a refused rank tells it, too.
  const auto parsed = protocol::parse_daemon_message(received.text);
  const auto* error = parsed.ok() ? std::get_if<protocol::SocketError>(&*parsed.message) : nullptr;
  return error != nullptr && error->require;
}

Failure attach(const gp_attach_options& options, Attachment& out) {
  if (auto failure = check(options)) return failure;
  const Instant deadline = monotonic_now() + Duration::ms(options.timeout_ms);
  if (auto failure = out.control.connect(options.socket_path, options.daemon_uid, deadline)) {
    return failure;
  }

  out.liveness_limit = Duration::ms(options.liveness_ms);

  Received received;
  protocol::DaemonHello daemon;
  if (auto failure = say_hello(out.control, deadline, daemon, received)) return failure;
  out.require = daemon.require;
  if (daemon.version != protocol::kSocketVersion) {
    return {GP_REFUSED,
            "gradplaned " + protocol::printable(daemon.software, 64) + " speaks version " +
                std::to_string(daemon.version) + " of the control socket, this shim version " +
                std::to_string(protocol::kSocketVersion) + "; install the same release"};
  }
  protocol::Attached attached;
  if (auto failure = ask(out.control, attach_message(options), deadline, attached, received)) {
    return failure;
  }
  return take_channel(attached, received, out);
}

}  // namespace gradplane::client
