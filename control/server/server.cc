// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/server/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>

#include "control/server/socket_end.h"
#include "dataplane/base/assert.h"

namespace gradplane::server {

using protocol::ClientMessage;

namespace {

/// The most clients that are accepted in one turn.
constexpr int kAcceptsPerTurn = 32;
/// How long the server accepts nobody after it has run out of descriptors.
constexpr Duration kAcceptPause = Duration::ms(100);

/// Whether a user has all rights over this process anyway.
bool is_root(uid_t uid) {
  return uid == 0 || uid == ::geteuid();
}

/// Raises the limit of open files as far as it goes, because clients and their channels need more
/// than the default. Returns the new limit.
std::size_t raise_open_files_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

bool out_of_descriptors() {
  return errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
}

}  // namespace

std::string_view hang_up_name(HangUp reason) {
  switch (reason) {
    case HangUp::kTooMany:
      return "too_many";
    case HangUp::kNoHello:
      return "no_hello";
    case HangUp::kVersion:
      return "version";
    case HangUp::kBadMessage:
      return "bad_message";
    case HangUp::kSlowReader:
      return "slow_reader";
    case HangUp::kByHandler:
      return "by_handler";
    case HangUp::kCount:
      break;
  }
  return "?";
}

Result<std::unique_ptr<Server>> Server::create(EventLoop& loop, ConnectionHandler& handler,
                                               ServerOptions options) {
  Result<Listener> listener = Listener::open(options.socket_path, options.access);
  if (!listener.ok()) return listener.error();
  std::unique_ptr<Server> server(
      new Server(loop, handler, std::move(options), std::move(listener.value())));
  const Status started = server->start();
  if (!started.ok()) return started.error();
  return server;
}

Server::Server(EventLoop& loop, ConnectionHandler& handler, ServerOptions options,
               Listener listener)
    : loop_(loop),
      handler_(handler),
      options_(std::move(options)),
      listener_(std::move(listener)),
      buffer_(protocol::kMaxSocketMessageBytes + 1) {}

Server::~Server() {
  loop_.forget(listener_.fd());
  loop_.cancel_timer(accept_timer_);
  loop_.cancel_timer(report_timer_);
  for (auto& [id, client] : clients_) {
    loop_.forget(client.connection.fd());
    loop_.cancel_timer(client.timer);
  }
}

Status Server::start() {
  open_files_limit_ = raise_open_files_limit();
  spare_ = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return loop_.watch(listener_.fd(), EPOLLIN, [this](std::uint32_t) { on_connectable(); });
}

void Server::on_connectable() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    UniqueFd socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      admit(std::move(socket));
      continue;
    }
    if (!out_of_descriptors()) return;
    if (turn_away()) continue;
    loop_.change(listener_.fd(), 0);
    accept_timer_ = loop_.start_timer(EventLoop::now() + kAcceptPause, [this] {
      accept_timer_ = 0;
      loop_.change(listener_.fd(), EPOLLIN);
    });
    return;
  }
}

bool Server::turn_away() {
  ++hang_ups_[static_cast<std::size_t>(HangUp::kTooMany)];
  spare_.reset();
  UniqueFd socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  const bool accepted{socket};
  end_socket(std::move(socket));
  spare_ = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return accepted;
}

void Server::admit(UniqueFd socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return end_socket(std::move(socket));
  Connection connection(std::move(socket), EventLoop::now());
  if (!take_share(peer.uid)) {
    ++hang_ups_[static_cast<std::size_t>(HangUp::kTooMany)];
    explain(connection, fmt::format("user {} has {} connections here, which is the most while the "
                                    "daemon keeps some for others; end some",
                                    peer.uid, connections_of(peer.uid)));
    return;
  }
  const ConnectionId id = ++last_id_;
  const Status watched = loop_.watch(connection.fd(), EPOLLIN,
                                     [this, id](std::uint32_t events) { on_event(id, events); });
  if (!watched.ok()) return give_share_back(peer.uid);
  Client& client =
      clients_.try_emplace(id, Client{.connection = std::move(connection)}).first->second;
  client.peer.pid = peer.pid;
  client.peer.uid = peer.uid;
  set_timer(client, EventLoop::now() + kHelloWithin,
            [this, id] { end(id, HangUp::kNoHello, "no hello came in time"); });
}

