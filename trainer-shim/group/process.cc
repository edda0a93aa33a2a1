// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/process.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

#include "trainer-shim/group/completer.h"
#include "trainer-shim/group/copy_crew.h"
#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/groups.h"

namespace gradplane::shim {
namespace {

std::atomic<bool> has_used{false};
void (*forget_of_adapter)() = nullptr;

/// Runs in a child of fork(), which has one thread. It replaces all objects that another thread may
/// have locked. Groups that the child makes itself are carried like any other.
void begin_anew_in_child() {
  groups().unlock_after_fork();
  groups().disown_all();
  if (forget_of_adapter != nullptr) forget_of_adapter();
  forget_counters_after_fork();
  forget_completer_after_fork();
  forget_copy_crew_after_fork();
  forget_environment_after_fork();
  has_used = false;
}

void at_exit() {
  if (!has_used) return;
  groups().end_all();
  write_report();
}

}  // namespace

void begin_process(Reports reports, void (*in_child)()) {
  has_used = reports == Reports::kAlways;
  forget_of_adapter = in_child;
  pthread_atfork([] { groups().lock_for_fork(); }, [] { groups().unlock_after_fork(); },
                 begin_anew_in_child);
  std::atexit(at_exit);
}

void note_use() {
  has_used = true;
}

}  // namespace gradplane::shim
