// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/server/socket_end.h"
#include "tests/unit/server_bench.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

using namespace gradplane;
using namespace gradplane::server;
using namespace gradplane::server::testing;

namespace {

std::size_t open_fds() {
  std::size_t count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

}  // namespace

TEST_CASE("a client says hello, is known by its credentials, and leaves clean or not") {
  Bench bench;
  Client one = bench.open();
  const ConnectionId first = bench.recorder.last;
  CHECK(bench.recorder.opened[first].pid == ::getpid());
  CHECK(bench.recorder.opened[first].uid == ::geteuid());
  CHECK(bench.recorder.opened[first].role == Role::kRank);
  Client two = bench.open();
  const ConnectionId second = bench.recorder.last;
  Client three = bench.open();
  const ConnectionId third = bench.recorder.last;

  one.say(Detach{true});
  one.hang_up();
  two.say(Detach{false});
  three.hang_up();
  bench.until([&] { return bench.recorder.closed.size() == 3; });
  CHECK(bench.recorder.closed[first]);
  CHECK(!bench.recorder.closed[second]);
  CHECK(!bench.recorder.closed[third]);
  CHECK(bench.recorder.messages == 0);
  CHECK(bench.server->connection_count() == 0);
}

TEST_CASE("messages reach the handler in order, answers carry descriptors") {
  Bench bench;
  Client client = bench.open();
  bench.recorder.react = [&](ConnectionId id, const ClientMessage& message) {
    if (!std::holds_alternative<Attach>(message)) return;
    const UniqueFd a(::eventfd(7, EFD_CLOEXEC));
    const UniqueFd b(::eventfd(8, EFD_CLOEXEC));
    const int fds[] = {a.get(), b.get()};
    CHECK(bench.server->send(id, Attached{16, 4096, 1 << 20}, fds));
  };
  client.say(Attach{{}, 0, 2, "t", ""});
  const auto attached = parse_daemon_message(bench.answer(client));
  REQUIRE(attached.ok());
  CHECK(std::holds_alternative<Attached>(*attached.message));
  REQUIRE(client.fds.size() == 2);
  std::uint64_t value = 0;
  CHECK(::read(client.fds[0].get(), &value, sizeof value) == sizeof value);
  CHECK(value == 7);
  CHECK(::read(client.fds[1].get(), &value, sizeof value) == sizeof value);
  CHECK(value == 8);
}

TEST_CASE("whoever breaks a rule is told which, and is hung up on") {
  Bench bench;
  SECTION("garbage first") {
    Client client(bench.folder.socket());
    client.say(std::string("\x00\xff{{", 4));
    bench.check_error(client, "JSON");
    CHECK(bench.recorder.opened.empty());
    CHECK(bench.server->rejected_messages()[static_cast<std::size_t>(RejectReason::kNotAnObject)] ==
          1);
  }
  SECTION("something else than hello first") {
    Client client(bench.folder.socket());
    client.say(StatusRequest{});
    bench.check_error(client, "hello");
    CHECK(bench.hang_ups(HangUp::kNoHello) == 1);
  }
  SECTION("another version") {
    Client client(bench.folder.socket());
    client.say(ClientHello{2, Role::kRank, 1});
    bench.check_error(client, "version 1, not 2");
  }
  SECTION("garbage later") {
    Client client = bench.open();
    client.say(std::string("{}"));
    bench.check_error(client, "type");
    CHECK(bench.recorder.closed.size() == 1);
    CHECK(!bench.recorder.closed.begin()->second);
  }
  SECTION("hello twice") {
    Client client = bench.open();
    client.say(ClientHello{});
    bench.check_error(client, "second time");
  }
  SECTION("an operator attaches") {
    Client client = bench.open(Role::kOperator);
    client.say(Attach{{}, 0, 1, "", ""});
    bench.check_error(client, "role");
    CHECK(bench.recorder.messages == 0);
  }
  SECTION("a rank wants the status") {
    Client client = bench.open();
    client.say(StatusRequest{});
    bench.check_error(client, "role");
  }
  SECTION("a rank wants another plan") {
    Client client = bench.open();
    client.say(ReplanRequest{1, PlanKind::kStar, {}});
    bench.check_error(client, "role");
    CHECK(bench.recorder.messages == 0);
  }
  SECTION("too long") {
    Client client = bench.open();
    REQUIRE(client.say(std::string(kMaxSocketMessageBytes + 1, ' ')));
    bench.check_error(client, "64 KiB");
    CHECK(bench.server->rejected_messages()[static_cast<std::size_t>(RejectReason::kTooLong)] == 1);
  }
  SECTION("and what it sent after that does not hide the explanation") {
    Client client = bench.open();
    client.say(std::string("{}"));
    for (int i = 0; i < 20; ++i) client.say(Detach{true});
    bench.check_error(client, "type");
    client.hang_up();
    bench.until([&] { return bench.server->connection_count() == 0; });
    CHECK(!bench.recorder.closed.begin()->second);
  }
}

TEST_CASE("a message of exactly the bound is taken") {
  Bench bench;
  Client client = bench.open(Role::kOperator);
  std::string longest = R"({"type":"status"})";
  longest.insert(longest.size() - 1, std::string(kMaxSocketMessageBytes - longest.size(), ' '));
  REQUIRE(::send(client.fd(), longest.data(), longest.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(longest.size()));
  bench.until([&] { return bench.recorder.messages == 1; });
}

TEST_CASE("a handler may hang up on the connection it is told about") {
  Bench bench;
  bench.recorder.react = [&](ConnectionId id, const ClientMessage&) {
    bench.server->hang_up(id, "not today");
    CHECK(!bench.server->send(id, Ready{1, 1}));
    bench.server->hang_up(id, "again");
  };
  Client client = bench.open();
  client.say(Attach{{}, 0, 1, "", ""});
  client.say(Attach{{}, 0, 1, "", ""});
  bench.check_error(client, "not today");
  CHECK(bench.recorder.messages == 1);
  CHECK(bench.recorder.closed.size() == 1);
  CHECK(bench.hang_ups(HangUp::kByHandler) == 1);
}

namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    ours = UniqueFd(ends[0]);
    theirs = UniqueFd(ends[1]);
  }
  std::string hear() {
    std::string text(kMaxSocketMessageBytes, '\0');
    const ssize_t got = ::recv(theirs.get(), text.data(), text.size(), 0);
    return got < 0 ? "" : text.substr(0, static_cast<std::size_t>(got));
  }
  UniqueFd ours, theirs;
};

