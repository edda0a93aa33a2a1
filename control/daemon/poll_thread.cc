// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/poll_thread.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "control/daemon/numa.h"
#include "dataplane/hop/flow.h"
#include "dataplane/job/job_config.h"

namespace gradplane::daemon {
namespace {

/// The kernel's default slack of 50 us would double the shortest naps.
constexpr unsigned long kTimerSlackNs = 1000;

timespec to_timespec(Duration d) {
  return {.tv_sec = d.count_ns() / 1'000'000'000, .tv_nsec = d.count_ns() % 1'000'000'000};
}

/// No time if one packet takes the link longer than poll.spin: no second packet would come while
/// the loop spins.
Duration useful_spin(const PollOptions& options) {
  return NapPolicy::block_time(options.link_bits_per_second) > options.spin ? Duration{}
                                                                            : options.spin;
}

}  // namespace

Status go_before_others(pthread_t thread) {
  const sched_param lowest{.sched_priority = sched_get_priority_min(SCHED_RR)};
  const int error = pthread_setschedparam(thread, SCHED_RR, &lowest);
  if (error == 0) return Nothing{};
  return Error{fmt::format(
      "poll.real_time: the kernel does not let this process have real-time threads: {}; give it "
      "CAP_SYS_NICE or a limit of 1 for real-time priorities (of a service: LimitRTPRIO=1, and no "
      "RestrictRealtime), or set poll.real_time: false",
      std::strerror(error))};
}

Instant clock_now() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return Instant::from_ns(ts.tv_sec * 1'000'000'000 + ts.tv_nsec);
}

PollThread::PollThread(engine::Engine& engine, PollOptions options, const ipc::Doorbell& doorbell,
                       int wake_control, const api::EventQueue& events)
    : engine_(engine),
      options_(options),
      doorbell_(doorbell),
      wake_control_(wake_control),
      events_(events),
      spin_(useful_spin(options)),
      naps_(options.link_bits_per_second, options.max_sleep),
      thread_([this] {
        pthread_setname_np(pthread_self(), "gradplane-poll");
        prctl(PR_SET_TIMERSLACK, kTimerSlackNs, 0, 0, 0);
        if (options_.core) {
          cpu_set_t cpus;
          CPU_ZERO(&cpus);
          CPU_SET(*options_.core, &cpus);
          pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
          (void)prefer_memory_of(*options_.core);
        }
        run();
      }) {}

void PollThread::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  ipc::ring_doorbell(doorbell_.ring.get());
  if (thread_.joinable()) thread_.join();
}

void PollThread::run() {
  started_ = last_work_ = clock_now();
  Instant now = started_;
  while (!stopping_.load(std::memory_order_relaxed)) {
    const bool worked = engine_.poll_once(now);
    const Instant after = clock_now();
    if (worked) {
      busy_ns_.store(busy_ns() + static_cast<std::uint64_t>((after - now).count_ns()),
                     std::memory_order_relaxed);
      last_work_ = after;
      if (!events_.empty()) ipc::ring_doorbell(wake_control_);
    } else if (options_.adaptive && after - last_work_ > spin_) {
      nap(after);
    } else if (options_.adaptive) {
      ::sched_yield();  // other threads of this CPU may have work
    }
    now = clock_now();
    total_ns_.store(static_cast<std::uint64_t>((now - started_).count_ns()),
                    std::memory_order_relaxed);
  }
  engine_.poll_once(now);
  engine_.finish(now);
}

/// Sleeps until the engine's next deadline, its doorbell, or the end of the nap.
void PollThread::nap(Instant now) {
  const Duration until_deadline = engine_.next_deadline(now) - now;
  if (until_deadline <= Duration{}) return;
  const Duration length = naps_.length(now - last_work_, engine_.has_jobs(), until_deadline);
  if (!engine_.prepare_sleep()) return;
  const int listen_fd = doorbell_is_good_ ? doorbell_.listen.get() : -1;
  pollfd doorbell{.fd = listen_fd, .events = POLLIN, .revents = 0};
  const timespec timeout = to_timespec(length);
  if (ppoll(&doorbell, 1, &timeout, nullptr) > 0) {
    wakes_.store(wakes() + 1, std::memory_order_relaxed);
    doorbell_is_good_ = ipc::silence_doorbell(listen_fd);
  }
  engine_.end_sleep();
}

}  // namespace gradplane::daemon
