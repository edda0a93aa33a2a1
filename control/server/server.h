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

/// Names one connection of one Server; never used twice, so it serves as the rank's handle too.
using ConnectionId = std::uint64_t;

/// Connections of one user: every rank that the daemon may serve, and some operators.
inline constexpr std::size_t kMaxConnectionsOfUser = kMaxJobs * kMaxLocalRanks + 64;
/// Of all users but root and our own together. One of them may have as many as are still free, so
/// something is left for the next one whoever came before.
inline constexpr std::size_t kMaxConnectionsOfUsers = 2 * kMaxConnectionsOfUser;
/// Of root and our own user, beside those.
inline constexpr std::size_t kMaxConnectionsOfRoot = kMaxConnectionsOfUser;
/// Files that a daemon has open when all these are there: a rank has a channel and two doorbells
/// besides its connection, and the rest of the daemon needs some.
inline constexpr std::size_t kMaxOpenFiles =
    kMaxConnectionsOfUsers + kMaxConnectionsOfRoot + kMaxJobs * kMaxLocalRanks * 5 + 256;
/// What all clients of one user together may have read and written for them in a turn of the loop,
/// before everybody else has his: bytes of messages and of answers. Who has used more waits for as
/// many turns as that is worth.
inline constexpr std::int64_t kUserBytesPerTurn = std::int64_t{protocol::kMaxSocketMessageBytes};
/// A short message costs work too.
inline constexpr std::int64_t kMinMessageBytes = 2048;
/// For the first message after connecting.
inline constexpr Duration kHelloWithin = Duration::seconds(5);

struct PeerInfo {
  pid_t pid = 0;  // as the kernel says
  uid_t uid = 0;
  protocol::Role role = protocol::Role::kRank;
};

/// Why a connection was refused or ended by us. One counter for each.
enum class HangUp : std::uint8_t {
  kTooMany,     // its user has as many as he may, or no descriptor is left
  kNoHello,     // said nothing within kHelloWithin, or something else first
  kVersion,     // speaks another version
  kBadMessage,  // broke the protocol
  kSlowReader,  // did not take its messages
  kByHandler,   // hang_up() was called
  kCount,
};
std::string_view hang_up_name(HangUp reason);

/// What the daemon does with clients. Called on the loop's thread; may call the Server, also to
/// hang up on the very connection that it is told about.
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  virtual void on_open(ConnectionId connection, const PeerInfo& peer) = 0;
  /// Attach and RegisterBucket from ranks; StatusRequest, BoundsRequest, RoundsRequest,
  /// TopologyRequest and ReplanRequest from operators; nothing else.
  virtual void on_message(ConnectionId connection, const protocol::ClientMessage& message) = 0;
  /// The last word about a connection that was opened. `clean`: it said detach {clean: true}.
  virtual void on_closed(ConnectionId connection, bool clean) = 0;
};

struct ServerOptions {
  std::string socket_path;
  SocketAccess access;
  std::string node;
  std::string software;
};

/// The control socket: accepts, checks every message, keeps limits. Who may connect at all, the
/// kernel decides. Knows no jobs.
class Server {
 public:
  /// `loop` and `handler` must outlive the server.
  static Result<std::unique_ptr<Server>> create(EventLoop& loop, ConnectionHandler& handler,
                                                ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Hangs up on everybody without telling the handler.
  ~Server();

  /// Sends, or queues for a slow reader. The descriptors (at most kMaxPassedFds) stay the caller's.
  /// False: the connection is over, or is ended now; on_closed follows, from the loop.
  bool send(ConnectionId connection, const protocol::DaemonMessage& message,
            std::span<const int> fds = {});
  /// The same for a message that is encoded already, for several connections.
  bool send_encoded(ConnectionId connection, const std::string& text,
                    std::span<const int> fds = {});
  /// Says why, and ends the connection; on_closed follows, from the loop.
  void hang_up(ConnectionId connection, const std::string& reason);

  /// How many files this process may have open. Fewer than kMaxOpenFiles: clients may be turned
  /// away before they have used up their shares.
  std::size_t open_files_limit() const { return open_files_limit_; }
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
    bool opened = false;  // hello is done; the handler knows it and hears of its end
    bool paused = false;  // sent too fast; not read for a while
    TimerId timer = 0;    // of the hello or the pause, whichever there is
  };
  using Clients = std::map<ConnectionId, Client>;
  /// What a user has of the server.
  struct User {
    std::size_t connections = 0;
    std::int64_t bytes_left = kUserBytesPerTurn;  // of this turn; negative: of later ones
    std::uint64_t turn = 0;                       // the last one in which it was asked for
  };

  Server(EventLoop& loop, ConnectionHandler& handler, ServerOptions options, Listener listener);
  Status start();
  void on_connectable();
  bool turn_away();
  void admit(UniqueFd socket);
  std::size_t connections_of(uid_t uid) const;
  /// One more connection of this user; false: he may have no more.
  bool take_share(uid_t uid);
  void give_share_back(uid_t uid);
  /// Whether a user has something left of this turn.
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

  /// Ends a connection from our side, with a word of explanation if its queue takes it.
  void end(ConnectionId id, HangUp reason, const std::string& text);
  void explain(Connection& connection, const std::string& text) const;
  void report_ended();
  void drop(ConnectionId id, bool clean);
  /// Takes it out of the table and closes it; whether the handler knows it.
  bool close(ConnectionId id);

  EventLoop& loop_;
  ConnectionHandler& handler_;
  ServerOptions options_;
  Listener listener_;
  TimerId accept_timer_ = 0;
  std::size_t open_files_limit_ = 0;
  UniqueFd spare_;  // given up for a moment to turn somebody away when no descriptor is left
  Clients clients_;
  std::map<uid_t, User> users_;        // each that has connections
  std::size_t users_connections_ = 0;  // of all but root and our own
  std::vector<ConnectionId> ended_;    // their end is told to the handler from the loop
  TimerId report_timer_ = 0;
  ConnectionId last_id_ = 0;
  std::vector<char> buffer_;
  std::array<std::uint64_t, static_cast<std::size_t>(HangUp::kCount)> hang_ups_{};
  std::array<std::uint64_t, static_cast<std::size_t>(protocol::RejectReason::kCount)> rejected_{};
};

}  // namespace gradplane::server
