// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

#include "control/daemon/nap_policy.h"
#include "dataplane/base/result.h"
#include "dataplane/base/time.h"
#include "dataplane/engine/engine.h"
#include "dataplane/ipc/doorbell.h"

namespace gradplane::daemon {

struct PollOptions {
  bool adaptive = true;                    // sleep when there is no work; else spin for ever
  Duration spin;                           // time without work before the first sleep
  Duration max_sleep;                      // longest sleep
  std::optional<std::uint32_t> core;       // pinned to this processor
  std::uint64_t link_bits_per_second = 0;  // 0: not known
};

/// Lets a thread go before all ordinary threads (SCHED_RR). An error says which right is missing.
Status go_before_others(pthread_t thread);

/// Runs an engine on a thread of its own until stop(). The engine gets the time only from here.
class PollThread {
 public:
  /// Ranks ring `doorbell` to wake a sleeping loop. The loop rings `wake_control`, an end of a
  /// doorbell, when events wait for the control thread. Both must outlive this.
  PollThread(engine::Engine& engine, PollOptions options, const ipc::Doorbell& doorbell,
             int wake_control, const api::EventQueue& events);
  ~PollThread() { stop(); }
  PollThread(const PollThread&) = delete;
  PollThread& operator=(const PollThread&) = delete;

  /// Ends the loop and waits for it. It may be called more than once.
  void stop();

  Status go_before_others() { return daemon::go_before_others(thread_.native_handle()); }

  /// The time in polls that found work, and the time since the start. Any thread; the values may be
  /// a little old.
  std::uint64_t busy_ns() const { return busy_ns_.load(std::memory_order_relaxed); }
  std::uint64_t total_ns() const { return total_ns_.load(std::memory_order_relaxed); }
  /// Sleeps that a rank or the control thread ended. The others ended by the clock.
  std::uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

 private:
  void run();
  void nap(Instant now);

  engine::Engine& engine_;
  const PollOptions options_;
  const ipc::Doorbell& doorbell_;
  const int wake_control_;
  const api::EventQueue& events_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> busy_ns_{0};   // poll thread: rw, control: ro
  std::atomic<std::uint64_t> total_ns_{0};  // poll thread: rw, control: ro
  std::atomic<std::uint64_t> wakes_{0};     // poll thread: rw, control: ro
  Instant started_;
  Instant last_work_;
  const Duration spin_;
  const NapPolicy naps_;
  bool doorbell_is_good_ = true;  // false after a rank has broken it: then only the clock ends naps
  std::thread thread_;
};

/// The monotonic clock.
Instant clock_now();

}  // namespace gradplane::daemon
