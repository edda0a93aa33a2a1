// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Clients that pass descriptors: to close what they pass may last as long as they like, and must
// never be the main thread's work. A server that got it wrong would hang here, for an hour.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/server/socket_end.h"
#include "tests/unit/server_bench.h"

using namespace gradplane;
using namespace gradplane::server;
using namespace gradplane::server::testing;

namespace {

const std::string kStatus = R"({"type":"status"})";

/// Sends `text` with a descriptor; whether it went. Any thread.
bool send_with_descriptor(int socket, std::string_view text, int passed) {
  iovec data{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &passed, sizeof passed);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

/// One end of a TCP connection over loopback whose close() lasts for seconds: unsent data, and
/// SO_LINGER. `other` never reads.
ipc::UniqueFd lingering_socket(ipc::UniqueFd& listener, ipc::UniqueFd& other) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  listener = ipc::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(listener.get(), generic, size) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  REQUIRE(::getsockname(listener.get(), generic, &size) == 0);
  ipc::UniqueFd sender(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(sender.get(), generic, size) == 0);
  other = ipc::UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(other);
  const linger forever{1, 3600};
  REQUIRE(::setsockopt(sender.get(), SOL_SOCKET, SO_LINGER, &forever, sizeof forever) == 0);
  const std::vector<char> much(std::size_t{1} << 20);
  while (::send(sender.get(), much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
  return sender;
}

/// Sockets whose closing lasts until `release()`.
class Lingering {
 public:
  ipc::UniqueFd make() {
    ipc::UniqueFd listener;
    return lingering_socket(listener, others_.emplace_back());
  }
  /// Resets their connections.
  void release() { others_.clear(); }

 private:
  std::vector<ipc::UniqueFd> others_;
};

}  // namespace

TEST_CASE("a client that passes a descriptor is hung up on, and nothing waits for its closing") {
  Lingering sockets;
  ipc::UniqueFd lingering = sockets.make();
  Bench bench;
  Client client = bench.open(Role::kOperator);
  SECTION("with a message that would be accepted") {
    REQUIRE(send_with_descriptor(client.fd(), kStatus, lingering.get()));
  }
  SECTION("behind a message that ends the connection") {
    REQUIRE(client.say(std::string("nonsense")));
    REQUIRE(send_with_descriptor(client.fd(), kStatus, lingering.get()));
  }
  SECTION("behind a message without any byte") {
    REQUIRE(::send(client.fd(), "", 0, MSG_NOSIGNAL) == 0);
    REQUIRE(send_with_descriptor(client.fd(), kStatus, lingering.get()));
  }
  lingering.reset();  // the message alone holds it
  bench.until([&] { return bench.server->connection_count() == 0; });
  CHECK(bench.recorder.messages == 0);
  Client next = bench.open(Role::kOperator);
  next.say(protocol::StatusRequest{});
  bench.until([&] { return bench.recorder.messages == 1; });
  sockets.release();
}

TEST_CASE("a server ends although clients that it has not accepted passed descriptors") {
  Lingering sockets;
  std::optional<Bench> bench;
  bench.emplace();
  ipc::UniqueFd lingering = sockets.make();
  Client client(bench->folder.socket());
  REQUIRE(client.connected);
  REQUIRE(send_with_descriptor(client.fd(), kStatus, lingering.get()));
  lingering.reset();
  bench.reset();
  sockets.release();
}

TEST_CASE("whoever keeps all closing threads busy costs nothing for good") {
  Lingering sockets;
  Bench bench;
  std::vector<Client> clients;
  for (int i = 0; i < 2 * kMaxClosingThreads; ++i) {
    ipc::UniqueFd lingering = sockets.make();
    clients.push_back(bench.open(Role::kOperator));
    REQUIRE(send_with_descriptor(clients.back().fd(), kStatus, lingering.get()));
  }
  bench.until([&] { return bench.server->connection_count() == 0; });
  CHECK(unclosed_sockets() > 0);
  sockets.release();
  bench.until([] { return unclosed_sockets() == 0; });
}

// The message with the descriptor comes while the server looks whether there is one.
TEST_CASE("a descriptor is never received, whenever it comes") {
  Bench bench;
  ipc::UniqueFd ends[2];
  int raw[2];
  REQUIRE(::pipe2(raw, O_CLOEXEC) == 0);
  ends[0] = ipc::UniqueFd(raw[0]);
  ends[1] = ipc::UniqueFd(raw[1]);
  for (int i = 0; i < 300; ++i) {
    Client client = bench.open(Role::kOperator);
    bench.recorder.messages = 0;
    bool sent = false;
    std::thread sender([&] {
      client.say(protocol::StatusRequest{});
      // Sooner or later, so that it meets every moment of the server's turn.
      std::atomic<int> spin{0};
      while (spin.fetch_add(1) < i * 20) continue;
      sent = send_with_descriptor(client.fd(), kStatus, ends[1].get());
    });
    bench.until([&] { return bench.server->connection_count() == 0; });
    sender.join();
    CHECK(sent);
    CHECK(bench.recorder.messages == 1);
  }
}
