// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "control/session/actions.h"

namespace gradplane::daemon {

struct MadePlan {
  std::uint64_t ticket = 0;
  Result<session::PlanOffer> offer;
};

/// Makes plans on a thread of its own, one after the other. So the control thread can answer peers
/// meanwhile, although a plan over a thousand sites takes a second. The thread starts with the
/// first order, because most daemons never make a plan.
class PlanThread {
 public:
  /// `on_made` is called on the plan thread whenever take() has something.
  PlanThread(session::Planner planner, std::function<void()> on_made)
      : planner_(std::move(planner)), on_made_(std::move(on_made)) {}
  /// Waits until the plan that is being made, or the step that runs, is done.
  ~PlanThread();
  PlanThread(const PlanThread&) = delete;
  PlanThread& operator=(const PlanThread&) = delete;

  /// Replaces an order for the same job that has not begun, because nobody waits for its plan any
  /// more. So there are never more orders than jobs.
  void order(session::MakePlan order);
  std::optional<MadePlan> take();
  /// Has the plan thread call `step` until it returns the answer, which take_answer() gives. Orders
  /// that wait go before each step, so a plan is delayed by one step at most. Ask one question at a
  /// time.
  void ask(std::function<std::optional<std::string>()> step);
  std::optional<std::string> take_answer();

 private:
  void make_plan(std::unique_lock<std::mutex>& lock);
  void answer(std::unique_lock<std::mutex>& lock);
  void begin();
  void run();

  const session::Planner planner_;
  const std::function<void()> on_made_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<session::MakePlan> orders_;  // guarded by the mutex, as all members up to stopping_
  std::deque<MadePlan> made_;
  std::function<std::optional<std::string>()> question_;
  std::optional<std::string> answer_;
  bool stopping_ = false;
  std::thread thread_;  // only the control thread uses it
};

}  // namespace gradplane::daemon
