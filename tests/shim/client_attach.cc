// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <cerrno>
#include <string>

#include "tests/shim/client_fake_daemon.h"
#include "tests/support/other_user.h"

using namespace gradplane;
using namespace gradplane::test;

namespace {

/// Acts as the daemon up to `attach`, then answers with `text` and `fds`.
std::function<void(ipc::UniqueFd)> answer_attach(std::string text, std::vector<int> fds = {}) {
  return [text = std::move(text), fds = std::move(fds)](ipc::UniqueFd connection) {
    receive<protocol::ClientHello>(connection.get());
    send(connection.get(), hello());
    receive<protocol::Attach>(connection.get());
    send_text(connection.get(), text, fds);
  };
}

std::function<void(ipc::UniqueFd)> answer_hello(std::string text) {
  return [text = std::move(text)](ipc::UniqueFd connection) {
    receive<protocol::ClientHello>(connection.get());
    send_text(connection.get(), text);
  };
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a rank presents itself and gets its channel") {
  FakeDaemon daemon;
  Peer peer;
  auto options = options_for(daemon);
  options.run_id = "run-7";
  const Attempt result = attempt(
      daemon, options, [&](ipc::UniqueFd connection) { let_in(std::move(connection), peer); });
  INFO(result.error);
  REQUIRE(result.status == GP_OK);
  CHECK(result.error.empty());
  CHECK(peer.attach.rank == 1);
  CHECK(peer.attach.world_size == 2);
  CHECK(peer.attach.key[2] == std::byte{3});
  CHECK(peer.attach.label == "test");
  CHECK(peer.attach.run_id == "run-7");
  CHECK(gp_round_bytes(result.session) == kSizes.slot_bytes);
  CHECK(gp_rounds_in_flight_max(result.session) == kSizes.slot_count / 2);
  std::memset(gp_round_memory(result.session, 17), 0x5a, kSizes.slot_bytes);
  CHECK(peer.channel.slot(1)[4095] == std::byte{0x5a});
  CHECK(std::string(gp_failure(result.session)).empty());
  gp_detach(result.session, 1);
  CHECK(receive<protocol::Detach>(peer.connection.get()).clean);
  CHECK(receive_text(peer.connection.get()).empty());
}

TEST_CASE("a label that is no text does no harm") {
  FakeDaemon daemon;
  Peer peer;
  auto options = options_for(daemon);
  options.run_id = "\xfe\xff";
  const std::string label = "\xff\xc0\x80\n" + std::string(100000, '\xfe');
  options.label = label.c_str();
  const Attempt result = attempt(
      daemon, options, [&](ipc::UniqueFd connection) { let_in(std::move(connection), peer); });
  INFO(result.error);
  CHECK(result.status == GP_OK);
  CHECK(peer.attach.world_size == 2);
  gp_detach(result.session, 0);
}

TEST_CASE("without a daemon the text says where it was sought and what to do") {
  gp_session* session = nullptr;
  char error[512];
  SECTION("no socket file") {
    const gp_attach_options options{"/nonexistent/gp.sock", {}, 0, 1, nullptr, nullptr, 1000, 0, 0};
    CHECK(gp_attach(&options, &session, error, sizeof(error)) == GP_NO_DAEMON);
    CHECK(contains(error, "/nonexistent/gp.sock"));
    CHECK(contains(error, "start gradplaned"));
  }
  SECTION("a socket file that a dead daemon left") {
    FakeDaemon daemon;
    daemon.stop_listening();
    const auto options = options_for(daemon);
    CHECK(gp_attach(&options, &session, error, sizeof(error)) == GP_NO_DAEMON);
  }
  SECTION("a text that does not fit is cut") {
    const gp_attach_options options{"/nonexistent/gp.sock", {}, 0, 1, nullptr, nullptr, 1000, 0, 0};
    char small[8];
    CHECK(gp_attach(&options, &session, small, sizeof(small)) == GP_NO_DAEMON);
    CHECK(std::string(small) == "cannot ");
    CHECK(gp_attach(&options, &session, nullptr, 0) == GP_NO_DAEMON);
  }
  CHECK(session == nullptr);
}

TEST_CASE("arguments are checked before anybody is asked") {
  gp_session* session = nullptr;
  char error[512];
  gp_attach_options options{"/nonexistent/gp.sock", {}, 0, 1, nullptr, nullptr, 1000, 0, 0};
  SECTION("no path") {
    options.socket_path = nullptr;
  }
  SECTION("an empty path") {
    options.socket_path = "";
  }
  const std::string long_path(200, 'x');
  SECTION("a path that no socket can have") {
    options.socket_path = long_path.c_str();
  }
  SECTION("no world") {
    options.world_size = 0;
  }
  SECTION("a world that is too large") {
    options.world_size = 1 << 20;
  }
  SECTION("a rank beyond the world") {
    options.rank = 1;
  }
  CHECK(gp_attach(&options, &session, error, sizeof(error)) == GP_BAD_ARGUMENT);
  CHECK_FALSE(std::string(error).empty());
  CHECK(gp_attach(nullptr, &session, error, sizeof(error)) == GP_BAD_ARGUMENT);
  CHECK(gp_attach(&options, nullptr, error, sizeof(error)) == GP_BAD_ARGUMENT);
}

TEST_CASE("a refusal reaches the user in the daemon's words") {
  FakeDaemon daemon;
  const std::string refusal = protocol::encode(protocol::SocketError{"the job is full"});
  const Attempt at_hello = attempt(daemon, answer_hello(refusal));
  CHECK(at_hello.status == GP_REFUSED);
  CHECK(contains(at_hello.error, "the job is full"));
  const Attempt at_attach = attempt(daemon, answer_attach(refusal));
  CHECK(at_attach.status == GP_REFUSED);
  CHECK(contains(at_attach.error, "the job is full"));
  const Attempt version = attempt(
      daemon, answer_hello(protocol::encode(protocol::DaemonHello{2, "node-a", "gradplaned 9"})));
  CHECK(version.status == GP_REFUSED);
  CHECK(contains(version.error, "gradplaned 9"));
}

TEST_CASE("nonsense for an answer is told from a refusal") {
  FakeDaemon daemon;
  for (const std::string& text :
       {std::string("hello"), std::string("{}"), std::string("{\"type\":\"hello\"}"),
        std::string("\0\0", 2), std::string(70000, 'x'), std::string(20000, '['),
        protocol::encode(protocol::Ready{1, 2})}) {
    const Attempt at_hello = attempt(daemon, answer_hello(text));
    CHECK(at_hello.status == GP_BROKEN);
    CHECK_FALSE(at_hello.error.empty());
    CHECK(at_hello.session == nullptr);
    CHECK(attempt(daemon, answer_attach(text)).status == GP_BROKEN);
  }
}

TEST_CASE("a message that is too long is none, even if its beginning is good") {
  FakeDaemon daemon;
  Peer peer;
  const Attempt result = attempt(daemon, [&](ipc::UniqueFd connection) {
    receive<protocol::ClientHello>(connection.get());
    send_text(connection.get(), protocol::encode(hello()) + std::string(70000, ' '));
    receive<protocol::Attach>(connection.get());
    send(connection.get(), attached(), peer.descriptors());
  });
  CHECK(result.status == GP_BROKEN);
}

TEST_CASE("a daemon that goes away on the way is gone") {
  FakeDaemon daemon;
  CHECK(attempt(daemon, [](ipc::UniqueFd) {}).status == GP_BROKEN);
  CHECK(attempt(daemon, [](ipc::UniqueFd connection) {
          receive<protocol::ClientHello>(connection.get());
        }).status == GP_BROKEN);
  CHECK(attempt(daemon, [](ipc::UniqueFd connection) {
          receive<protocol::ClientHello>(connection.get());
          send(connection.get(), hello());
          receive<protocol::Attach>(connection.get());
        }).status == GP_BROKEN);
}

TEST_CASE("a daemon that never answers costs no more than the bound") {
  FakeDaemon daemon;
  auto options = options_for(daemon);
  options.timeout_ms = 30;
  SECTION("it accepts and is silent") {
    const Attempt result = attempt(daemon, options, [](ipc::UniqueFd connection) {
      while (!receive_text(connection.get()).empty()) {
      }
    });
    CHECK(result.status == GP_TIMEOUT);
    CHECK(contains(result.error, "does not answer"));
  }
  SECTION("it does not even accept") {
    // The queue of a listener with a backlog of 0 has one connection.
    gp_session* session = nullptr;
    char error[512];
    CHECK(gp_attach(&options, &session, error, sizeof(error)) == GP_TIMEOUT);
    std::vector<ipc::UniqueFd> waiting;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, daemon.path().c_str(), daemon.path().size());
    int rc = 0;
    while (rc == 0 && waiting.size() < 64) {
      waiting.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      rc = ::connect(waiting.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
    }
    REQUIRE(errno == EAGAIN);
    CHECK(gp_attach(&options, &session, error, sizeof(error)) == GP_TIMEOUT);
    CHECK(contains(error, "does not accept"));
  }
}

TEST_CASE("what comes with `attached` is checked") {
  FakeDaemon daemon;
  Peer peer;
  const std::string honest = protocol::encode(attached());
  const std::vector<int> fds = peer.descriptors();
  CHECK(attempt(daemon, answer_attach(honest)).status == GP_BROKEN);
  CHECK(attempt(daemon, answer_attach(honest, {fds[0], fds[1]})).status == GP_BROKEN);
  CHECK(attempt(daemon, answer_attach(honest, {fds[0], fds[1], fds[2], fds[2]})).status ==
        GP_BROKEN);
  CHECK(attempt(daemon, answer_attach(honest, std::vector<int>(16, fds[0]))).status == GP_BROKEN);
  CHECK(attempt(daemon, answer_attach(honest, {fds[1], fds[0], fds[2]})).status == GP_BROKEN);

  for (const protocol::Attached& other :
       {protocol::Attached{8, 8192, kSizes.total_bytes()},
        protocol::Attached{16, 4096, kSizes.total_bytes() + 4096}}) {
    CHECK(attempt(daemon, answer_attach(protocol::encode(other), fds)).status == GP_BROKEN);
  }

  const ipc::UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC));
  REQUIRE(::ftruncate(unsealed.get(), static_cast<off_t>(kSizes.total_bytes())) == 0);
  CHECK(attempt(daemon, answer_attach(honest, {unsealed.get(), fds[1], fds[2]})).status ==
        GP_BROKEN);

  int pipe_ends[2];
  REQUIRE(::pipe2(pipe_ends, O_CLOEXEC) == 0);
  const ipc::UniqueFd reading(pipe_ends[0]);
  const ipc::UniqueFd writing(pipe_ends[1]);
  CHECK(attempt(daemon, answer_attach(honest, {fds[0], writing.get(), fds[2]})).status ==
        GP_BROKEN);

  const ipc::UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const ipc::UniqueFd stream(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const ipc::UniqueFd udp(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (const int other : {event.get(), stream.get(), udp.get()}) {
    CHECK(attempt(daemon, answer_attach(honest, {fds[0], other, fds[2]})).status == GP_BROKEN);
    CHECK(attempt(daemon, answer_attach(honest, {fds[0], fds[1], other})).status == GP_BROKEN);
  }
}

TEST_CASE("no descriptor is left behind, whichever way it goes") {
  FakeDaemon daemon;
  Peer peer;
  const std::string honest = protocol::encode(attached());
  const std::size_t before_count = open_descriptors_count();
  for (int i = 0; i < 1000; ++i) {
    const Attempt good =
        attempt(daemon, [&](ipc::UniqueFd connection) { let_in(std::move(connection), peer); });
    REQUIRE(good.status == GP_OK);
    if (i % 2 == 0) {
      gp_detach(good.session, 1);
    } else {
      gp_abandon(good.session);
    }
    peer.connection.reset();
  }
  for (int i = 0; i < 20; ++i) {
    attempt(daemon, answer_attach(honest, {peer.channel.fd()}));
    attempt(daemon, answer_attach("nonsense", peer.descriptors()));
    attempt(daemon, answer_attach(honest, std::vector<int>(16, peer.channel.fd())));
  }
  CHECK(open_descriptors_count() == before_count);
}

TEST_CASE("the caller's errno is kept") {
  errno = 4321;
  gp_session* session = nullptr;
  char error[64];
  const gp_attach_options options{"/nonexistent/gp.sock", {}, 0, 1, nullptr, nullptr, 1000, 0, 0};
  gp_attach(&options, &session, error, sizeof(error));
  CHECK(errno == 4321);
}

TEST_CASE("an impostor is told nothing") {
  if (!gradplane::testing::can_change_user()) return;
  FakeDaemon daemon;
  REQUIRE(daemon.belong_to(4711));
  std::string heard = "nothing yet";
  const auto listening = [&](ipc::UniqueFd connection) { heard = receive_text(connection.get()); };
  SECTION("by a rank") {
    const Attempt result = attempt(daemon, listening);
    CHECK(heard.empty());
    CHECK(result.status == GP_NO_DAEMON);
    CHECK(result.session == nullptr);
    INFO(result.error);
    CHECK(contains(result.error, daemon.path()));
    CHECK(contains(result.error, "uid 4711"));
    CHECK(contains(result.error, "GRADPLANE_DAEMON_UID=4711"));
  }
  SECTION("by one that names another user") {
    auto options = options_for(daemon);
    options.daemon_uid = 4712;
    CHECK(attempt(daemon, options, listening).status == GP_NO_DAEMON);
    CHECK(heard.empty());
  }
  SECTION("and its word counts nothing") {
    std::thread impostor([&] {
      ipc::UniqueFd connection = daemon.accept();
      send_text(connection.get(), R"({"type":"error","reason":"no","require":true})");
      heard = receive_text(connection.get());
    });
    CHECK(gp_daemon_requires(daemon.path().c_str(), 0, 20000) == 0);
    impostor.join();
    CHECK(heard.empty());
  }
}

TEST_CASE("a daemon of the user whom the rank names is trusted") {
  if (!gradplane::testing::can_change_user()) return;
  FakeDaemon daemon;
  Peer peer;
  REQUIRE(daemon.belong_to(4711));
  auto options = options_for(daemon);
  options.daemon_uid = 4711;
  const Attempt result = attempt(
      daemon, options, [&](ipc::UniqueFd connection) { let_in(std::move(connection), peer); });
  INFO(result.error);
  CHECK(result.status == GP_OK);
  gp_detach(result.session, 1);
}
