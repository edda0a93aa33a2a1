// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/group_session.h"

namespace gradplane::shim {

/// What the shim knows of one process group of the trainer.
struct GroupEntry {
  std::shared_ptr<GroupSession> session;   // empty: this group is never carried
  std::string refusal;                     // why it is never carried
  bool required = false;                   // if never carried, its collectives must fail
  PassReason reason = PassReason::kPeers;  // if they need not fail: why they are passed through
};

/// The process groups of this process, by the address of the framework's object. Any thread.
class Groups {
 public:
  void add(const void* group, GroupEntry entry);
  GroupEntry find(const void* group);

  /// Removes a group and ends its session.
  void remove(const void* group);

  /// Removes a group. Its session ends when its operations have ended; nothing waits for that
  /// before end_all(). For frameworks in which the end of a group waits for no other rank.
  void retire(const void* group);

  /// Ends all sessions at exit, with a short limit.
  void end_all();

  /// The lock is held during fork(), so that the child finds the table consistent.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

  /// In the child after fork(): forgets the sessions with the daemon. Groups of the parent then
  /// behave as without gradplane. Where gradplane is required, their collectives fail.
  void disown_all();

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, GroupEntry> groups_;
  std::vector<std::shared_ptr<GroupSession>> retired_;
};

Groups& groups();

}  // namespace gradplane::shim
