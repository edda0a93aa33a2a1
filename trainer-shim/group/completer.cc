// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/completer.h"

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "trainer-shim/group/left_behind.h"
#include "trainer-shim/group/threads.h"

namespace gradplane::shim {
namespace {

class Completer {
 public:
  void add(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    tasks_.push_back(std::move(task));
    if (idle_count_ < tasks_.size() && thread_count_ < kMaxCompleterThreads) start_thread();
    if (thread_count_ == 0) {  // no thread can be started, so the task runs here
      const auto own = std::move(tasks_.back());
      tasks_.pop_back();
      lock.unlock();
      run_one(own);
      return;
    }
    lock.unlock();
    tasks_added_.notify_one();
  }

 private:
  void start_thread() {
    try {
      std::thread([this] { run(); }).detach();
      ++thread_count_;
    } catch (const std::system_error&) {
      // Threads that run already will take the task.
    }
  }

  static void run_one(const std::function<void()>& task) {
    try {
      task();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "gradplane: a callback of a collective threw: %s\n", e.what());
    } catch (...) {
      std::fprintf(stderr, "gradplane: a callback of a collective threw\n");
    }
  }

  void run() {
    name_thread("gp-complete");
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_count_;
      tasks_added_.wait(lock, [this] { return !tasks_.empty(); });
      --idle_count_;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      run_one(task);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable tasks_added_;
  std::deque<std::function<void()>> tasks_;
  std::size_t idle_count_ = 0;
  int thread_count_ = 0;
};

Completer* completer = new Completer;  // its threads outlive static destruction

}  // namespace

void complete_soon(std::function<void()> task) {
  completer->add(std::move(task));
}

void forget_completer_after_fork() {
  leave_behind(std::exchange(completer, new Completer));
}

}  // namespace gradplane::shim
