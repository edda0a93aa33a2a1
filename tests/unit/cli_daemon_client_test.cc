// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/daemon_client.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/listen_as.h"
#include "tests/support/other_user.h"

using namespace gradplane;
using namespace gradplane::cli;

namespace {

/// A socket. A thread plays the daemon for one connection.
class FakeDaemon {
 public:
  using Script = std::function<void(int fd)>;

  explicit FakeDaemon(Script script, int type = SOCK_SEQPACKET) {
    folder_ = (std::filesystem::temp_directory_path() / "gp-cli-XXXXXX").string();
    if (mkdtemp(folder_.data()) == nullptr) return;
    listener_ = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, 1) != 0 || !script) {
      return;
    }
    thread_ = std::thread([this, script] {
      const int fd = accept(listener_, nullptr, nullptr);
      script(fd);
      close(fd);
    });
  }
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;
  ~FakeDaemon() {
    shutdown(listener_, SHUT_RDWR);  // ends accept() if nobody has connected
    if (thread_.joinable()) thread_.join();
    close(listener_);
    std::filesystem::remove_all(folder_);
  }

  std::string path() const { return folder_ + "/s"; }
  /// From now on the kernel names this user as the server's.
  bool belong_to(uid_t uid) const { return test::listen_as(uid, listener_); }

 private:
  std::string folder_;
  int listener_ = -1;
  std::thread thread_;
};

void say(int fd, const std::string& text) {
  send(fd, text.data(), text.size(), MSG_NOSIGNAL);
}

std::string hear(int fd) {
  std::array<char, 4096> text{};
  const ssize_t length = recv(fd, text.data(), text.size(), 0);
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : "";
}

std::string error_of(const FakeDaemon& daemon) {
  const auto status = fetch_status(daemon.path());
  return status.ok() ? "" : status.error().message;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* kHello = R"({"type":"hello","version":1,"node":"w0","software":"d 1"})";

}  // namespace

TEST_CASE("status is asked for after a hello") {
  std::vector<std::string> heard;
  std::string answer;
  {
    const FakeDaemon daemon([&heard](int fd) {
      heard.push_back(hear(fd));
      say(fd, kHello);
      heard.push_back(hear(fd));
      say(fd, R"({"type":"status","node":"w0"})");
      hear(fd);
    });
    const auto status = fetch_status(daemon.path());
    REQUIRE(status.ok());
    answer = status.value();
  }
  REQUIRE(heard.size() == 2);
  CHECK(holds(heard[0], R"("type":"hello")"));
  CHECK(holds(heard[0], R"("role":"operator")"));
  CHECK(heard[1] == R"({"type":"status"})");
  CHECK(holds(answer, R"("node":"w0")"));
}

TEST_CASE("the daemon's own words are passed on when it refuses") {
  const FakeDaemon refusing(
      [](int fd) { say(fd, R"({"type":"error","reason":"uid 7 may not"})"); });
  CHECK(holds(error_of(refusing), "refused: uid 7 may not"));
}

TEST_CASE("an answer that is no answer is told from a daemon that is gone") {
  const FakeDaemon closing([](int) {});
  CHECK(holds(error_of(closing), closing.path()));
  const FakeDaemon garbage([](int fd) {
    hear(fd);
    say(fd, "\x01\x02");
    hear(fd);
  });
  CHECK(holds(error_of(garbage), "no gradplaned of this version"));
  const FakeDaemon chatty([](int fd) {
    hear(fd);
    for (int i = 0; i < 100; ++i) say(fd, R"({"type":"ready","epoch":1,"nodes":1})");
    hear(fd);
  });
  CHECK(holds(error_of(chatty), "does not answer the question"));
}

TEST_CASE("a socket that nobody serves: which, why, what to do") {
  const auto error = fetch_status("/nonexistent/s").error().message;
  CHECK(holds(error, "/nonexistent/s: No such file or directory"));
  CHECK(holds(error, "gradplaned --config FILE"));
  const std::string folder = std::filesystem::temp_directory_path();
  CHECK(holds(fetch_status(folder).error().message, "this is a folder; name the socket in it"));
  const FakeDaemon stream(nullptr, SOCK_STREAM);
  CHECK(holds(error_of(stream), "another program listens there"));
  CHECK(holds(fetch_status("").error().message, "no socket path"));
  CHECK(holds(fetch_status(std::string(200, 'x')).error().message, "no socket path"));
}

