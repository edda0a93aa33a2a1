// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/protocol/socket_messages.h"
#include "dataplane/base/time.h"
#include "dataplane/ipc/doorbell.h"
#include "dataplane/ipc/rounds_in_flight.h"
#include "trainer-shim/client/attach.h"
#include "trainer-shim/client/client.h"
#include "trainer-shim/client/core_rings.h"
#include "trainer-shim/client/liveness.h"
#include "trainer-shim/client/yields.h"

namespace gradplane::client {

/// The session of one rank with its daemon. It implements the functions of client.h, which catch
/// its exceptions. It has ended for good when over() is not GP_OK. Except for wake(), only one
/// thread at a time may use it.
class Session {
 public:
  Session(Attachment attachment, ipc::Doorbell wake, std::uint32_t world_size);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Failure wait_ready(Duration bound);
  /// Says for which ranks the daemon waits, as far as the daemon has told.
  std::string describe_wait();
  Failure register_bucket(std::uint32_t bucket, std::uint8_t element_type,
                          std::span<const gp_tensor> tensors);
  gp_status submit(std::uint32_t round, const gp_statement& said);
  gp_status report_drift(const protocol::Drift& drift);
  /// Returns 1 if a completion was taken, 0 if there is none, or -gp_status.
  int poll(gp_completion& out);
  gp_status wait(Duration bound);
  /// May be called in any thread and in signal handlers.
  void wake() noexcept;
  void say_goodbye(bool clean);
  /// Leaves as a failed rank does. Completions that the daemon has written can still be taken.
  void leave();

  std::span<std::byte> round_memory(std::uint32_t round) const noexcept {
    return channel().slot(round);
  }
  std::size_t round_bytes() const noexcept { return channel().sizes().slot_bytes; }
  std::uint32_t rounds_in_flight_max() const noexcept { return channel().sizes().slot_count / 2; }
  /// The next round to submit. The first one is known when the rank is ready.
  std::uint32_t next_round() const noexcept { return rounds_.next(); }
  std::uint32_t selections() const noexcept { return terms_.selections; }
  std::uint32_t average_every() const noexcept { return terms_.average_every; }
  std::uint32_t staleness() const noexcept { return terms_.staleness; }
  bool require() const noexcept { return attachment_.require; }
  gp_status over() const noexcept { return over_.status; }
  const char* failure() const noexcept { return over_.reason.c_str(); }

 private:
  const ipc::ChannelView& channel() const noexcept { return attachment_.channel; }
  bool has_news() noexcept;
  bool spin(Instant now, Instant deadline) noexcept;
  void sleep(Duration bound);
  void poll_descriptors(Duration bound, bool completions_wake);
  void take_messages();
  void take(const protocol::DaemonMessage& message);
  void look_at_beat();
  void end(gp_status status, std::string reason);
  std::string missing_text() const;

  Attachment attachment_;
  ipc::Doorbell wake_;
  std::uint32_t world_size_;
  bool has_few_cpus_;
  Yields yields_;
  std::atomic<bool> woken_{false};   // since the last wait()
  std::atomic<bool> sleeps_{false};  // whether wake() must ring
  CoreRings rings_;
  ipc::RoundsInFlight rounds_;
  std::vector<Liveness> liveness_;  // by core
  bool ready_ = false;
  protocol::Ready terms_;  // the daemon's last
  bool has_submitted_ = false;
  bool ring_is_sane_ = true;  // false after an impossible completion: then none is taken any more
  protocol::Waiting waiting_;
  Failure over_;
};

}  // namespace gradplane::client
