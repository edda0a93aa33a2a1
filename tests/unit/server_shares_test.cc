// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How much of the server one user may take, so that something is left for others.
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/other_user.h"
#include "tests/unit/server_bench.h"

using namespace gradplane;
using namespace gradplane::server;
using namespace gradplane::server::testing;
using namespace gradplane::testing;

namespace {

/// A gate at which a child process waits until its parent opens it.
class Gate {
 public:
  Gate() {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    read_ = UniqueFd(ends[0]);
    write_ = UniqueFd(ends[1]);
  }
  void open() { write_.reset(); }
  /// Waits. The child calls it.
  void wait() {
    write_.reset();
    char byte = 0;
    while (::read(read_.get(), &byte, 1) > 0) continue;
  }

 private:
  UniqueFd read_;
  UniqueFd write_;
};

/// Opens `count` connections in a child process, until the gate opens. The server refuses some of
/// them.
int hold_connections(const std::string& path, std::size_t count, Gate& gate) {
  std::vector<Client> clients;
  while (clients.size() < count) {
    clients.emplace_back(path);
    if (!clients.back().connected) clients.pop_back();  // the listener's queue is full
  }
  gate.wait();
  return 0;
}

ServerOptions for_both() {
  ServerOptions options;
  options.access.users = {kStranger, kOther};
  return options;
}

}  // namespace

TEST_CASE("a user who takes all connections that he gets leaves some for the next, and for root") {
  if (!can_change_user()) return;
  Bench bench(for_both());
  bench.folder.open_to_all();
  const std::string path = bench.folder.socket();
  constexpr std::size_t kWished = kMaxConnectionsOfUser + 64;
  constexpr std::size_t kFirst = kMaxConnectionsOfUser;
  constexpr std::size_t kSecond = (kMaxConnectionsOfUsers - kFirst) / 2;
  static_assert(kWished > kFirst && kSecond > 0);

  // Connections of root do not count against the shares of others.
  std::vector<Client> of_root;
  for (int i = 0; i < 64; ++i) of_root.push_back(bench.open());
  Gate first_gate;
  OtherUser first(kStranger, kStranger,
                  [&] { return hold_connections(path, kWished, first_gate); });
  bench.until([&] { return bench.hang_ups(HangUp::kTooMany) == kWished - kFirst; });
  CHECK(bench.server->connection_count() == of_root.size() + kFirst);
  Gate second_gate;
  OtherUser second(kOther, kOther, [&] { return hold_connections(path, kWished, second_gate); });
  bench.until([&] { return bench.hang_ups(HangUp::kTooMany) == 2 * kWished - kFirst - kSecond; });
  CHECK(bench.server->connection_count() == of_root.size() + kFirst + kSecond);
  of_root.push_back(bench.open());

  first_gate.open();
  second_gate.open();
  bench.until([&] { return first.ended() && second.ended(); });
  of_root.clear();
  bench.until([&] { return bench.server->connection_count() == 0; });
}

// All messages are queued before the first turn, so the test counts turns and not time.
TEST_CASE("what one user sends is served turn by turn, and another's request soon") {
  Bench bench;
  constexpr int kClients = 100;
  constexpr int kMessages = 2;
  std::string longest = R"({"type":"status"})";
  longest.insert(longest.size() - 1, std::string(kMaxSocketMessageBytes - longest.size(), ' '));
  std::vector<Client> flood;
  for (int i = 0; i < kClients; ++i) flood.push_back(bench.open(Role::kOperator));
  for (Client& client : flood) {
    for (int i = 0; i < kMessages; ++i) REQUIRE(client.say(longest));
  }
  SECTION("a turn has a bound") {
    bench.loop->run_once(Duration());
    CHECK(bench.recorder.messages == 1);
    bench.loop->run_once(Duration());
    CHECK(bench.recorder.messages == 2);
  }
  SECTION("answers count too") {
    bench.recorder.react = [&](ConnectionId id, const ClientMessage&) {
      bench.server->send_encoded(id, longest);
      bench.server->send_encoded(id, longest);
    };
    for (int i = 0; i < 30; ++i) bench.loop->run_once(Duration());
    CHECK(bench.recorder.messages == 10);
  }
  bench.recorder.react = nullptr;
  bench.until([&] { return bench.recorder.messages == kClients * kMessages; });
}

TEST_CASE("short messages cost work too") {
  Bench bench;
  std::vector<Client> flood;
  for (int i = 0; i < 60; ++i) flood.push_back(bench.open(Role::kOperator));
  bench.loop->run_once(Duration());
  for (Client& client : flood) REQUIRE(client.say(StatusRequest{}));
  bench.loop->run_once(Duration());
  CHECK(bench.recorder.messages == kUserBytesPerTurn / kMinMessageBytes);
  bench.until([&] { return bench.recorder.messages == 60; });
}

TEST_CASE("a flood of one user holds up no other") {
  if (!can_change_user()) return;
  Bench bench(for_both());
  bench.folder.open_to_all();
  constexpr std::size_t kFlood = 200;
  std::string longest = R"({"type":"status"})";
  longest.insert(longest.size() - 1, std::string(kMaxSocketMessageBytes - longest.size(), ' '));
  std::vector<Client> flood;
  for (std::size_t i = 0; i < kFlood; ++i) flood.push_back(bench.open(Role::kOperator));
  Gate flooded;
  Gate gate;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  OtherUser other(kStranger, kStranger, [&] {
    Client client(bench.folder.socket());
    client.say(ClientHello{kSocketVersion, Role::kOperator, 1});
    while (client.hear() == "?") continue;
    flooded.wait();
    client.say(StatusRequest{});
    if (::write(ready[1], "x", 1) != 1) return 1;
    gate.wait();
    return 0;
  });
  bench.until([&] { return bench.recorder.opened.size() == kFlood + 1; });
  bench.loop->run_once(Duration());  // empties the kernel's list of ready clients
  for (Client& client : flood) REQUIRE(client.say(longest));
  flooded.open();
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);  // the request is queued behind the flood
  bool served = false;
  int before = 0;
  bench.recorder.react = [&](ConnectionId id, const ClientMessage&) {
    if (bench.recorder.opened[id].uid == kStranger) {
      served = true;
    } else if (!served) {
      ++before;
    }
  };
  bench.until([&] { return served; });
  // The kernel reports 64 clients in a turn, and the flooding user has one message served in each
  // turn.
  CHECK(before <= static_cast<int>(kFlood / 64 + 1));
  gate.open();
  bench.until([&] { return other.ended(); });
  ::close(ready[0]);
  ::close(ready[1]);
}