std::size_t Server::connections_of(uid_t uid) const {
  const auto user = users_.find(uid);
  return user == users_.end() ? 0 : user->second.connections;
}

bool Server::take_share(uid_t uid) {
  const bool root = is_root(uid);
  const std::size_t most =
      root ? kMaxConnectionsOfRoot : kMaxConnectionsOfUsers - users_connections_;
  if (connections_of(uid) >= most) return false;
  if (!root) ++users_connections_;
  ++users_[uid].connections;
  return true;
}

void Server::give_share_back(uid_t uid) {
  if (!is_root(uid)) --users_connections_;
  const auto user = users_.find(uid);
  if (--user->second.connections == 0) users_.erase(user);
}

bool Server::has_turn(uid_t uid) {
  User& user = users_.at(uid);
  // Bytes that were not used in a turn are lost, but a debt is carried over.
  const auto turns =
      static_cast<std::int64_t>(loop_.turn() - std::exchange(user.turn, loop_.turn()));
  const std::int64_t short_of = kUserBytesPerTurn - user.bytes_left;
  user.bytes_left = turns > short_of / kUserBytesPerTurn
                        ? kUserBytesPerTurn
                        : user.bytes_left + turns * kUserBytesPerTurn;
  return user.bytes_left > 0;
}

void Server::charge(uid_t uid, std::size_t bytes) {
  users_.at(uid).bytes_left -= std::max(static_cast<std::int64_t>(bytes), kMinMessageBytes);
}

void Server::on_event(ConnectionId id, std::uint32_t events) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  Client& client = found->second;
  if ((events & EPOLLOUT) != 0) {
    // If the client has hung up, what it has sent before is still read.
    if (client.connection.flush() == Connection::Write::kOverflow)
      return end(id, HangUp::kSlowReader, "");
    update_watch(client);
  }
  // A client that has hung up sends no more, so the rest is bounded and is read without a pause.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) client.paused = false;
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !client.paused) read_from(id);
}

void Server::read_from(ConnectionId id) {
  for (;;) {
    const auto found = clients_.find(id);
    if (found == clients_.end()) return;
    Client& client = found->second;
    // epoll reports unread messages again in the next turn.
    if (!has_turn(client.peer.uid)) return;
    if (!client.connection.take_token(EventLoop::now())) {
      pause(id, client);
      return;
    }
    std::size_t size = 0;
    switch (client.connection.read(buffer_, size)) {
      case Connection::Read::kNothing:
        return;
      case Connection::Read::kClosed:
        drop(id, false);
        return;
      case Connection::Read::kDescriptors:
        ++hang_ups_[static_cast<std::size_t>(HangUp::kBadMessage)];
        drop(id, false);
        return;
      case Connection::Read::kTooLong:
        ++rejected_[static_cast<std::size_t>(protocol::RejectReason::kTooLong)];
        end(id, HangUp::kBadMessage, "a message has at most 64 KiB");
        return;
      case Connection::Read::kMessage:
        charge(client.peer.uid, size);
        if (!take_message(id, {buffer_.data(), size})) return;
    }
  }
}

bool Server::take_message(ConnectionId id, std::string_view text) {
  const auto parsed = protocol::parse_client_message(text);
  if (!parsed.ok()) {
    ++rejected_[static_cast<std::size_t>(parsed.rejection.reason)];
    end(id, HangUp::kBadMessage, parsed.rejection.text);
    return false;
  }
  const ClientMessage& message = *parsed.message;
  Client& client = clients_.at(id);
  const auto* hello = std::get_if<protocol::ClientHello>(&message);
  if (!client.opened) {
    if (hello != nullptr) return on_hello(id, *hello);
    end(id, HangUp::kNoHello, "the first message must be hello");
    return false;
  }
  if (!role_may(client, message)) {
    end(id, HangUp::kBadMessage, "this message is not for this role, or comes a second time");
    return false;
  }
  if (const auto* detach = std::get_if<protocol::Detach>(&message)) {
    drop(id, detach->clean);
    return false;
  }
  handler_.on_message(id, message);
  return true;
}

