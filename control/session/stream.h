// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "control/protocol/node_messages.h"
#include "control/session/datagram.h"
#include "dataplane/base/time.h"

namespace gradplane::session {

/// The most frames in flight: as many as a selective acknowledgement can name.
inline constexpr std::uint32_t kLinkWindow = 32;
/// The most frames that may wait for one peer. A peer with more is given up.
inline constexpr std::size_t kMaxQueuedFrames = 4096;
inline constexpr std::size_t kMaxFramesPerMessage =
    (protocol::kMaxNodeMessageBytes + kMaxFrameBytes - 1) / kMaxFrameBytes;
/// Parts of tables are queued only while fewer frames than this wait for the peer. So the window
/// stays full, and no other message waits long behind them.
inline constexpr std::size_t kTableFrames = kLinkWindow;
inline constexpr std::size_t kMaxFramesPerTablePart =
    (protocol::kMaxBucketPartBytes + kMaxFrameBytes) / kMaxFrameBytes + 1;
static_assert(kMaxFramesPerMessage * kMaxJobs + kTableFrames + kMaxFramesPerTablePart <=
                  kMaxQueuedFrames,
              "the longest plan of every job can wait at the same time, and a part of a table");

/// The sending half of a link. It cuts messages into frames, keeps the frames until they are
/// acknowledged, and tells which frame is due. It has neither a peer nor a clock.
class SendStream {
 public:
  struct Frame {
    std::vector<std::byte> body;
    std::uint8_t flags = 0;
    std::uint32_t tries = 0;
    Instant due;  // when it is sent next
    bool acknowledged = false;
  };

  /// Queues a message. False: kMaxQueuedFrames would be exceeded, and nothing was queued.
  bool push(std::span<const std::byte> message);
  void on_ack(std::uint32_t acknowledged, std::uint32_t selective);
  /// The first frame of the window that is due, or null. The caller sends it and sets its next due
  /// time.
  Frame* next_due(Instant now, std::uint32_t& sequence);
  /// When next_due() will return a frame; never(): none waits.
  Instant next_deadline() const;
  bool empty() const { return frames_.empty(); }
  std::size_t size() const { return frames_.size(); }
  void clear() { *this = SendStream(); }

 private:
  std::deque<Frame> frames_;
  std::uint32_t first_sequence_ = 0;  // of frames_.front()
};

/// The receiving half. It puts frames in order, and delivers each message once.
class ReceiveStream {
 public:
  /// Accepts the frame of a datagram and appends the messages that it completes. Returns kCount
  /// when it took the frame, and kDuplicate or kBeyondWindow when it dropped the frame without
  /// harm. Returns kBadMessage for a frame that no correct peer sends; then the link cannot go on.
  DatagramDrop accept(const Datagram& datagram, std::vector<std::vector<std::byte>>& messages);
  std::uint32_t acknowledged() const { return expected_; }
  std::uint32_t selective() const;
  void clear() { *this = ReceiveStream(); }

 private:
  struct Slot {
    bool filled = false;
    std::uint8_t flags = 0;
    std::vector<std::byte> body;
  };
  bool append(Slot& slot, std::vector<std::vector<std::byte>>& messages);

  std::array<Slot, kLinkWindow> slots_;  // frame s lies in slot s % kLinkWindow
  std::uint32_t expected_ = 0;
  std::vector<std::byte> partial_;
  bool inside_message_ = false;
};

}  // namespace gradplane::session
