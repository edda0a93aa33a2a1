// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/server/server.h"
#include "tests/support/catch.h"

/// A server in a folder of its own. Clients speak to it over real sockets.
namespace gradplane::server::testing {

using namespace protocol;

/// A temporary folder, which is removed at the end.
class TempFolder {
 public:
  TempFolder() {
    char name[] = "/tmp/gp-server-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~TempFolder() {
    for (const char* file : {"/run/s.sock", "/run/s.sock.lock", "/run/s.sock.require"})
      ::unlink((path_ + file).c_str());
    ::rmdir((path_ + "/run").c_str());
    ::rmdir(path_.c_str());
  }
  std::string socket() const { return path_ + "/run/s.sock"; }
  /// Lets other users open files in the folder.
  void open_to_all() const { REQUIRE(::chmod(path_.c_str(), 0755) == 0); }

 private:
  std::string path_;
};

/// A handler that records all calls, and calls `react` on a message.
class Recorder : public ConnectionHandler {
 public:
  void on_open(ConnectionId id, const PeerInfo& peer) override {
    opened[id] = peer;
    last = id;
  }
  void on_message(ConnectionId id, const ClientMessage& message) override {
    REQUIRE(opened.contains(id));
    REQUIRE(!closed.contains(id));
    ++messages;
    if (react) react(id, message);
  }
  void on_closed(ConnectionId id, bool clean) override {
    REQUIRE(opened.contains(id));
    REQUIRE(!closed.contains(id));
    closed[id] = clean;
  }

  std::map<ConnectionId, PeerInfo> opened;
  std::map<ConnectionId, bool> closed;
  std::function<void(ConnectionId, const ClientMessage&)> react;
  int messages = 0;
  ConnectionId last = 0;
};

class Client {
 public:
  explicit Client(const std::string& path)
      : fd_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    connected = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  bool say(const std::string& text) {
    return ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  bool say(const ClientMessage& message) { return say(encode(message)); }
  /// Returns the next message, "" at the end of the connection, or "?" if nothing has come.
  /// Descriptors go to `fds`.
  std::string hear() {
    std::vector<char> text(kMaxSocketMessageBytes + 1);
    iovec data{text.data(), text.size()};
    alignas(cmsghdr) char control[256];
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t got = ::recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
    // The first call fails if the server hung up before it had read everything.
    if (got < 0 && errno == ECONNRESET) got = ::recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
    if (got < 0) return errno == EAGAIN ? "?" : "reset";
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message)) {
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
        fds.emplace_back(fd);
      }
    }
    return std::string(text.data(), static_cast<std::size_t>(got));
  }
  int fd() const { return fd_.get(); }
  void hang_up() { fd_.reset(); }

  bool connected = false;
  std::vector<UniqueFd> fds;

 private:
  UniqueFd fd_;
};

struct Bench {
  explicit Bench(ServerOptions options = {}) {
    options.socket_path = folder.socket();
    options.node = "n0";
    options.software = "0.1.0";
    auto created = EventLoop::create();
    REQUIRE(created.ok());
    loop = std::move(created.value());
    auto made = Server::create(*loop, recorder, options);
    if (!made.ok()) FAIL(made.error().message);
    server = std::move(made.value());
  }

  /// Runs the loop until `done`. A wait that is far too long fails the test.
  void until(const std::function<bool()>& done) {
    const Instant end = EventLoop::now() + Duration::seconds(20);
    while (!done()) {
      REQUIRE(EventLoop::now() < end);
      loop->run_once(Duration::ms(1));
    }
  }
  std::string answer(Client& client) {
    std::string text = "?";
    until([&] { return (text = client.hear()) != "?"; });
    return text;
  }
  /// Returns a client after its hello.
  Client open(Role role = Role::kRank) {
    Client client(folder.socket());
    REQUIRE(client.connected);
    REQUIRE(client.say(ClientHello{kSocketVersion, role, 1}));
    const auto hello = parse_daemon_message(answer(client));
    REQUIRE(hello.ok());
    REQUIRE(std::get<DaemonHello>(*hello.message).node == "n0");
    return client;
  }
  void check_error(Client& client, const std::string& part) {
    const auto parsed = parse_daemon_message(answer(client));
    REQUIRE(parsed.ok());
    REQUIRE(std::holds_alternative<SocketError>(*parsed.message));
    INFO(std::get<SocketError>(*parsed.message).reason);
    CHECK(std::get<SocketError>(*parsed.message).reason.find(part) != std::string::npos);
    CHECK(answer(client).empty());
  }
  std::uint64_t hang_ups(HangUp reason) const {
    return server->hang_ups()[static_cast<std::size_t>(reason)];
  }

  TempFolder folder;
  Recorder recorder;
  std::unique_ptr<EventLoop> loop;
  std::unique_ptr<Server> server;
};

}  // namespace gradplane::server::testing
