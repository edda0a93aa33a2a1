// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/torch/process.h"

#include <pthread.h>

#include <cstdlib>

#include "trainer-shim/group/completer.h"
#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/groups.h"
#include "trainer-shim/torch/replacements.h"

namespace gradplane::shim {
namespace {

Originals original_functions;

/// In a child of fork(). It has one thread, and nothing of ours that another one may have locked or
/// waited for; groups that it makes itself are carried like any other.
void begin_anew_in_child() {
  groups().unlock_after_fork();
  groups().disown_all();
  forget_reducers_after_fork();
  forget_counters_after_fork();
  forget_completer_after_fork();
  forget_environment_after_fork();
  forget_groups_after_fork();
}

void at_exit() {
  if (!has_made_groups()) return;
  groups().end_all();
  write_report();
}

}  // namespace

const Originals& originals() {
  return original_functions;
}

void begin_process(const Originals& functions) {
  original_functions = functions;
  pthread_atfork([] { groups().lock_for_fork(); }, [] { groups().unlock_after_fork(); },
                 begin_anew_in_child);
  std::atexit(at_exit);
}

}  // namespace gradplane::shim
