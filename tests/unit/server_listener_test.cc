// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "control/server/listener.h"
#include "tests/support/catch.h"
#include "tests/support/other_user.h"

using namespace gradplane;
using namespace gradplane::server;
using namespace gradplane::testing;

namespace {

class TempFolder {
 public:
  TempFolder() {
    char name[] = "/tmp/gp-listener-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~TempFolder() {
    for (const char* file : {"/s", "/s.lock", "/run/s", "/run/s.lock", "/link"})
      ::unlink((path + file).c_str());
    ::rmdir((path + "/run").c_str());
    ::rmdir(path.c_str());
  }
  std::string path;
};

/// Makes a socket file. Its listener does not know the lock, or is closed.
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

/// Gives a folder a default access list: `user` may read and write what is created in it. Returns
/// false if the file system has no access lists.
bool hand_down_access(const std::string& folder, uid_t user) {
  constexpr __u16 kMay = ACL_READ | ACL_WRITE;
  constexpr auto kNoId = static_cast<__u32>(ACL_UNDEFINED_ID);
  const struct {
    posix_acl_xattr_header header{POSIX_ACL_XATTR_VERSION};
    posix_acl_xattr_entry entries[5];
  } list{.entries = {{ACL_USER_OBJ, kMay, kNoId},
                     {ACL_USER, kMay, user},
                     {ACL_GROUP_OBJ, 0, kNoId},
                     {ACL_MASK, kMay, kNoId},
                     {ACL_OTHER, 0, kNoId}}};
  return ::setxattr(folder.c_str(), "system.posix_acl_default", &list, sizeof list, 0) == 0;
}

/// Returns errno of a connect() by this user and group, or 0 if it succeeds.
int connect_as(uid_t uid, gid_t gid, const std::string& path) {
  return OtherUser(uid, gid,
                   [&] {
                     const UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
                     sockaddr_un address{};
                     address.sun_family = AF_UNIX;
                     std::memcpy(address.sun_path, path.data(), path.size());
                     auto* raw = reinterpret_cast<sockaddr*>(&address);
                     return ::connect(fd.get(), raw, sizeof address) == 0 ? 0 : errno;
                   })
      .wait();
}

/// Returns why a listener cannot be opened there, or "" if it can.
std::string refusal(const std::string& path, const SocketAccess& access = {}) {
  const auto listener = Listener::open(path, access);
  if (!listener.ok()) UNSCOPED_INFO(listener.error().message);
  return listener.ok() ? "" : listener.error().message;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
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
    const auto listener = Listener::open(path, {});
    ::umask(previous);
    REQUIRE(listener.ok());
    CHECK(mode_of(path) == 0600);
    CHECK(mode_of(folder.path + "/run") == 0755);
    CHECK(exists(path));
  }
  CHECK(!exists(path));
}

