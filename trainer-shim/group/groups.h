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
  std::string refusal;                     // why not
  bool required = false;                   // then its collectives must fail, and not go to Gloo
  PassReason reason = PassReason::kPeers;  // under which its collectives are counted otherwise
};

/// The process groups of this process, by the address of the framework's object. Any thread.
class Groups {
 public:
  void add(const void* group, GroupEntry entry);
  GroupEntry find(const void* group);

  /// Takes the group out and ends its session.
  void remove(const void* group);

  /// Takes the group out. Its session ends when all that it has to do is done; nobody waits for it
  /// before end_all(). For frameworks in which the end of a group waits for no other rank.
  void retire(const void* group);

  /// At exit: ends all sessions, soon.
  void end_all();

  /// Around fork(), so that the child finds the table whole.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

  /// In the child after fork(): forgets the sessions with the daemon. The groups then behave in the
  /// child as without gradplane, and have no threads. Where gradplane is required, their
  /// collectives fail.
  void disown_all();

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, GroupEntry> groups_;
  std::vector<std::shared_ptr<GroupSession>> retired_;
};

Groups& groups();

}  // namespace gradplane::shim