/// Returns how many messages of this size a socket takes before it blocks.
int taken_at_once(std::size_t bytes) {
  Pipe pipe;
  Connection connection(std::move(pipe.ours), Instant());
  int taken = 0;
  while (connection.send(std::string(bytes, 'm'), {}) == Connection::Write::kDone) ++taken;
  return taken;
}

/// Sends messages of this size until one overflows. Returns how many were queued.
std::size_t queued_until_overflow(std::size_t bytes) {
  Pipe pipe;
  Connection connection(std::move(pipe.ours), Instant());
  std::size_t queued = 0;
  for (;;) {
    const auto sent = connection.send(std::string(bytes, 'm'), {});
    if (sent == Connection::Write::kOverflow) return queued;
    if (sent == Connection::Write::kBlocked) ++queued;
    REQUIRE(queued <= kMaxQueuedMessages);
  }
}

}  // namespace

TEST_CASE("a slow reader gets everything in order up to the bound, then loses its connection") {
  Bench bench;
  Client client = bench.open();
  const ConnectionId id = bench.recorder.last;
  std::uint32_t sent = 0;
  SECTION("it comes back in time") {
    while (sent < kMaxQueuedMessages) REQUIRE(bench.server->send(id, Ready{++sent, 1}));
    for (std::uint32_t i = 1; i <= sent; ++i) {
      const auto parsed = parse_daemon_message(bench.answer(client));
      REQUIRE(parsed.ok());
      REQUIRE(std::get<Ready>(*parsed.message).epoch == i);
    }
    CHECK(bench.recorder.closed.empty());
  }
  SECTION("it does not") {
    const std::string reason(kMaxReasonBytes, 'r');
    while (bench.server->send(id, JobFailed{reason})) REQUIRE(++sent < 100000);
    bench.until([&] { return bench.recorder.closed.size() == 1; });
    CHECK(bench.hang_ups(HangUp::kSlowReader) == 1);
    client.hang_up();
    bench.until([&] { return bench.server->connection_count() == 0; });
  }
}

