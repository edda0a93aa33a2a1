// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <pthread.h>
#include <signal.h>

namespace gradplane::shim {

/// Each thread of the shim calls this first. It sets a name for `top -H`, and blocks all signals,
/// because they are the trainer's.
inline void name_thread(const char* name) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  pthread_setname_np(pthread_self(), name);
}

}  // namespace gradplane::shim
