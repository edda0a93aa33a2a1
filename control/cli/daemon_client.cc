// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/daemon_client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

#include "control/protocol/server_identity.h"
#include "control/protocol/socket_messages.h"

namespace gradplane::cli {
namespace {

constexpr const char* kDefaultSocket = "/run/gradplane/gradplaned.sock";
// A daemon may send notices before the answer. More than this many are an error.
constexpr int kMaxMessagesToSkip = 8;
// Pages of one job: more than all its tensors can take.
constexpr std::size_t kMaxPages = 4096;

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string remedy(const std::string& path, int error_number) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return "this is a folder; name the socket in it with --socket or GRADPLANE_SOCKET";
  switch (error_number) {
    case ENOENT:
    case ECONNREFUSED:
      return "is gradplaned running? Start it with: gradplaned --config FILE; or name its socket "
             "with --socket";
    case EACCES:
    case EPERM:
      return fmt::format(
          "user {} may not use this daemon: run this as root, or add the user to its control.group "
          "or to control.allow_uids",
          geteuid());
    case EPROTOTYPE:
      return "another program listens there; name gradplaned's socket with --socket";
    case EAGAIN:
    case ETIMEDOUT:
      return "the daemon is stopped or overloaded; look at its log";
    default:
      return "look at the daemon's log";
  }
}

Error unreachable(const std::string& path, int error_number) {
  // A socket timeout arrives as EAGAIN, whose text would not tell a person that time ran out.
  const int shown = error_number == EAGAIN ? ETIMEDOUT : error_number;
  return Error{fmt::format("no answer from the daemon on {}: {}; {}", path, std::strerror(shown),
                           remedy(path, error_number))};
}

/// Why the process that listens on the socket is not trusted; empty when it is.
std::string why_not_trusted(int fd, const std::string& path) {
  const char* text = std::getenv(protocol::kDaemonUidVariable);
  if (text == nullptr || *text == '\0') return protocol::why_not_trusted(fd, path, 0);
  const auto named = protocol::parse_uid(text);
  if (named) return protocol::why_not_trusted(fd, path, *named);
  return fmt::format("{} is '{}'; expected the number of the daemon's user",
                     protocol::kDaemonUidVariable, text);
}

void set_timeout(int fd, int option, Duration timeout) {
  const timeval time{.tv_sec = timeout.count_ns() / 1000000000, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, option, &time, sizeof time);
}

Result<Descriptor> connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Error{fmt::format("'{}' is no socket path: 1 to {} bytes are accepted", path,
                             sizeof(address.sun_path) - 1)};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Descriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return unreachable(path, errno);
  set_timeout(fd.get(), SO_RCVTIMEO, kDaemonTimeout);
  set_timeout(fd.get(), SO_SNDTIMEO, kDaemonTimeout);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return unreachable(path, errno);
  }
  const std::string doubt = why_not_trusted(fd.get(), path);
  if (!doubt.empty()) return Error{doubt};
  return fd;
}