TEST_CASE("descriptors wait with their message for a slow reader, and are not lost or kept") {
  Bench bench;
  bench.until([] { return unclosed_sockets() == 0; });  // those of earlier tests
  const std::size_t before = open_fds();
  {
    Client client = bench.open();
    const ConnectionId id = bench.recorder.last;
    const UniqueFd event(::eventfd(9, EFD_CLOEXEC));
    const int fds[] = {event.get()};
    const int messages = 100 + taken_at_once(encode(DaemonMessage(Attached{1, 1, 1})).size());
    for (int i = 0; i < messages; ++i) REQUIRE(bench.server->send(id, Attached{1, 1, 1}, fds));
    for (int i = 0; i < messages; ++i) {
      REQUIRE(parse_daemon_message(bench.answer(client)).ok());
      REQUIRE(client.fds.size() == static_cast<std::size_t>(i) + 1);
    }
  }
  bench.until([&] { return bench.server->connection_count() == 0; });
  CHECK(open_fds() == before);
}

TEST_CASE("a flood is read slowly and hurts nobody else") {
  Bench bench;
  Client flood = bench.open();
  std::size_t said = 0;
  const std::string bucket =
      encode(ClientMessage(RegisterBucket{1, ElementType::kFloat32, 1, 0, {{"w", 0, 1}}}));
  bench.until([&] {
    while (said < 2 * kMessageBurst && flood.say(bucket)) ++said;
    return bench.recorder.messages >= static_cast<int>(kMessageBurst);
  });
  Client other = bench.open();
  bench.until([&] {
    while (said < 2 * kMessageBurst && flood.say(bucket)) ++said;
    return bench.recorder.messages == static_cast<int>(2 * kMessageBurst);
  });
  CHECK(bench.recorder.closed.empty());
}

TEST_CASE("a flood that hangs up is read to its end without a pause") {
  Bench bench;
  Client flood = bench.open();
  const std::string bucket =
      encode(ClientMessage(RegisterBucket{1, ElementType::kFloat32, 1, 0, {{"w", 0, 1}}}));
  for (int i = 0; i < 5; ++i) flood.say(bucket);
  flood.say(Detach{true});
  flood.hang_up();
  bench.until([&] { return bench.recorder.closed.size() == 1; });
  CHECK(bench.recorder.closed.begin()->second);
  CHECK(bench.recorder.messages == 5);
}

TEST_CASE("without descriptors a client is turned away and the server lives") {
  Bench bench;
  Client before = bench.open();
  rlimit previous{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &previous) == 0);
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) clients.emplace_back(bench.folder.socket());
  rlimit tight = previous;
  const int lowest_free = ::dup(0);
  ::close(lowest_free);
  tight.rlim_cur = static_cast<rlim_t>(lowest_free);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &tight) == 0);
  bench.until([&] { return bench.hang_ups(HangUp::kTooMany) >= 3; });
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &previous) == 0);
  for (Client& client : clients) {
    const std::string end = bench.answer(client);
    CHECK(end.empty());
  }
  bench.open();
  before.say(Attach{{}, 0, 1, "", ""});
  bench.until([&] { return bench.recorder.messages == 1; });
}

