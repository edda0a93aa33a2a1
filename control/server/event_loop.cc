// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/server/event_loop.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "dataplane/base/assert.h"

namespace gradplane::server {

namespace {

constexpr int kMaxEventsPerTurn = 64;

std::uint64_t event_key(int fd, std::uint64_t serial) {
  return serial << 32 | static_cast<std::uint32_t>(fd);
}

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::create() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll)
    return Error{fmt::format("cannot create an epoll descriptor: {}; raise the limit of open files",
                             std::strerror(errno))};
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll)));
}

Status EventLoop::watch(int fd, std::uint32_t events, FdHandler handler) {
  GP_ASSERT(!watches_.contains(fd));
  last_serial_ = (last_serial_ + 1) & UINT32_MAX;
  epoll_event event{};
  event.events = events;
  event.data.u64 = event_key(fd, last_serial_);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return Error{fmt::format("cannot watch descriptor {}: {}", fd, std::strerror(errno))};
  watches_[fd] = std::make_shared<Watch>(Watch{std::move(handler), last_serial_});
  return Nothing{};
}

void EventLoop::change(int fd, std::uint32_t events) {
  const auto found = watches_.find(fd);
  GP_ASSERT(found != watches_.end());
  epoll_event event{};
  event.events = events;
  event.data.u64 = event_key(fd, found->second->serial);
  GP_ASSERT(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0);
}

void EventLoop::forget(int fd) {
  if (watches_.erase(fd) == 0) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

TimerId EventLoop::start_timer(Instant when, TimerHandler handler) {
  timers_.emplace(std::pair(when, ++last_timer_), std::move(handler));
  return last_timer_;
}

void EventLoop::cancel_timer(TimerId timer) {
  const auto found = std::find_if(timers_.begin(), timers_.end(),
                                  [&](const auto& entry) { return entry.first.second == timer; });
  if (found != timers_.end()) timers_.erase(found);
}

void EventLoop::run() {
  stopped_ = false;
  while (!stopped_) run_once(Duration::max());
}

void EventLoop::run_once(Duration max_wait) {
  ++turn_;
  std::array<epoll_event, kMaxEventsPerTurn> events;
  const int count =
      epoll_wait(epoll_.get(), events.data(), kMaxEventsPerTurn, timeout_ms(max_wait));
  GP_ASSERT(count >= 0 || errno == EINTR);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const int fd = static_cast<int>(static_cast<std::uint32_t>(event.data.u64));
    const auto found = watches_.find(fd);
    if (found == watches_.end() || found->second->serial != event.data.u64 >> 32) continue;
    // This copy keeps the handler alive, because it may call forget() for itself.
    const std::shared_ptr<Watch> watch = found->second;
    watch->handler(event.events);
  }
  serve_timers();
}

int EventLoop::timeout_ms(Duration max_wait) const {
  Duration wait = max_wait;
  if (!timers_.empty()) wait = std::min(wait, timers_.begin()->first.first - now());
  if (wait <= Duration()) return 0;
  // Rounded up: otherwise the loop would spin until the timer is due.
  const std::int64_t ms = (wait.count_ns() + 999999) / 1000000;
  constexpr std::int64_t kLongestMs = 60000;
  return static_cast<int>(std::min(ms, kLongestMs));
}

void EventLoop::serve_timers() {
  // Only timers that are due now: a handler may start another that is due at once, and that must
  // not keep us here.
  const Instant limit = now();
  const TimerId newest = last_timer_;
  while (!timers_.empty()) {
    const auto first = timers_.begin();
    if (first->first.first > limit || first->first.second > newest) return;
    const TimerHandler handler = std::move(first->second);
    timers_.erase(first);
    handler();
  }
}

Instant EventLoop::now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return Instant::from_ns(std::int64_t{t.tv_sec} * 1000000000 + t.tv_nsec);
}

Result<std::unique_ptr<Signals>> Signals::create(EventLoop& loop, std::vector<int> numbers,
                                                 Handler handler) {
  sigset_t wanted;
  sigset_t previous;
  sigemptyset(&wanted);
  for (const int number : numbers) sigaddset(&wanted, number);
  pthread_sigmask(SIG_BLOCK, &wanted, &previous);
  UniqueFd fd(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  const int raw = fd.get();
  if (!fd) {
    const int why = errno;
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    return Error{fmt::format("cannot create a signalfd: {}; raise the limit of open files",
                             std::strerror(why))};
  }
  std::unique_ptr<Signals> signals(new Signals(loop, std::move(fd), previous));
  Status watched = loop.watch(raw, EPOLLIN, [raw, handler = std::move(handler)](std::uint32_t) {
    signalfd_siginfo info;
    while (::read(raw, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
      handler(static_cast<int>(info.ssi_signo));
  });
  if (!watched.ok()) return watched.error();
  return signals;
}

Signals::Signals(EventLoop& loop, UniqueFd fd, const sigset_t& previous)
    : loop_(loop), fd_(std::move(fd)), previous_(previous) {}

Signals::~Signals() {
  loop_.forget(fd_.get());
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

}  // namespace gradplane::server
