// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/protocol/socket_messages.h"
#include "dataplane/ipc/channel.h"
#include "dataplane/ipc/doorbell.h"
#include "dataplane/ipc/ring.h"
#include "tests/support/catch.h"
#include "tests/support/listen_as.h"
#include "trainer-shim/client/client.h"

/// A test's stand-in for a daemon: it has the daemon's side of the control socket and of one
/// channel. Its thread runs only while gp_attach() waits for it. Afterwards the test acts for both
/// sides in turn, so that nothing depends on timing.
namespace gradplane::test {

class FakeDaemon {
 public:
  FakeDaemon() {
    char folder[] = "/tmp/gp-fake-daemon-XXXXXX";
    REQUIRE(::mkdtemp(folder) != nullptr);
    folder_ = folder;
    path_ = folder_ + "/daemon.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    listener_ = ipc::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::listen(listener_.get(), 0) == 0);
  }
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;
  ~FakeDaemon() {
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
  }

  const std::string& path() const { return path_; }
  ipc::UniqueFd accept() const {
    return ipc::UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  void stop_listening() { listener_.reset(); }
  /// From now on the socket appears to be another user's.
  bool belong_to(uid_t uid) const { return listen_as(uid, listener_.get()); }

 private:
  std::string folder_;
  std::string path_;
  ipc::UniqueFd listener_;
};

inline void send_text(int connection, const std::string& text, const std::vector<int>& fds = {}) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
  }
  [[maybe_unused]] const auto sent = ::sendmsg(connection, &header, MSG_NOSIGNAL);
}

inline void send(int connection, const protocol::DaemonMessage& message,
                 const std::vector<int>& fds = {}) {
  send_text(connection, protocol::encode(message), fds);
}

/// The text of the next message; "" at the end of the connection.
inline std::string receive_text(int connection) {
  std::string text(protocol::kMaxSocketMessageBytes + 1, '\0');
  const ssize_t got = ::recv(connection, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

template <typename Message>
Message receive(int connection) {
  auto parsed = protocol::parse_client_message(receive_text(connection));
  const auto* message = parsed.ok() ? std::get_if<Message>(&*parsed.message) : nullptr;
  return message == nullptr ? Message{} : *message;
}

inline constexpr ipc::ChannelSizes kSizes{.slot_count = 16, .slot_bytes = 4096};

/// What a correct daemon holds for one rank.
struct Peer {
  ipc::UniqueFd connection;
  ipc::Channel channel{std::move(ipc::Channel::create(kSizes).value())};
  ipc::Doorbell daemon_doorbell{std::move(ipc::create_doorbell().value())};
  ipc::Doorbell trainer_doorbell{std::move(ipc::create_doorbell().value())};
  ipc::RingConsumer<ipc::Submission> submissions{channel.submissions()};
  ipc::RingProducer<ipc::Completion> completions{channel.completions()};
  protocol::Attach attach;

  std::vector<int> descriptors() const {
    return {channel.fd(), daemon_doorbell.ring.get(), trainer_doorbell.listen.get()};
  }
  bool complete(std::uint32_t round, std::uint32_t contributors = 2,
                std::uint32_t partial_blocks = 0) {
    return completions.push(
        {.round = round, .contributors = contributors, .partial_blocks = partial_blocks});
  }
};

inline protocol::DaemonHello hello() {
  return {protocol::kSocketVersion, "node-a", "gradplaned test"};
}
inline protocol::Attached attached(const ipc::ChannelSizes& sizes = kSizes) {
  return {sizes.slot_count, sizes.slot_bytes, sizes.total_bytes()};
}

/// The result of gp_attach() while `script` answers its connection as the daemon.
struct Attempt {
  int status = GP_OK;
  gp_session* session = nullptr;
  std::string error;
};

inline gp_attach_options options_for(const FakeDaemon& daemon) {
  return {daemon.path().c_str(), {1, 2, 3}, 1, 2, "test", nullptr, 20000, 0, 0};
}

inline Attempt attempt(FakeDaemon& daemon, const gp_attach_options& options,
                       const std::function<void(ipc::UniqueFd)>& script) {
  std::thread playing([&] { script(daemon.accept()); });
  Attempt result;
  char error[512] = "untouched";
  result.status = gp_attach(&options, &result.session, error, sizeof(error));
  result.error = error;
  playing.join();
  return result;
}

inline Attempt attempt(FakeDaemon& daemon, const std::function<void(ipc::UniqueFd)>& script) {
  return attempt(daemon, options_for(daemon), script);
}

/// Accepts a rank, as a correct daemon does.
inline void let_in(ipc::UniqueFd connection, Peer& peer) {
  receive<protocol::ClientHello>(connection.get());
  send(connection.get(), hello());
  peer.attach = receive<protocol::Attach>(connection.get());
  send(connection.get(), attached(), peer.descriptors());
  peer.connection = std::move(connection);
}

/// An attached rank and its daemon.
struct AttachedRank {
  FakeDaemon daemon;
  Peer peer;
  gp_session* session = nullptr;

  AttachedRank() {
    const Attempt result =
        attempt(daemon, [this](ipc::UniqueFd connection) { let_in(std::move(connection), peer); });
    INFO(result.error);
    REQUIRE(result.status == GP_OK);
    session = result.session;
  }
  AttachedRank(const AttachedRank&) = delete;
  AttachedRank& operator=(const AttachedRank&) = delete;
  ~AttachedRank() { gp_detach(session, 1); }

  int submit(std::uint32_t round, gp_statement said = {8, 1, 1, 0, 0, 0}) {
    return gp_submit(session, round, &said);
  }
};

inline std::size_t open_descriptors_count() {
  std::size_t count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

}  // namespace gradplane::test
