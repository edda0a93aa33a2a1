// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <linux/if_packet.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "dataplane/base/result.h"
#include "dataplane/base/time.h"
#include "dataplane/ipc/unique_fd.h"
#include "tests/lab/frame.h"

namespace gradplane::lab {

/// Frames that can wait for the process: 80 ms at 50000 frames a second.
inline constexpr std::size_t kRingFrames = 4096;
inline constexpr std::size_t kRingFrameBytes = 2048;
/// The most frames to one host in one system call.
inline constexpr std::size_t kSendBatch = 32;

struct PortCounters {
  std::uint64_t ring_drops = 0;
  std::uint64_t send_failures = 0;
};

/// One interface of the switch, with two packet sockets: one has a ring of received frames in
/// shared memory, and one sends past the queue discipline. The port does not receive its own
/// frames.
class Port {
 public:
  static Result<Port> open(const std::string& interface);
  Port(Port&& other) noexcept;
  Port& operator=(Port&&) = delete;
  ~Port();

  int receive_fd() const { return receiver_.get(); }

  /// Calls `take(instant, frame)` for up to `most` received frames, and returns their number. The
  /// instant is when the kernel received the frame. `real_time_offset` is CLOCK_REALTIME minus
  /// CLOCK_MONOTONIC, and `now` is of CLOCK_MONOTONIC.
  template <typename F>
  std::size_t receive(Instant now, Duration real_time_offset, std::size_t most, F take) {
    std::size_t count = 0;
    while (count < most) {
      const Received got = front(now, real_time_offset);
      if (got.frame.data() == nullptr) break;
      take(got.at, got.frame);
      pop();
      ++count;
    }
    return count;
  }

  /// Adds a frame to the batch, and sends the batch when it is full. The bytes must stay valid
  /// until flush().
  void send(std::span<const std::byte> frame);
  void flush();

  PortCounters counters();
  void reset_counters();

 private:
  struct Received {
    Instant at;
    std::span<const std::byte> frame;
  };

  Port() = default;
  Received front(Instant now, Duration real_time_offset);
  void pop();
  tpacket2_hdr* header() const;

  ipc::UniqueFd receiver_;
  ipc::UniqueFd sender_;
  std::byte* ring_ = nullptr;
  std::size_t next_ = 0;  // index into the ring
  Instant last_at_;
  std::array<std::span<const std::byte>, kSendBatch> batch_;
  std::size_t batch_count_ = 0;
  PortCounters counters_;
};

}  // namespace gradplane::lab
