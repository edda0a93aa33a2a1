// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/groups.h"

#include <utility>

namespace gradplane::shim {
namespace {

/// A group that is destroyed finishes its operations, as Gloo's own queue does. Operations have
/// their own deadlines, so this limit matters only if the shim has a defect.
constexpr std::int64_t kDestroyLimitMs = 3600 * 1000;
/// How long a process that exits waits. It is short, because it does not wait for peers.
constexpr std::int64_t kExitLimitMs = 1000;

}  // namespace

void Groups::add(const void* group, GroupEntry entry) {
  const std::lock_guard lock(mutex_);
  groups_[group] = std::move(entry);
}

GroupEntry Groups::find(const void* group) {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(group);
  return found == groups_.end() ? GroupEntry{} : found->second;
}

void Groups::remove(const void* group) {
  GroupEntry entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = groups_.find(group);
    if (found == groups_.end()) return;
    entry = std::move(found->second);
    groups_.erase(found);
  }
  if (entry.session) entry.session->shut_down(kDestroyLimitMs);
}

void Groups::retire(const void* group) {
  std::vector<std::shared_ptr<GroupSession>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto& session : retired_) {
      if (session->has_ended()) ended.push_back(std::move(session));
    }
    std::erase(retired_, nullptr);
    const auto found = groups_.find(group);
    if (found != groups_.end() && found->second.session) {
      found->second.session->request_stop();
      retired_.push_back(std::move(found->second.session));
    }
    if (found != groups_.end()) groups_.erase(found);
  }
  for (const auto& session : ended) session->shut_down(0);
}

void Groups::end_all() {
  std::vector<std::shared_ptr<GroupSession>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(retired_);
    for (auto& [group, entry] : groups_) {
      if (entry.session) all.push_back(std::move(entry.session));
    }
    groups_.clear();
  }
  for (const auto& session : all) session->request_stop();  // all at once, then wait
  for (auto& session : all) {
    session->shut_down(kExitLimitMs, GroupSession::Leftovers::kKept);
    // Gloo's threads must not be joined at exit, because objects that they use may be gone.
    new std::shared_ptr<GroupSession>(std::move(session));
  }
}

void Groups::disown_all() {
  for (auto& session : retired_) {
    session->abandon();
    new std::shared_ptr<GroupSession>(std::move(session));
  }
  retired_.clear();
  for (auto& [group, entry] : groups_) {
    if (!entry.session) continue;
    entry.session->abandon();
    const bool required = entry.session->required();
    // Threads that this process does not have may hold its locks, so it is never freed.
    new std::shared_ptr<GroupSession>(std::move(entry.session));
    entry = {nullptr,
             "this process group was made before fork(), by the parent of this process; make a "
             "new one in the child",
             required, PassReason::kForked};
  }
}

Groups& groups() {
  static auto* instance = new Groups;  // never freed
  return *instance;
}

}  // namespace gradplane::shim
