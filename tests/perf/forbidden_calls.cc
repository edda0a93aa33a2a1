// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/perf/forbidden_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

namespace {

std::atomic<bool> armed{false};
std::atomic<std::uint64_t> allocations{0};
std::atomic<std::uint64_t> locks{0};
std::atomic<std::uint64_t> system_calls{0};

void note(std::atomic<std::uint64_t>& count) {
  if (armed.load(std::memory_order_relaxed)) count.fetch_add(1, std::memory_order_relaxed);
}

// The kernel looks at this byte before each system call of the thread (Syscall User Dispatch). If
// it is 1, it raises SIGSYS instead of making the call.
constexpr char kMakeCalls = 0;
constexpr char kRaiseSignals = 1;
volatile char dispatch = kMakeCalls;

/// Counts one system call. The return of a signal handler is a call, too, so later ones are made
/// and not counted: the count is 0 or 1.
void on_system_call(int, siginfo_t*, void* context) {
  dispatch = kMakeCalls;
  system_calls.fetch_add(1, std::memory_order_relaxed);
#if defined(__x86_64__)
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  registers[REG_RAX] =
      syscall(registers[REG_RAX], registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
              registers[REG_R10], registers[REG_R8], registers[REG_R9]);
#else
  (void)context;
#endif
}

bool dispatch_system_calls() {
#if defined(__x86_64__)
  struct sigaction action = {};
  action.sa_sigaction = on_system_call;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(SIGSYS, &action, nullptr) != 0) return false;
  return prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &dispatch) == 0;
#else
  return false;
#endif
}

bool counts_system_calls = false;
pthread_mutex_t tried_mutex = PTHREAD_MUTEX_INITIALIZER;

using LockMutex = int (*)(pthread_mutex_t*);
LockMutex libc_lock() {
  return reinterpret_cast<LockMutex>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
}
std::atomic<LockMutex> lock_of_libc{nullptr};

}  // namespace

// operator new calls malloc, so it is enough to replace glibc's functions.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t bytes) {
  note(allocations);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  note(allocations);
  return __libc_calloc(count, bytes);
}
void* realloc(void* at, std::size_t bytes) {
  note(allocations);
  return __libc_realloc(at, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note(allocations);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  note(allocations);
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? 12 : 0;  // ENOMEM
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  note(locks);
  LockMutex lock = lock_of_libc.load(std::memory_order_relaxed);
  if (lock == nullptr) lock_of_libc = lock = libc_lock();
  return lock(mutex);
}
}

namespace gradplane::testing {

void count_forbidden_calls() {
  counts_system_calls = dispatch_system_calls();
  allocations = locks = system_calls = 0;
  armed = true;
  dispatch = counts_system_calls ? kRaiseSignals : kMakeCalls;
}

bool no_forbidden_calls() {
  dispatch = kMakeCalls;
  const std::uint64_t made[] = {allocations, locks, system_calls};
  std::free(std::malloc(1));
  pthread_mutex_lock(&tried_mutex);
  pthread_mutex_unlock(&tried_mutex);
  const long process = getpid();
  dispatch = counts_system_calls ? kRaiseSignals : kMakeCalls;
  const long answered = syscall(SYS_getpid);
  dispatch = kMakeCalls;
  armed = false;
  const std::uint64_t tried = counts_system_calls ? 1 : 0;
  const bool counters_work = allocations == made[0] + 1 && locks == made[1] + 1 &&
                             system_calls == made[2] + tried && answered == process;
  std::printf("%llu allocations, %llu locks, ", static_cast<unsigned long long>(made[0]),
              static_cast<unsigned long long>(made[1]));
  if (counts_system_calls)
    std::printf("%s\n", made[2] == 0 ? "no system call" : "at least one system call");
  else
    std::printf("system calls not counted, because this kernel has no Syscall User Dispatch\n");
  if (!counters_work) std::printf("a counter did not see the call that tried it\n");
  return counters_work && made[0] + made[1] + made[2] == 0;
}

}  // namespace gradplane::testing