TEST_CASE("a second daemon is told of the first, by pid") {
  const TempFolder folder;
  const std::string path = folder.path + "/s";
  const std::string pid = "pid " + std::to_string(::getpid());
  SECTION("one like us") {
    const auto first = Listener::open(path, {});
    REQUIRE(first.ok());
    const auto second = Listener::open(path, {});
    REQUIRE(!second.ok());
    INFO(second.error().message);
    CHECK(second.error().message.find("another gradplaned is running on " + path) !=
          std::string::npos);
    CHECK(second.error().message.find(pid) != std::string::npos);
    CHECK(exists(path));
  }
  SECTION("one whose socket somebody removed") {
    const auto first = Listener::open(path, {});
    REQUIRE(first.ok());
    REQUIRE(::unlink(path.c_str()) == 0);
    const auto second = Listener::open(path, {});
    REQUIRE(!second.ok());
    CHECK(says(second.error().message, "another gradplaned is running on " + path));
  }
  SECTION("one that holds no lock") {
    const UniqueFd foreign = foreign_listener(path);
    const auto second = Listener::open(path, {});
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
    CHECK(Listener::open(path, {}).ok());
  }
  SECTION("a file") {
    UniqueFd(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const auto listener = Listener::open(path, {});
    REQUIRE(!listener.ok());
    CHECK(listener.error().message.find("is no socket") != std::string::npos);
    CHECK(exists(path));
  }
}

TEST_CASE("a path that cannot be is refused with what to do") {
  // With its terminating zero the path is one byte too long.
  const auto too_long =
      Listener::open("/tmp/" + std::string(sizeof(sockaddr_un::sun_path) - 5, 'x'), {});
  REQUIRE(!too_long.ok());
  CHECK(too_long.error().message.find("choose a shorter") != std::string::npos);
  const auto no_parent = Listener::open("/nonexistent-gp/run/s", {});
  REQUIRE(!no_parent.ok());
  CHECK(no_parent.error().message.find("cannot create the folder /nonexistent-gp/run") !=
        std::string::npos);
  CHECK(!Listener::open("", {}).ok());
}

TEST_CASE("the socket can be taken again after its daemon ended") {
  const TempFolder folder;
  const std::string path = folder.path + "/s";
  std::optional<Result<Listener>> first(Listener::open(path, {}));
  REQUIRE(first->ok());
  first.reset();
  CHECK(Listener::open(path, {}).ok());
}

TEST_CASE("the kernel lets in whom the operator names, and nobody else") {
  if (!can_change_user()) return;
  const TempFolder folder;
  REQUIRE(::chmod(folder.path.c_str(), 0755) == 0);
  const std::string path = folder.path + "/s";
  SECTION("nobody is named") {
    const auto listener = Listener::open(path, {});
    REQUIRE(listener.ok());
    CHECK(connect_as(kStranger, kStranger, path) == EACCES);
    CHECK(connect_as(0, 0, path) == 0);
  }
  SECTION("a user") {
    const auto listener = Listener::open(path, {.users = {kStranger, 0, kStranger}});
    REQUIRE(listener.ok());
    CHECK(connect_as(kStranger, kStranger, path) == 0);
    CHECK(connect_as(kOther, kStranger, path) == EACCES);
    CHECK(connect_as(kOther, 0, path) == EACCES);
  }
  SECTION("a group") {
    const auto listener = Listener::open(path, {.group = std::to_string(kOther)});
    REQUIRE(listener.ok());
    CHECK(mode_of(path) == 0660);
    CHECK(connect_as(kStranger, kOther, path) == 0);
    CHECK(connect_as(kStranger, kStranger, path) == EACCES);
  }
  SECTION("a group, and not whom the folder's own list names") {
    if (!hand_down_access(folder.path, kStranger)) {
      WARN("needs a file system with access lists in /tmp");
      return;
    }
    const auto listener = Listener::open(path, {.group = std::to_string(kOther)});
    REQUIRE(listener.ok());
    CHECK(connect_as(kStranger, kOther, path) == 0);
    CHECK(connect_as(kStranger, kStranger, path) == EACCES);
  }
  SECTION("both") {
    const auto listener = Listener::open(path, {.group = std::to_string(kOther), .users = {1000}});
    REQUIRE(listener.ok());
    CHECK(connect_as(kStranger, kOther, path) == 0);
    CHECK(connect_as(1000, 1000, path) == 0);
    CHECK(connect_as(kStranger, kStranger, path) == EACCES);
  }
}

TEST_CASE("a group that is not there is named, with the command that makes it") {
  const TempFolder folder;
  CHECK(says(refusal(folder.path + "/s", {.group = "gp-no-such-group"}),
             "no group gp-no-such-group; run: groupadd gp-no-such-group"));
}

TEST_CASE("whom the kernel refuses can see that he must not go on, while that is so") {
  const TempFolder folder;
  const std::string path = folder.path + "/s";
  const std::string told = path + ".require";
  {
    const auto listener = Listener::open(path, {.require = true});
    REQUIRE(listener.ok());
    CHECK(mode_of(told) == 0644);
  }
  CHECK(!exists(told));
  UniqueFd(::open(told.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));  // left by a killed daemon
  const auto listener = Listener::open(path, {});
  REQUIRE(listener.ok());
  CHECK(!exists(told));
}

TEST_CASE("nobody serves from a folder that somebody else could change") {
  if (!can_change_user()) return;
  const TempFolder folder;
  const std::string run = folder.path + "/run";
  REQUIRE(::mkdir(run.c_str(), 0755) == 0);
  SECTION("his own") {
    REQUIRE(::chown(run.c_str(), kStranger, kStranger) == 0);
    CHECK(says(refusal(run + "/s"), run + " belongs to user 65534"));
  }
  SECTION("below his own") {
    REQUIRE(::chown(folder.path.c_str(), kStranger, kStranger) == 0);
    CHECK(says(refusal(run + "/s"), folder.path + " belongs to user 65534"));
  }
  SECTION("one that is not made yet, below his own") {
    REQUIRE(::rmdir(run.c_str()) == 0);
    REQUIRE(::chown(folder.path.c_str(), kStranger, kStranger) == 0);
    CHECK(says(refusal(run + "/s"), folder.path + " belongs to user 65534"));
    CHECK(!exists(run));
  }
  SECTION("one that a group or all write to") {
    REQUIRE(::chmod(run.c_str(), GENERATE(0775U, 0757U)) == 0);
    CHECK(says(refusal(run + "/s"), "run: chmod go-w " + run));
  }
  SECTION("one that all write to, each his own names") {
    REQUIRE(::chmod(run.c_str(), 01777) == 0);
    CHECK(says(refusal(run + "/s"), "choose a folder of the daemon's own below it"));
  }
  SECTION("his own, behind our link") {
    REQUIRE(::chown(run.c_str(), kStranger, kStranger) == 0);
    const std::string link = folder.path + "/link";
    REQUIRE(::symlink(run.c_str(), link.c_str()) == 0);
    CHECK(says(refusal(link + "/s"), run + " belongs to user 65534"));
  }
  SECTION("behind his link, where all write") {
    REQUIRE(::chmod(folder.path.c_str(), 01777) == 0);
    const std::string link = folder.path + "/link";
    REQUIRE(::symlink(run.c_str(), link.c_str()) == 0);
    CHECK(refusal(link + "/s").empty());
    REQUIRE(::lchown(link.c_str(), kStranger, kStranger) == 0);
    CHECK(says(refusal(link + "/s"), link + " belongs to user 65534"));
  }
  CHECK(!exists(run + "/s"));
  REQUIRE(::chown(folder.path.c_str(), 0, 0) == 0);
}
