// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <signal.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "dataplane/base/result.h"
#include "dataplane/base/time.h"
#include "dataplane/ipc/unique_fd.h"

namespace gradplane::server {

using ipc::UniqueFd;

/// Names a timer of one EventLoop; never used twice.
using TimerId = std::uint64_t;

/// The main thread's loop: descriptors (sockets, signalfd, the engine's doorbell) and timers. All
/// calls and callbacks on one thread. A callback may watch, forget and start whatever it likes,
/// itself included.
class EventLoop {
 public:
  /// `events` as epoll reports them: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR.
  using FdHandler = std::function<void(std::uint32_t events)>;
  using TimerHandler = std::function<void()>;

  /// An Error when the system has no descriptor to give.
  static Result<std::unique_ptr<EventLoop>> create();

  /// Level-triggered. The descriptor stays the caller's; forget() it before closing it.
  Status watch(int fd, std::uint32_t events, FdHandler handler);
  void change(int fd, std::uint32_t events);
  void forget(int fd);

  TimerId start_timer(Instant when, TimerHandler handler);
  void cancel_timer(TimerId timer);

  /// Until stop(). run_once() waits at most `max_wait`, then serves what is due.
  void run();
  void run_once(Duration max_wait);
  void stop() { stopped_ = true; }
  /// Counts the turns of run_once(): what is ready is served once in each, so whoever leaves work
  /// to the next turn lets everybody else have his.
  std::uint64_t turn() const { return turn_; }

  /// The monotonic clock.
  static Instant now();

 private:
  struct Watch {
    FdHandler handler;
    std::uint64_t serial;  // so that an event for a closed descriptor never reaches its successor
  };

  explicit EventLoop(UniqueFd epoll) : epoll_(std::move(epoll)) {}
  int timeout_ms(Duration max_wait) const;
  void serve_timers();

  UniqueFd epoll_;
  std::map<int, std::shared_ptr<Watch>> watches_;
  std::map<std::pair<Instant, TimerId>, TimerHandler> timers_;
  std::uint64_t last_serial_ = 0;
  TimerId last_timer_ = 0;
  std::uint64_t turn_ = 0;
  bool stopped_ = false;
};

/// Takes signals as events instead of interruptions: blocks them for this thread (and those that
/// it starts later) and reads them from a signalfd. Restores the mask at the end.
class Signals {
 public:
  using Handler = std::function<void(int signal_number)>;
  static Result<std::unique_ptr<Signals>> create(EventLoop& loop, std::vector<int> numbers,
                                                 Handler handler);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

 private:
  Signals(EventLoop& loop, UniqueFd fd, const sigset_t& previous);
  EventLoop& loop_;
  UniqueFd fd_;
  sigset_t previous_;
};

}  // namespace gradplane::server
