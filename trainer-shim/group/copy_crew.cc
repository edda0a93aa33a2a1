// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/copy_crew.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/left_behind.h"
#include "trainer-shim/group/stream_copy.h"
#include "trainer-shim/group/threads.h"

namespace gradplane::shim {
namespace {

void copy_alone(std::byte* to, const std::byte* from, std::size_t bytes, CopyKind kind) {
  if (bytes == 0) return;  // an empty tensor may have no address
  if (kind == CopyKind::kPastCaches) return stream_copy(to, from, bytes);
  std::memcpy(to, from, bytes);
}

std::atomic<CopyCrew*> crew{nullptr};  // never freed: its threads outlive static destruction

}  // namespace

CopyCrew::~CopyCrew() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void CopyCrew::copy(std::byte* to, const std::byte* from, std::size_t bytes, CopyKind kind) {
  std::unique_lock busy(busy_, std::defer_lock);
  if (helper_count_ == 0 || bytes < kSharedCopyBytes || !busy.try_lock())
    return copy_alone(to, from, bytes, kind);
  const Task task{to, from, bytes, kind};
  {
    const std::lock_guard lock(mutex_);
    if (!are_started_) start_helpers();
    next_piece_ = 0;
    task_ = task;
  }
  // One piece is left for the caller.
  const std::size_t pieces = (bytes + kCopyPieceBytes - 1) / kCopyPieceBytes;
  for (std::size_t i = 1; i < std::min<std::size_t>(pieces, helper_count_ + 1); ++i)
    wanted_.notify_one();
  copy_pieces(task);
  std::unique_lock lock(mutex_);
  task_.reset();
  done_.wait(lock, [this] { return copying_count_ == 0; });
}

/// Fewer threads than wished are no error: the caller copies what is left. Call it under mutex_.
void CopyCrew::start_helpers() {
  are_started_ = true;
  try {
    while (helpers_.size() < helper_count_) helpers_.emplace_back([this] { help(); });
  } catch (const std::exception&) {  // no more threads, or no memory
  }
}

void CopyCrew::help() {
  name_thread("gp-copy");
  std::unique_lock lock(mutex_);
  for (;;) {
    wanted_.wait(lock, [this] { return stopping_ || task_; });
    if (stopping_) return;
    const Task task = *task_;
    ++copying_count_;
    lock.unlock();
    helped_ += copy_pieces(task);
    lock.lock();
    // Whoever finds no piece left may stop others from joining in vain.
    task_.reset();
    if (--copying_count_ == 0) done_.notify_one();
  }
}

/// Copies pieces until none is left. Returns how many.
std::size_t CopyCrew::copy_pieces(const Task& task) {
  std::size_t count = 0;
  for (;; ++count) {
    const std::size_t at = next_piece_.fetch_add(1) * kCopyPieceBytes;
    if (at >= task.bytes) return count;
    const std::size_t bytes = std::min(kCopyPieceBytes, task.bytes - at);
    copy_alone(task.to + at, task.from + at, bytes, task.kind);
  }
}

CopyCrew& copy_crew() {
  CopyCrew* known = crew;
  if (known) return *known;
  auto* const fresh = new CopyCrew(environment().copy_threads);
  if (crew.compare_exchange_strong(known, fresh)) return *fresh;
  delete fresh;  // another thread came first
  return *known;
}

void forget_copy_crew_after_fork() {
  leave_behind(crew.exchange(nullptr));
}

}  // namespace gradplane::shim