bool Server::on_hello(ConnectionId id, const protocol::ClientHello& hello) {
  if (hello.version != protocol::kSocketVersion) {
    end(id, HangUp::kVersion,
        fmt::format("this daemon speaks version {}, not {}; install the same release on both sides",
                    protocol::kSocketVersion, hello.version));
    return false;
  }
  Client& client = clients_.at(id);
  loop_.cancel_timer(std::exchange(client.timer, 0));
  client.peer.role = hello.role;
  if (!send(id, protocol::DaemonHello{protocol::kSocketVersion, options_.node, options_.software,
                                      options_.access.require}))
    return false;
  client.opened = true;
  handler_.on_open(id, client.peer);
  return true;
}

bool Server::role_may(const Client& client, const ClientMessage& message) const {
  if (std::holds_alternative<protocol::ClientHello>(message)) return false;
  const bool for_operators = std::holds_alternative<protocol::StatusRequest>(message) ||
                             std::holds_alternative<protocol::BoundsRequest>(message) ||
                             std::holds_alternative<protocol::RoundsRequest>(message) ||
                             std::holds_alternative<protocol::TopologyRequest>(message) ||
                             std::holds_alternative<protocol::ReplanRequest>(message);
  return for_operators == (client.peer.role == protocol::Role::kOperator);
}

void Server::pause(ConnectionId id, Client& client) {
  client.paused = true;
  update_watch(client);
  set_timer(client, client.connection.resume_at(EventLoop::now()), [this, id] {
    Client& resumed = clients_.at(id);
    resumed.paused = false;
    update_watch(resumed);
  });
}

void Server::update_watch(const Client& client) {
  const std::uint32_t in = client.paused ? 0 : static_cast<std::uint32_t>(EPOLLIN);
  loop_.change(client.connection.fd(),
               in | (client.connection.has_output() ? static_cast<std::uint32_t>(EPOLLOUT) : 0));
}

void Server::set_timer(Client& client, Instant when, EventLoop::TimerHandler handler) {
  loop_.cancel_timer(client.timer);
  client.timer = loop_.start_timer(when, [&client, handler = std::move(handler)] {
    client.timer = 0;
    handler();
  });
}

bool Server::send(ConnectionId id, const protocol::DaemonMessage& message,
                  std::span<const int> fds) {
  return clients_.contains(id) && send_encoded(id, protocol::encode(message), fds);
}

bool Server::send_encoded(ConnectionId id, const std::string& text, std::span<const int> fds) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return false;
  Client& client = found->second;
  charge(client.peer.uid, text.size());
  switch (client.connection.send(text, fds)) {
    case Connection::Write::kDone:
      return true;
    case Connection::Write::kBlocked:
      update_watch(client);
      return true;
    case Connection::Write::kOverflow:
      end(id, HangUp::kSlowReader, "");
      return false;
    case Connection::Write::kClosed:
      end(id, HangUp::kSlowReader, "");
      return false;
  }
  return false;
}

void Server::hang_up(ConnectionId connection, const std::string& reason) {
  end(connection, HangUp::kByHandler, reason);
}

void Server::explain(Connection& connection, const std::string& text) const {
  if (text.empty()) return;
  // If messages of the client are unread, it first gets ECONNRESET, and can then read this.
  connection.send(protocol::encode(protocol::DaemonMessage(
                      protocol::SocketError{text, options_.access.require})),
                  {});
}

void Server::end(ConnectionId id, HangUp reason, const std::string& text) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  ++hang_ups_[static_cast<std::size_t>(reason)];
  explain(found->second.connection, text);
  if (!close(id)) return;
  ended_.push_back(id);
  if (report_timer_ == 0)
    report_timer_ = loop_.start_timer(EventLoop::now(), [this] { report_ended(); });
}

void Server::report_ended() {
  report_timer_ = 0;
  for (const ConnectionId id : std::exchange(ended_, {})) handler_.on_closed(id, false);
}

void Server::drop(ConnectionId id, bool clean) {
  // The connection leaves the table first, because the handler may call the server.
  if (close(id)) handler_.on_closed(id, clean);
}

bool Server::close(ConnectionId id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return false;
  const auto node = clients_.extract(found);
  const Client& client = node.mapped();
  loop_.forget(client.connection.fd());
  loop_.cancel_timer(client.timer);
  give_share_back(client.peer.uid);
  return client.opened;
}

}  // namespace gradplane::server
