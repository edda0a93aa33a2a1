// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "control/protocol/socket_messages.h"
#include "dataplane/base/time.h"
#include "dataplane/ipc/unique_fd.h"
#include "dataplane/model/core_part.h"

namespace gradplane::server {

using ipc::UniqueFd;

/// The most messages and bytes that may wait for a slow reader. Above them it is disconnected.
inline constexpr std::size_t kMaxQueuedMessages = 256;
inline constexpr std::size_t kMaxQueuedBytes = std::size_t{256} << 10;
static_assert(kMaxQueuedBytes >= 2 * protocol::kMaxSocketMessageBytes);
/// A token bucket for the messages of one client. A client that sends more is read more slowly, but
/// nothing is lost.
inline constexpr std::uint32_t kMessageBurst = 256;
inline constexpr std::uint32_t kMessagesPerSecond = 200;
/// The most descriptors of one message: the memory of a rank, an end of its own doorbell, and ends
/// of the doorbells of the cores.
inline constexpr std::size_t kMaxPassedFds = 2 + kMaxCores;

/// One accepted socket. It reads whole messages at a bounded rate, and queues messages that its
/// peer does not take yet. It does not interpret messages.
class Connection {
 public:
  enum class Read : std::uint8_t { kMessage, kNothing, kTooLong, kDescriptors, kClosed };
  enum class Write : std::uint8_t { kDone, kBlocked, kOverflow, kClosed };

  Connection(UniqueFd socket, Instant now);

  Connection(Connection&&) noexcept = default;
  Connection& operator=(Connection&&) = delete;
  /// Never blocks, whatever descriptors the client has sent; see end_socket().
  ~Connection();

  /// Reads one message of `size` bytes into `buffer` (kMaxSocketMessageBytes + 1 bytes).
  /// kDescriptors: the next message brings descriptors, which no correct client does, so it is not
  /// read.
  Read read(std::span<char> buffer, std::size_t& size);
  /// Sends a message, or queues it with duplicates of its descriptors.
  Write send(std::string text, std::span<const int> fds);
  Write flush();

  /// Takes a token for one message. False: there is none before resume_at().
  bool take_token(Instant now);
  Instant resume_at(Instant now) const;

  int fd() const { return socket_.get(); }
  bool has_output() const { return !queue_.empty(); }

 private:
  struct Pending {
    std::string text;
    std::vector<UniqueFd> fds;
  };
  Write transmit(const std::string& text, std::span<const int> fds);

  UniqueFd socket_;
  std::deque<Pending> queue_;
  std::size_t queued_bytes_ = 0;
  /// When the token bucket is full again. Each message moves this by one interval, as in virtual
  /// scheduling.
  Instant tokens_full_at_;
};

}  // namespace gradplane::server
