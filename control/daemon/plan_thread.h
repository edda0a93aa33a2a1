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

/// Makes plans on a thread of its own, one after the other, so that the control thread goes on
/// answering peers meanwhile: the planners take a second for a thousand sites. The thread starts
/// with the first order, because most daemons never make a plan.
class PlanThread {
 public:
  /// `on_made` is called on the plan thread whenever take() has something.
  PlanThread(session::Planner planner, std::function<void()> on_made)
      : planner_(std::move(planner)), on_made_(std::move(on_made)) {}
  /// Waits for the plan that is being made, or the step.
  ~PlanThread();
  PlanThread(const PlanThread&) = delete;
  PlanThread& operator=(const PlanThread&) = delete;

  /// An order that waits for the same job is forgotten: nobody waits for its plan any more. So no
  /// more orders wait than there are jobs.
  void order(session::MakePlan order);
  std::optional<MadePlan> take();
  /// Other work that plans: `step` is called on the plan thread until it returns the answer, each
  /// time after the orders that wait, so one step delays a plan at most. One question at a time;
  /// take_answer() gives its answer.
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
  std::deque<session::MakePlan> orders_;  // under the mutex, as all that follows
  std::deque<MadePlan> made_;
  std::function<std::optional<std::string>()> question_;
  std::optional<std::string> answer_;
  bool stopping_ = false;
  std::thread thread_;  // of the control thread
};

}  // namespace gradplane::daemon
