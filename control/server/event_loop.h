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

/// The main thread's loop over descriptors (sockets, signalfd, the engines' doorbell) and timers.
/// All calls and callbacks are on one thread. A callback may call any function, even for its own
/// descriptor.
class EventLoop {
 public:
  /// `events` as epoll reports them: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR.
  using FdHandler = std::function<void(std::uint32_t events)>;
  using TimerHandler = std::function<void()>;

  /// An Error when the system has no descriptor to give.
  static Result<std::unique_ptr<EventLoop>> create();

  /// Watches a descriptor, level-triggered. The caller keeps owning it, and must call forget()
  /// before closing it.
  Status watch(int fd, std::uint32_t events, FdHandler handler);
  void change(int fd, std::uint32_t events);
  void forget(int fd);

  TimerId start_timer(Instant when, TimerHandler handler);
  void cancel_timer(TimerId timer);

  /// Serves until stop(). run_once() waits at most `max_wait`, then serves what is ready or due.
  void run();
  void run_once(Duration max_wait);
  void stop() { stopped_ = true; }
  /// The number of calls of run_once(). Each serves every ready descriptor once, so a handler that
  /// leaves work to the next turn lets all others have theirs.
  std::uint64_t turn() const { return turn_; }

  /// The monotonic clock.
  static Instant now();

 private:
  struct Watch {
    FdHandler handler;
    std::uint64_t serial;  // keeps an event of a closed descriptor from one that has its number
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

/// Receives signals as events of the loop. It blocks them for this thread, and for those that the
/// thread starts later, and reads them from a signalfd. The destructor restores the signal mask.
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
