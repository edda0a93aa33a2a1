// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/plan_thread.h"

#include <algorithm>
#include <utility>

namespace gradplane::daemon {

PlanThread::~PlanThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void PlanThread::order(session::MakePlan order) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(
        orders_, [&order](const session::MakePlan& other) { return other.job_id == order.job_id; });
    orders_.push_back(std::move(order));
  }
  begin();
}

std::optional<MadePlan> PlanThread::take() {
  const std::lock_guard lock(mutex_);
  if (made_.empty()) return std::nullopt;
  MadePlan made = std::move(made_.front());
  made_.pop_front();
  return made;
}

void PlanThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !orders_.empty() || question_; });
    if (stopping_) return;
    orders_.empty() ? answer(lock) : make_plan(lock);
    on_made_();
  }
}

void PlanThread::make_plan(std::unique_lock<std::mutex>& lock) {
  const session::MakePlan order = std::move(orders_.front());
  orders_.pop_front();
  lock.unlock();
  MadePlan made{order.ticket, planner_(order.input)};
  lock.lock();
  made_.push_back(std::move(made));
}

void PlanThread::answer(std::unique_lock<std::mutex>& lock) {
  auto step = std::exchange(question_, nullptr);
  lock.unlock();
  std::optional<std::string> text = step();
  lock.lock();
  if (text)
    answer_ = std::move(text);
  else
    question_ = std::move(step);
}

void PlanThread::ask(std::function<std::optional<std::string>()> step) {
  {
    const std::lock_guard lock(mutex_);
    question_ = std::move(step);
  }
  begin();
}

std::optional<std::string> PlanThread::take_answer() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answer_, std::nullopt);
}

void PlanThread::begin() {
  changed_.notify_one();
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

}  // namespace gradplane::daemon
