// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What one user takes of the server, and what is left for others.
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

/// Lets a child wait until its parent lets it go on.
class Gate {
 public:
  Gate() {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    read_ = UniqueFd(ends[0]);
    write_ = UniqueFd(ends[1]);
  }
  void open() { write_.reset(); }
  /// In the child.
  void wait() {
    write_.reset();
    char byte = 0;
    while (::read(read_.get(), &byte, 1) > 0) continue;
  }

 private:
  UniqueFd read_;
  UniqueFd write_;
};

/// In a child: as many connections as are wished, some of which are refused.
int hold_connections(const std::string& path, std::size_t count, Gate& gate) {
  std::vector<Client> clients;
  while (clients.size() < count) {
    clients.emplace_back(path);
    if (!clients.back().connected) clients.pop_back();  // the queue is full at the moment
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
  constexpr std::size_t kWished = 400;
  constexpr std::size_t kFirst = kMaxConnectionsOfUser;
  constexpr std::size_t kSecond = (kMaxConnectionsOfUsers - kFirst) / 2;
  static_assert(kWished > kFirst && kSecond > 0);

  Gate first_gate;
  OtherUser first(kStranger, kStranger,
                  [&] { return hold_connections(path, kWished, first_gate); });
  bench.until([&] { return bench.hang_ups(HangUp::kTooMany) == kWished - kFirst; });
  CHECK(bench.server->connection_count() == kFirst);
  Gate second_gate;
  OtherUser second(kOther, kOther, [&] { return hold_connections(path, kWished, second_gate); });
  bench.until([&] { return bench.hang_ups(HangUp::kTooMany) == 2 * kWished - kFirst - kSecond; });
  CHECK(bench.server->connection_count() == kFirst + kSecond);
  bench.open();

  first_gate.open();
  second_gate.open();
  bench.until([&] { return first.ended() && second.ended(); });
  bench.until([&] { return bench.server->connection_count() == 0; });
}