template <typename Message>
bool send_message(int fd, const Message& message) {
  const std::string text = protocol::encode(protocol::ClientMessage{message});
  return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

Result<protocol::DaemonMessage> receive_message(int fd, const std::string& path) {
  std::string text(protocol::kMaxSocketMessageBytes, '\0');
  ssize_t length = recv(fd, text.data(), text.size(), 0);
  // A daemon that closes without reading resets the connection. Its last message can still be read.
  if (length < 0 && errno == ECONNRESET) length = recv(fd, text.data(), text.size(), 0);
  if (length < 0) return unreachable(path, errno);
  if (length == 0) {
    return Error{fmt::format("the daemon on {} closed the connection; {}", path, remedy(path, 0))};
  }
  text.resize(static_cast<std::size_t>(length));
  auto parsed = protocol::parse_daemon_message(text);
  if (!parsed.ok()) {
    return Error{fmt::format("what answers on {} is no gradplaned of this version: {}", path,
                             parsed.rejection.text)};
  }
  return std::move(*parsed.message);
}

/// Reads until a message of the wanted type; an error of the daemon is our error.
template <typename Wanted>
Result<Wanted> expect(int fd, const std::string& path) {
  for (int i = 0; i < kMaxMessagesToSkip; ++i) {
    auto message = receive_message(fd, path);
    if (!message) return message.error();
    if (auto* wanted = std::get_if<Wanted>(&message.value())) return std::move(*wanted);
    if (const auto* error = std::get_if<protocol::SocketError>(&message.value())) {
      return Error{fmt::format("the daemon on {} refused: {}", path, error->reason)};
    }
  }
  return Error{fmt::format("the daemon on {} does not answer the question", path)};
}

Error unreadable(const std::string& path, const char* what, const Error& error) {
  return Error{fmt::format("the daemon on {} sent {} that this version cannot read: {}", path, what,
                           error.message)};
}

/// A connection on which the daemon has accepted us as an operator.
Result<Descriptor> open_as_operator(const std::string& socket_path) {
  auto connection = connect_to(socket_path);
  if (!connection) return connection;
  const int fd = connection.value().get();
  const protocol::ClientHello hello{.role = protocol::Role::kOperator,
                                    .pid = static_cast<std::uint32_t>(getpid())};
  // A daemon that refuses says why and closes, perhaps before we have sent this. So an error is
  // ignored here, and the answer is read in any case.
  (void)send_message(fd, hello);
  const auto answer = expect<protocol::DaemonHello>(fd, socket_path);
  if (!answer) return answer.error();
  return connection;
}

Result<telemetry::BoundsPage> fetch_page(int fd, const std::string& path,
                                         const protocol::BoundsRequest& request) {
  (void)send_message(fd, request);
  const auto reply = expect<protocol::BoundsReply>(fd, path);
  if (!reply) return reply.error();
  auto page = telemetry::bounds_from_json(reply.value().json);
  if (!page) return unreadable(path, "bounds", page.error());
  return page;
}

Result<telemetry::RoundsPage> fetch_page(int fd, const std::string& path,
                                         const protocol::RoundsRequest& request) {
  (void)send_message(fd, request);
  const auto reply = expect<protocol::RoundsReply>(fd, path);
  if (!reply) return reply.error();
  auto page = telemetry::rounds_from_json(reply.value().json);
  if (!page) return unreadable(path, "rounds", page.error());
  return page;
}

/// All pages of a job, joined into one.
Result<telemetry::BoundsPage> fetch_job(int fd, const std::string& path, std::uint32_t job) {
  auto whole = fetch_page(fd, path, protocol::BoundsRequest{.job = job});
  if (!whole) return whole;
  telemetry::BoundsPage& page = whole.value();
  for (std::size_t i = 0; i < kMaxPages && page.more; ++i) {
    const protocol::BoundsRequest request{
        .job = page.job, .bucket = page.next_bucket, .tensor = page.next_tensor};
    const auto next = fetch_page(fd, path, request);
    if (!next) return next;
    page.tensors.insert(page.tensors.end(), next.value().tensors.begin(),
                        next.value().tensors.end());
    page.more = next.value().more;
    page.next_bucket = next.value().next_bucket;
    page.next_tensor = next.value().next_tensor;
  }
  return whole;
}

/// All pages of a job, joined into one: the rounds that came after `seen`.
Result<telemetry::RoundsPage> fetch_job_rounds(int fd, const std::string& path, std::uint32_t job,
                                               std::uint32_t last,
                                               const std::vector<telemetry::RoundsPage>& seen) {
  protocol::RoundsRequest request{.job = job, .epoch = 0, .after = 0, .last = last};
  for (const telemetry::RoundsPage& page : seen) {
    if (page.job != job) continue;
    request.epoch = page.epoch;
    request.after = page.next_after;
  }
  auto whole = fetch_page(fd, path, request);
  if (!whole) return whole;
  telemetry::RoundsPage& page = whole.value();
  std::vector<telemetry::RoundEntry>& rounds = page.rounds;
  for (std::size_t i = 0; i < telemetry::kKeptRounds && page.more; ++i) {
    request = {.job = page.job, .epoch = page.epoch, .after = page.next_after, .last = last};
    auto next = fetch_page(fd, path, request);
    if (!next) return next;
    std::move(next.value().rounds.begin(), next.value().rounds.end(), std::back_inserter(rounds));
    page.more = next.value().more;
    page.next_after = next.value().next_after;
    page.closed = next.value().closed;
  }
  // More rounds may have come since the first page.
  if (rounds.size() > last) rounds.erase(rounds.begin(), rounds.end() - last);
  return whole;
}

}  // namespace

