// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Clients that pass descriptors. Closing such a descriptor may take as long as the client likes, so
// the main thread must never do it. A server that does would hang here for an hour.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/server/socket_end.h"
#include "tests/unit/server_bench.h"

using namespace gradplane;
using namespace gradplane::server;
using namespace gradplane::server::testing;

namespace {

const std::string kStatus = R"({"type":"status"})";

/// Sends `text` with a descriptor. Returns whether it was sent. Any thread may call it.
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

/// Returns one end of a TCP connection over loopback whose close() takes seconds, because of unsent
/// data and SO_LINGER. `other` never reads.
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

/// Sockets whose close() would take an hour.
class Lingering {
 public:
  ipc::UniqueFd make() {
    ipc::UniqueFd listener;
    return lingering_socket(listener, others_.emplace_back());
  }

 private:
  std::vector<ipc::UniqueFd> others_;
};

constexpr int kHostileSockets = 40;

std::pair<ipc::UniqueFd, ipc::UniqueFd> socket_pair() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  return {ipc::UniqueFd(ends[0]), ipc::UniqueFd(ends[1])};
}

/// Returns a lingering socket, or a socket with one in its receive queue.
ipc::UniqueFd hostile(Lingering& sockets, bool nested) {
  ipc::UniqueFd lingering = sockets.make();
  if (!nested) return lingering;
  auto [sender, holder] = socket_pair();
  REQUIRE(send_with_descriptor(sender.get(), "x", lingering.get()));
  return std::move(holder);
}

std::size_t entries(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

void wait_until(const std::function<bool()>& done) {
  const Instant end = EventLoop::now() + Duration::seconds(20);
  while (!done()) {
    if (EventLoop::now() > end) FAIL("waited in vain");
    std::this_thread::yield();
  }
}

/// Options of a server on a kernel that cannot refuse descriptors.
ServerOptions older_kernel() {
  ServerOptions options;
  options.access.refuse_descriptors = false;
  return options;
}

/// Whether the kernel can refuse descriptors, as Linux 6.16 can.
bool kernel_refuses() {
  const auto [one, other] = socket_pair();
  const int off = 0;
  return ::setsockopt(one.get(), SOL_SOCKET, 83, &off, sizeof off) == 0;
}

}  // namespace

TEST_CASE("where the kernel can, it refuses descriptors that are passed to us") {
  if (!kernel_refuses()) {
    WARN("this kernel has no SO_PASSRIGHTS");
    return;
  }
  Bench bench;
  Client waiting(bench.folder.socket());
  REQUIRE(waiting.connected);
  CHECK(!send_with_descriptor(waiting.fd(), kStatus, 0));
  CHECK(errno == EPERM);
  Client accepted = bench.open(Role::kOperator);
  CHECK(!send_with_descriptor(accepted.fd(), kStatus, 0));
  CHECK(accepted.say(kStatus));
  bench.until([&] { return bench.recorder.messages == 1; });
}

TEST_CASE("a client that passes a descriptor is hung up on, and nothing waits for its closing") {
  Lingering sockets;
  ipc::UniqueFd lingering = sockets.make();
  Bench bench(older_kernel());
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
  lingering.reset();  // only the message holds the socket now
  bench.until([&] { return bench.server->connection_count() == 0; });
  CHECK(bench.recorder.messages == 0);
  Client next = bench.open(Role::kOperator);
  next.say(protocol::StatusRequest{});
  bench.until([&] { return bench.recorder.messages == 1; });
}

TEST_CASE("a server ends although clients that it has not accepted passed descriptors") {
  Lingering sockets;
  std::optional<Bench> bench;
  bench.emplace(older_kernel());
  ipc::UniqueFd lingering = sockets.make();
  Client client(bench->folder.socket());
  REQUIRE(client.connected);
  REQUIRE(send_with_descriptor(client.fd(), kStatus, lingering.get()));
  lingering.reset();
  bench.reset();
}

// There are more such sockets than threads that close. They once kept all of these threads busy for
// an hour.
TEST_CASE("what a client has passed is closed at once, however long its sender lets it linger") {
  wait_until([] { return unclosed_sockets() == 0; });  // those of earlier tests
  const std::size_t threads_before = entries("/proc/self/task");
  const std::size_t open_before = entries("/proc/self/fd");
  {
    Lingering sockets;
    const bool nested = GENERATE(false, true);
    for (int i = 0; i < kHostileSockets; ++i) {
      auto [client, server] = socket_pair();
      REQUIRE(send_with_descriptor(client.get(), kStatus, hostile(sockets, nested).get()));
      end_socket(std::move(server));
    }
    wait_until([] { return unclosed_sockets() == 0; });
    wait_until([&] { return entries("/proc/self/task") <= threads_before; });
    // The peers of the sockets, which read nothing, are the only descriptors left.
    CHECK(entries("/proc/self/fd") == open_before + kHostileSockets);
  }
  CHECK(entries("/proc/self/fd") == open_before);
}

// The message with the descriptor arrives while the server checks whether there is one.
TEST_CASE("a descriptor is never received, whenever it comes") {
  Bench bench(older_kernel());
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
      // The delay varies, so the message arrives at each moment of the server's turn.
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