TEST_CASE("rounds come page by page, after those that were seen") {
  std::vector<std::string> heard;
  telemetry::RoundsPage seen;
  seen.job = 7;
  seen.epoch = 2;
  seen.next_after = 40;
  {
    const FakeDaemon daemon([&heard](int fd) {
      hear(fd);
      say(fd, kHello);
      for (const char* answer :
           {R"({"type":"rounds","jobs":[7,9]})",
            R"({"type":"rounds","job":7,"epoch":2,"rounds":[{"number":41}],"more":true,)"
            R"("next_after":41})",
            R"({"type":"rounds","job":7,"epoch":2,"rounds":[{"number":42},{"number":43}],)"
            R"("next_after":43})",
            R"({"type":"rounds","job":9,"epoch":1,"rounds":[]})"}) {
        heard.push_back(hear(fd));
        say(fd, answer);
      }
      hear(fd);
    });
    const auto pages = fetch_rounds(daemon.path(), 0, 2, {seen});
    REQUIRE(pages.ok());
    REQUIRE(pages.value().size() == 2);
    CHECK(pages.value()[0].next_after == 43);
    REQUIRE(pages.value()[0].rounds.size() == 2);
    CHECK(pages.value()[0].rounds[0].number == 42);
    CHECK(pages.value()[1].job == 9);
  }
  REQUIRE(heard.size() == 4);
  CHECK(holds(heard[0], R"("job":0,"last":0)"));
  CHECK(heard[1] == R"({"after":40,"epoch":2,"job":7,"last":2,"type":"rounds"})");
  CHECK(heard[2] == R"({"after":41,"epoch":2,"job":7,"last":2,"type":"rounds"})");
  CHECK(heard[3] == R"({"after":0,"epoch":0,"job":9,"last":2,"type":"rounds"})");
}

TEST_CASE("a new plan is asked for by its kind and roots, and told or refused") {
  std::string heard;
  {
    const FakeDaemon daemon([&heard](int fd) {
      hear(fd);
      say(fd, kHello);
      heard = hear(fd);
      say(fd, R"({"type":"replanned","epoch":9,"activation_round":128,"text":"star, root agg"})");
      hear(fd);
    });
    const auto answer = request_replan(daemon.path(), {7, PlanKind::kStar, {"agg", "w0"}});
    REQUIRE(answer.ok());
    CHECK(answer.value().epoch == 9);
    CHECK(answer.value().activation_round == 128);
    CHECK(answer.value().text == "star, root agg");
  }
  CHECK(heard == R"({"job":7,"plan":"star","roots":["agg","w0"],"type":"replan","without":[]})");
  const FakeDaemon refusing([](int fd) {
    hear(fd);
    say(fd, kHello);
    hear(fd);
    say(fd, R"({"type":"error","reason":"node w1: no memory"})");
  });
  const auto refused = request_replan(refusing.path(), {7, PlanKind::kSharded, {}});
  REQUIRE_FALSE(refused.ok());
  CHECK(holds(refused.error().message, "refused: node w1: no memory"));
}

TEST_CASE("an operator asks nothing of another user's server, unless that user is named") {
  if (!gradplane::testing::can_change_user()) return;
  unsetenv("GRADPLANE_DAEMON_UID");
  std::string heard = "nothing yet";
  {
    const FakeDaemon impostor([&heard](int fd) { heard = hear(fd); });
    REQUIRE(impostor.belong_to(4711));
    const std::string error = error_of(impostor);
    CHECK(holds(error, impostor.path()));
    CHECK(holds(error, "uid 4711"));
    CHECK(holds(error, "GRADPLANE_DAEMON_UID=4711"));
  }
  CHECK(heard.empty());
  setenv("GRADPLANE_DAEMON_UID", "4711", 1);
  {
    const FakeDaemon named([&heard](int fd) { heard = hear(fd); });
    REQUIRE(named.belong_to(4711));
    error_of(named);
  }
  CHECK(holds(heard, R"("type":"hello")"));
  setenv("GRADPLANE_DAEMON_UID", "grace", 1);
  {
    const FakeDaemon daemon([](int) {});
    CHECK(holds(error_of(daemon), "GRADPLANE_DAEMON_UID is 'grace'"));
  }
  unsetenv("GRADPLANE_DAEMON_UID");
}
