// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "control/server/listener.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::server;

namespace {

class TempFolder {
 public:
  TempFolder() {
    char name[] = "/tmp/gp-listener-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~TempFolder() {
    for (const char* file : {"/s", "/s.lock", "/run/s", "/run/s.lock"})
      ::unlink((path + file).c_str());
    ::rmdir((path + "/run").c_str());
    ::rmdir(path.c_str());
  }
  std::string path;
};

/// A socket file with a listener that knows nothing of our lock, or (closed) with none.
UniqueFd foreign_listener(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(fd.get(), 1) == 0);
  return fd;
}

mode_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 0777;
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

}  // namespace

TEST_CASE("the listener makes its folder and file with the rights that are asked for") {
  const TempFolder folder;
  const std::string path = folder.path + "/run/s";
  const mode_t previous = ::umask(077);
  {
    const auto listener = Listener::open(path, 0660);
    ::umask(previous);
    REQUIRE(listener.ok());
    CHECK(mode_of(path) == 0660);
    CHECK(exists(path));
  }
  CHECK(!exists(path));
}

TEST_CASE("a second daemon is told of the first, by pid") {
  const TempFolder folder;
  const std::string path = folder.path + "/s";
  const std::string pid = "pid " + std::to_string(::getpid());
  SECTION("one like us") {
    const auto first = Listener::open(path, 0600);
    REQUIRE(first.ok());
    const auto second = Listener::open(path, 0600);
    REQUIRE(!second.ok());
    INFO(second.error().message);
    CHECK(second.error().message.find("another gradplaned is running on " + path) !=
          std::string::npos);
    CHECK(second.error().message.find(pid) != std::string::npos);
    CHECK(exists(path));
  }
  SECTION("one that holds no lock") {
    const UniqueFd foreign = foreign_listener(path);
    const auto second = Listener::open(path, 0600);
    REQUIRE(!second.ok());
    CHECK(second.error().message.find(pid) != std::string::npos);
    CHECK(exists(path));
  }
}

TEST_CASE("what a dead daemon left is replaced, anything else is left alone") {
  const TempFolder folder;
  const std::string path = folder.path + "/s";
  SECTION("a stale socket") {
    foreign_listener(path).reset();
    REQUIRE(exists(path));
    CHECK(Listener::open(path, 0600).ok());
  }
  SECTION("a file") {
    UniqueFd(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const auto listener = Listener::open(path, 0600);
    REQUIRE(!listener.ok());
    CHECK(listener.error().message.find("is no socket") != std::string::npos);
    CHECK(exists(path));
  }
}

TEST_CASE("a path that cannot be is refused with what to do") {
  const auto too_long = Listener::open("/tmp/" + std::string(108, 'x'), 0600);
  REQUIRE(!too_long.ok());
  CHECK(too_long.error().message.find("choose a shorter") != std::string::npos);
  const auto no_parent = Listener::open("/nonexistent-gp/run/s", 0600);
  REQUIRE(!no_parent.ok());
  CHECK(no_parent.error().message.find("cannot create the folder /nonexistent-gp/run") !=
        std::string::npos);
  CHECK(!Listener::open("", 0600).ok());
}

TEST_CASE("the socket can be taken again after its daemon ended") {
  const TempFolder folder;
  const std::string path = folder.path + "/s";
  std::optional<Result<Listener>> first(Listener::open(path, 0600));
  REQUIRE(first->ok());
  first.reset();
  CHECK(Listener::open(path, 0600).ok());
}
