// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/lent_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace gradplane::daemon {
namespace {

std::span<const std::byte> whole_pages(std::span<const std::byte> memory) {
  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return {memory.data(), (memory.size() + page_bytes - 1) / page_bytes * page_bytes};
}

}  // namespace

LentMemory::~LentMemory() {
  for (const Kept& kept : kept_) kept.let_go();
}

void LentMemory::add(std::span<const std::byte> memory) {
  const std::lock_guard lock(mutex_);
  const Status added = port_.add_memory(whole_pages(memory));
  if (added) return;
  refused_.push_back(whole_pages(memory));
  if (has_warned_) return;
  has_warned_ = true;
  warning_ = fmt::format(
      "port: payloads are copied into packet buffers, because {} (said once; it only costs time)",
      added.error().message);
}

void LentMemory::remove(std::span<const std::byte> memory, std::function<void()> let_go) {
  {
    const std::lock_guard lock(mutex_);
    const std::size_t refused = std::erase_if(
        refused_, [&](std::span<const std::byte> r) { return r.data() == memory.data(); });
    if (!port_.remove_memory(whole_pages(memory))) {
      kept_.push_back({whole_pages(memory), std::move(let_go)});
      return;
    }
    has_room_ = has_room_ || refused == 0;
  }
  let_go();
}

void LentMemory::retry() {
  std::list<Kept> free;
  {
    const std::lock_guard lock(mutex_);
    for (auto kept = kept_.begin(); kept != kept_.end();) {
      const auto next = std::next(kept);
      if (port_.remove_memory(kept->memory)) free.splice(free.end(), kept_, kept);
      kept = next;
    }
    has_room_ = has_room_ || !free.empty();
    if (has_room_) offer_refused();
    has_room_ = false;
  }
  for (const Kept& kept : free) kept.let_go();
}

/// The mutex is locked.
void LentMemory::offer_refused() {
  while (!refused_.empty() && port_.add_memory(refused_.front())) refused_.pop_front();
}

std::optional<std::string> LentMemory::take_warning() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warning_, std::nullopt);
}

std::size_t LentMemory::kept_count() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

}  // namespace gradplane::daemon