TEST_CASE("more than a user's share of connections is refused by name, and costs nothing") {
  Bench bench;
  std::vector<Client> clients;
  for (std::size_t i = 0; i < kMaxConnectionsOfRoot; ++i) {
    clients.emplace_back(bench.folder.socket());
    REQUIRE(clients.back().connected);
    bench.until([&] { return bench.server->connection_count() == i + 1; });
  }
  for (int i = 0; i < 100; ++i) {
    Client one_more(bench.folder.socket());
    one_more.say(ClientHello{});
    bench.check_error(one_more, std::to_string(kMaxConnectionsOfRoot) + " connections");
    REQUIRE(bench.server->connection_count() == kMaxConnectionsOfRoot);
  }
  CHECK(bench.hang_ups(HangUp::kTooMany) == 100);
  clients.pop_back();
  bench.until([&] { return bench.server->connection_count() == kMaxConnectionsOfRoot - 1; });
  bench.open();
}

TEST_CASE("what waits for a slow reader is bounded in messages and in bytes") {
  CHECK(queued_until_overflow(10) == kMaxQueuedMessages);
  CHECK(queued_until_overflow(kMaxQueuedBytes / 16) == 16);
}

TEST_CASE("a message never overtakes those that wait") {
  Pipe pipe;
  Connection connection(std::move(pipe.ours), Instant());
  int said = 0;
  while (connection.send(std::to_string(said++), {}) == Connection::Write::kDone) continue;
  int heard = 0;
  for (; heard < 8; ++heard) CHECK(pipe.hear() == std::to_string(heard));
  CHECK(connection.send(std::to_string(said++), {}) == Connection::Write::kBlocked);
  while (heard < said) {
    connection.flush();
    for (std::string text = pipe.hear(); !text.empty(); text = pipe.hear())
      CHECK(text == std::to_string(heard++));
  }
  CHECK(!connection.has_output());
}

TEST_CASE("a client sends a burst, and then so many messages a second") {
  Pipe pipe;
  Connection connection(std::move(pipe.ours), Instant());
  for (std::uint32_t i = 0; i < kMessageBurst; ++i) CHECK(connection.take_token(Instant()));
  CHECK(!connection.take_token(Instant()));
  const Instant resumed = connection.resume_at(Instant());
  CHECK(resumed == Instant() + Duration::seconds(1) / kMessagesPerSecond);
  CHECK(connection.take_token(resumed));
  CHECK(!connection.take_token(resumed));
}

TEST_CASE("a timer that starts another for a time that is over does not keep the loop") {
  auto loop = std::move(EventLoop::create().value());
  int rung = 0;
  std::function<void()> again = [&] {
    if (++rung < 1000) loop->start_timer(Instant(), again);
  };
  loop->start_timer(Instant(), again);
  loop->run_once(Duration());
  CHECK(rung == 1);
  loop->run_once(Duration());
  CHECK(rung == 2);
}

TEST_CASE("the loop gives signals and timers in order") {
  auto loop = std::move(EventLoop::create().value());
  std::vector<int> order;
  const Instant now = EventLoop::now();
  loop->start_timer(now + Duration::us(200), [&] { order.push_back(2); });
  loop->start_timer(now + Duration::us(100), [&] { order.push_back(1); });
  const TimerId cancelled = loop->start_timer(now, [&] { order.push_back(9); });
  loop->cancel_timer(cancelled);
  auto signals = Signals::create(*loop, {SIGUSR1}, [&](int number) {
    order.push_back(number);
    loop->stop();
  });
  REQUIRE(signals.ok());
  loop->start_timer(now + Duration::us(300), [&] { ::raise(SIGUSR1); });
  loop->run();
  CHECK(order == std::vector<int>{1, 2, SIGUSR1});
  signals.value().reset();
  sigset_t blocked;
  REQUIRE(::pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0);
  CHECK(::sigismember(&blocked, SIGUSR1) == 0);
}