std::string default_socket_path() {
  const char* path = std::getenv("GRADPLANE_SOCKET");
  return path != nullptr && *path != '\0' ? path : kDefaultSocket;
}

Result<std::string> fetch_status(const std::string& socket_path) {
  const auto connection = open_as_operator(socket_path);
  if (!connection) return connection.error();
  const int fd = connection.value().get();
  (void)send_message(fd, protocol::StatusRequest{});
  auto status = expect<protocol::StatusReply>(fd, socket_path);
  if (!status) return status.error();
  return std::move(status.value().json);
}

Result<telemetry::Topology> fetch_topology(const std::string& socket_path, bool why) {
  const auto connection = open_as_operator(socket_path);
  if (!connection) return connection.error();
  const int fd = connection.value().get();
  if (why) set_timeout(fd, SO_RCVTIMEO, kReplanTimeout);  // the daemon runs all planners
  (void)send_message(fd, protocol::TopologyRequest{.why = why});
  const auto reply = expect<protocol::TopologyReply>(fd, socket_path);
  if (!reply) return reply.error();
  auto topology = telemetry::topology_from_json(reply.value().json);
  if (!topology) return unreadable(socket_path, "a topology", topology.error());
  return topology;
}

Result<protocol::Replanned> request_replan(const std::string& socket_path,
                                           const protocol::ReplanRequest& request) {
  const auto connection = open_as_operator(socket_path);
  if (!connection) return connection.error();
  const int fd = connection.value().get();
  set_timeout(fd, SO_RCVTIMEO, kReplanTimeout);
  (void)send_message(fd, request);
  return expect<protocol::Replanned>(fd, socket_path);
}

Result<std::vector<telemetry::BoundsPage>> fetch_bounds(const std::string& socket_path,
                                                        std::uint32_t job) {
  const auto connection = open_as_operator(socket_path);
  if (!connection) return connection.error();
  const int fd = connection.value().get();
  auto first = fetch_job(fd, socket_path, job);
  if (!first) return first.error();
  std::vector<telemetry::BoundsPage> pages;
  const std::vector<std::uint32_t> jobs = first.value().jobs;
  const std::uint32_t known = first.value().job;
  if (known != 0) pages.push_back(std::move(first.value()));
  if (job != 0) return pages;
  for (const std::uint32_t other : jobs) {
    if (other == known) continue;
    auto page = fetch_job(fd, socket_path, other);
    if (!page) return page.error();
    pages.push_back(std::move(page.value()));
  }
  return pages;
}

Result<std::vector<telemetry::RoundsPage>> fetch_rounds(
    const std::string& socket_path, std::uint32_t job, std::uint32_t last,
    const std::vector<telemetry::RoundsPage>& seen) {
  const auto connection = open_as_operator(socket_path);
  if (!connection) return connection.error();
  const int fd = connection.value().get();
  std::vector<std::uint32_t> jobs = {job};
  if (job == 0) {
    const auto any = fetch_page(fd, socket_path, protocol::RoundsRequest{});
    if (!any) return any.error();
    jobs = any.value().jobs;
  }
  std::vector<telemetry::RoundsPage> pages;
  for (const std::uint32_t one : jobs) {
    auto page = fetch_job_rounds(fd, socket_path, one, last, seen);
    if (!page) return page.error();
    pages.push_back(std::move(page.value()));
  }
  return pages;
}

}  // namespace gradplane::cli
