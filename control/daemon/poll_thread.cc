// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/poll_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

#include "dataplane/hop/flow.h"
#include "dataplane/job/job_config.h"

namespace gradplane::daemon {
namespace {

/// The first nap after work is as long as the link takes for a burst worth waking up for, within
/// these bounds: shorter ones cost more than they bring, longer ones are felt in small rounds.
constexpr std::int64_t kNapPackets = 8;
constexpr Duration kMinNap = Duration::us(200);
constexpr Duration kLongestFirstNap = Duration::us(500);
/// It may last past the engine's next deadline: at moderate rates that is the next packet's turn,
/// and the pacer makes up for it with a burst.
static_assert(kLongestFirstNap * 2 <= hop::kPacerBurst);
/// With a job attached, the next round may begin at any moment on another host, and only a turn of
/// the loop finds out.
constexpr Duration kMaxNapWithJobs = Duration::us(500);
static_assert(kLongestFirstNap <= kMaxNapWithJobs);
/// The kernel's default slack of 50 us would double the shortest naps.
constexpr unsigned long kTimerSlackNs = 1000;

timespec to_timespec(Duration d) {
  return {.tv_sec = d.count_ns() / 1'000'000'000, .tv_nsec = d.count_ns() % 1'000'000'000};
}

/// What one block occupies the link for; 0: not known.
Duration block_time(std::uint64_t link_bits_per_second) {
  if (link_bits_per_second == 0) return {};
  constexpr std::int64_t kBits =
      static_cast<std::int64_t>(kDefaultBlockBytes + hop::kWireOverheadBytes) * 8;
  return Duration::ns(kBits * 1'000'000'000 / static_cast<std::int64_t>(link_bits_per_second));
}

Duration first_nap(std::uint64_t link_bits_per_second) {
  return std::clamp(block_time(link_bits_per_second) * kNapPackets, kMinNap, kLongestFirstNap);
}

/// Spinning for less time than the next packet takes to come is for nothing.
Duration useful_spin(const PollOptions& options) {
  return block_time(options.link_bits_per_second) > options.spin ? Duration{} : options.spin;
}

}  // namespace

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
      first_nap_(first_nap(options.link_bits_per_second)),
      next_nap_(first_nap_),
      thread_([this] {
        pthread_setname_np(pthread_self(), "gradplane-poll");
        prctl(PR_SET_TIMERSLACK, kTimerSlackNs, 0, 0, 0);
        if (options_.core) {
          cpu_set_t cpus;
          CPU_ZERO(&cpus);
          CPU_SET(*options_.core, &cpus);
          pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
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
      next_nap_ = first_nap_;
      if (!events_.empty()) ipc::ring_doorbell(wake_control_);
    } else if (options_.adaptive && after - last_work_ > spin_) {
      nap(after);
    }
    now = clock_now();
    total_ns_.store(static_cast<std::uint64_t>((now - started_).count_ns()),
                    std::memory_order_relaxed);
  }
}

/// Sleeps until the engine's next deadline, its doorbell, or the end of a nap that doubles each
/// time.
void PollThread::nap(Instant now) {
  const Duration limit =
      engine_.has_jobs() ? std::min(kMaxNapWithJobs, options_.max_sleep) : options_.max_sleep;
  Duration length = std::min(next_nap_, limit);
  const Duration until_deadline = engine_.next_deadline(now) - now;
  if (until_deadline <= Duration{}) return;
  length = std::min(length, std::max(until_deadline, first_nap_));
  next_nap_ = std::min(next_nap_ * 2, limit);
  if (!engine_.prepare_sleep()) return;
  const int listen_fd = doorbell_is_good_ ? doorbell_.listen.get() : -1;
  pollfd doorbell{.fd = listen_fd, .events = POLLIN, .revents = 0};
  const timespec timeout = to_timespec(length);
  if (ppoll(&doorbell, 1, &timeout, nullptr) > 0) {
    doorbell_is_good_ = ipc::silence_doorbell(listen_fd);
  }
  engine_.end_sleep();
}

}  // namespace gradplane::daemon
