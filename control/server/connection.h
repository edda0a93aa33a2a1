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

/// Messages and bytes that may wait for one slow reader before it is dropped.
inline constexpr std::size_t kMaxQueuedMessages = 256;
inline constexpr std::size_t kMaxQueuedBytes = std::size_t{256} << 10;
static_assert(kMaxQueuedBytes >= 2 * protocol::kMaxSocketMessageBytes);
/// Messages of one client that are read at once, and how many per second after that. Who sends
/// more is read more slowly; nothing is lost.
inline constexpr std::uint32_t kMessageBurst = 256;
inline constexpr std::uint32_t kMessagesPerSecond = 200;
/// Descriptors that one message carries at most: the memory of a rank, the end of its own doorbell,
/// and those of the cores.
inline constexpr std::size_t kMaxPassedFds = 2 + kMaxCores;

/// One accepted socket: reads whole messages at a bounded rate, queues what its peer does not take
/// yet. Knows no meaning of any message.
class Connection {
 public:
  enum class Read : std::uint8_t { kMessage, kNothing, kTooLong, kDescriptors, kClosed };
  enum class Write : std::uint8_t { kDone, kBlocked, kOverflow, kClosed };

  Connection(UniqueFd socket, Instant now);

  Connection(Connection&&) noexcept = default;
  Connection& operator=(Connection&&) = delete;
  /// Never waits, whatever the client has sent last.
  ~Connection();

  /// One message into `buffer` (kMaxSocketMessageBytes + 1 bytes); `size` of it. kDescriptors: the
  /// next message brings some, which no client has any reason to; it is left where it is.
  Read read(std::span<char> buffer, std::size_t& size);
  /// Sends now or queues; descriptors are duplicated when they must wait.
  Write send(std::string text, std::span<const int> fds);
  Write flush();

  /// Counts one message against the rate. False: not before resume_at().
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
  /// When the bucket is full again; a message moves it by one interval (a virtual schedule).
  Instant tokens_full_at_;
};

}  // namespace gradplane::server
