// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/protocol/server_identity.h"

#include <sys/un.h>

#include <cstddef>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/listen_as.h"
#include "tests/support/other_user.h"

using namespace gradplane;
using namespace gradplane::protocol;

namespace {

constexpr uid_t kAlice = 4711;
constexpr uid_t kBob = 4712;

/// A server at an abstract address, which every user can reach. The kernel chooses its name.
class Server {
 public:
  Server() : fd_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un unnamed{};
    unnamed.sun_family = AF_UNIX;
    REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&unnamed), sizeof(sa_family_t)) == 0);
    REQUIRE(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &address_bytes_) == 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() { ::close(fd_); }

  int fd() const { return fd_; }

  /// Whether a client of this process's user trusts the server.
  bool is_trusted(uid_t named) const {
    const int client = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (::connect(client, reinterpret_cast<const sockaddr*>(&address_), address_bytes_) != 0) {
      return false;
    }
    return why_not_trusted(client, "/s", named).empty();
  }

 private:
  int fd_;
  sockaddr_un address_{};
  socklen_t address_bytes_ = sizeof(address_);
};

}  // namespace

TEST_CASE("whom a client trusts to serve") {
  struct Row {
    const char* what;
    uid_t server;
    uid_t client;
    uid_t named;
    bool trusted;
  };
  const Row rows[] = {
      {"root serves everybody", 0, kAlice, 0, true},
      {"a user serves herself", kAlice, kAlice, 0, true},
      {"but not another", kBob, kAlice, 0, false},
      {"and not root", kBob, 0, 0, false},
      {"unless she is named", kBob, kAlice, kBob, true},
      {"also to root", kBob, 0, kBob, true},
      {"to name one is not to name another", kBob, kAlice, kUnknownUid, false},
      {"who is named does not take root's place", 0, kAlice, kBob, true},
      {"an unknown user may be anybody", kUnknownUid, kAlice, 0, false},
      {"also to one who is as unknown", kUnknownUid, kUnknownUid, 0, false},
      {"unless that is accepted", kUnknownUid, kAlice, kUnknownUid, true},
  };
  if (!gradplane::testing::can_change_user()) return;
  for (const Row& row : rows) {
    INFO(row.what);
    const Server server;
    REQUIRE(test::listen_as(row.server, server.fd()));
    const bool trusted = test::is_true_as(row.client, [&] { return server.is_trusted(row.named); });
    CHECK(trusted == row.trusted);
  }
}

TEST_CASE("what shows no owner is not trusted") {
  CHECK(why_not_trusted(-1, "/the/socket", 0).find("/the/socket") != std::string::npos);
}

TEST_CASE("a uid is a number and nothing else") {
  CHECK(parse_uid("0") == 0U);
  CHECK(parse_uid("4294967294") == 4294967294U);
  for (const char* text : {"", "root", "-1", "4294967295", "99999999999", "7 ", " 7", "0x7"}) {
    INFO(text);
    CHECK(!parse_uid(text));
  }
}
