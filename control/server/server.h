// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/protocol/socket_messages.h"
#include "control/server/connection.h"
#include "control/server/event_loop.h"
#include "control/server/listener.h"
#include "dataplane/model/limits.h"

namespace gradplane::server {

/// Names one connection of one Server. It is never used twice, so it is also the rank's handle.
using ConnectionId = std::uint64_t;

/// The most connections of one user: every rank that the daemon may serve, and some operators.
inline constexpr std::size_t kMaxConnectionsOfUser = kMaxRanksOfNode + 64;
/// The most connections of all users together, except root and our own user. A user may have at
/// most as many as are still free, so some are always left for the next user.
inline constexpr std::size_t kMaxConnectionsOfUsers = 2 * kMaxConnectionsOfUser;
/// The most connections of root and our own user, which have their own share.
inline constexpr std::size_t kMaxConnectionsOfRoot = kMaxConnectionsOfUser;
/// How many files a daemon has open when it has all these connections: a rank has a channel and two
/// doorbells besides its connection, and the rest of the daemon needs some.
inline constexpr std::size_t kMaxOpenFiles =
    kMaxConnectionsOfUsers + kMaxConnectionsOfRoot + kMaxRanksOfNode * 5 + 256;
/// How many bytes of messages and answers all clients of one user together may cause in one turn of
/// the loop, so that every user has a turn. A user who has caused more waits until later turns have
/// made up for it.
inline constexpr std::int64_t kUserBytesPerTurn = std::int64_t{protocol::kMaxSocketMessageBytes};
/// A message counts at least so many bytes, because short ones cost work, too.
inline constexpr std::int64_t kMinMessageBytes = 2048;
/// The first message must come within this time after connecting.
inline constexpr Duration kHelloWithin = Duration::seconds(5);

struct PeerInfo {
  pid_t pid = 0;  // as the kernel says
  uid_t uid = 0;
  protocol::Role role = protocol::Role::kRank;
};

/// Why the server has refused or ended a connection. Each reason has a counter.
enum class HangUp : std::uint8_t {
  kTooMany,     // its user has too many, or no descriptor is left
  kNoHello,     // sent no hello within kHelloWithin, or something else first
  kVersion,     // has another version
  kBadMessage,  // broke the protocol
  kSlowReader,  // did not read its messages, or closed while some were to be sent
  kByHandler,   // hang_up() was called
  kCount,
};
std::string_view hang_up_name(HangUp reason);

/// Handles clients for the daemon. Its functions are called on the loop's thread. They may call the
/// Server, even to hang up on the connection that they are called for.
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  virtual void on_open(ConnectionId connection, const PeerInfo& peer) = 0;
  /// Gets Attach, RegisterBucket and Drift from ranks; StatusRequest, BoundsRequest, RoundsRequest,
  /// TopologyRequest and ReplanRequest from operators; nothing else.
  virtual void on_message(ConnectionId connection, const protocol::ClientMessage& message) = 0;
  /// The last call for a connection that was opened. `clean`: it has sent detach {clean: true}.
  virtual void on_closed(ConnectionId connection, bool clean) = 0;
};

struct ServerOptions {
  std::string socket_path;
  SocketAccess access;
  std::string node;
  std::string software;
};

/// The control socket: accepts connections, checks every message, and enforces limits. The kernel
/// decides who may connect at all. The server knows nothing of jobs.
class Server {
 public:
  /// `loop` and `handler` must outlive the server.
  static Result<std::unique_ptr<Server>> create(EventLoop& loop, ConnectionHandler& handler,
                                                ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Closes all connections without telling the handler.
  ~Server();

  /// Sends a message, or queues it for a slow reader. The caller keeps owning the descriptors (at
  /// most kMaxPassedFds). False: the connection has ended, or ends now; the loop will call
  /// on_closed().
  bool send(ConnectionId connection, const protocol::DaemonMessage& message,
            std::span<const int> fds = {});
  /// The same for an encoded message, which can be sent to several connections.
  bool send_encoded(ConnectionId connection, const std::string& text,
                    std::span<const int> fds = {});
  /// Sends the reason and ends the connection. The loop will call on_closed().
  void hang_up(ConnectionId connection, const std::string& reason);

  /// How many files this process may have open. If that is less than kMaxOpenFiles, clients may be
  /// refused before they have used up their shares.
  std::size_t open_files_limit() const { return open_files_limit_; }
  /// For tests.
  std::size_t connection_count() const { return clients_.size(); }
  const std::array<std::uint64_t, static_cast<std::size_t>(HangUp::kCount)>& hang_ups() const {
    return hang_ups_;
  }
  const std::array<std::uint64_t, static_cast<std::size_t>(protocol::RejectReason::kCount)>&
  rejected_messages() const {
    return rejected_;
  }

 private:
  struct Client {
    Connection connection;
    PeerInfo peer{};
    bool opened = false;  // has sent hello, so the handler knows it and will hear of its end
    bool paused = false;  // sent too fast, so it is not read for a while
    TimerId timer = 0;    // ends the wait for hello, or the pause
  };
  using Clients = std::map<ConnectionId, Client>;
  /// What a user uses of the server.
  struct User {
    std::size_t connections = 0;
    std::int64_t bytes_left = kUserBytesPerTurn;  // in this turn; negative: a debt
    std::uint64_t turn = 0;                       // the last turn in which has_turn() was called
  };

  Server(EventLoop& loop, ConnectionHandler& handler, ServerOptions options, Listener listener);
  Status start();
  void on_connectable();
  bool turn_away();
  void admit(UniqueFd socket);
  std::size_t connections_of(uid_t uid) const;
  /// Counts one more connection of this user. False: it has its share already.
  bool take_share(uid_t uid);
  void give_share_back(uid_t uid);
  /// Whether a user has bytes left in this turn.
  bool has_turn(uid_t uid);
  void charge(uid_t uid, std::size_t bytes);

  void on_event(ConnectionId id, std::uint32_t events);
  void read_from(ConnectionId id);
  /// False: the connection is over.
  bool take_message(ConnectionId id, std::string_view text);
  bool on_hello(ConnectionId id, const protocol::ClientHello& hello);
  bool role_may(const Client& client, const protocol::ClientMessage& message) const;
  void pause(ConnectionId id, Client& client);
  void update_watch(const Client& client);
  void set_timer(Client& client, Instant when, EventLoop::TimerHandler handler);

  /// Ends a connection from our side. Sends the text as the reason, if the client's queue has room.
  void end(ConnectionId id, HangUp reason, const std::string& text);
  void explain(Connection& connection, const std::string& text) const;
  void report_ended();
  void drop(ConnectionId id, bool clean);
  /// Removes a connection from the table and closes it. Returns whether the handler knows it.
  bool close(ConnectionId id);

  EventLoop& loop_;
  ConnectionHandler& handler_;
  ServerOptions options_;
  Listener listener_;
  TimerId accept_timer_ = 0;
  std::size_t open_files_limit_ = 0;
  UniqueFd spare_;  // closed for a moment to accept and refuse a client when none is left
  Clients clients_;
  std::map<uid_t, User> users_;        // users that have connections
  std::size_t users_connections_ = 0;  // of all users but root and our own
  std::vector<ConnectionId> ended_;    // those for which the loop will call on_closed()
  TimerId report_timer_ = 0;
  ConnectionId last_id_ = 0;
  std::vector<char> buffer_;
  std::array<std::uint64_t, static_cast<std::size_t>(HangUp::kCount)> hang_ups_{};
  std::array<std::uint64_t, static_cast<std::size_t>(protocol::RejectReason::kCount)> rejected_{};
};

}  // namespace gradplane::server
