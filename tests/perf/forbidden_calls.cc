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
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

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

#if defined(__x86_64__)
/// Counts one system call. The return of a signal handler is a call, too, so later ones are made
/// and not counted until resume_count().
void on_system_call(int, siginfo_t*, void* context) {
  dispatch = kMakeCalls;
  const int before = errno;
  system_calls.fetch_add(1, std::memory_order_relaxed);
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const long result =
      syscall(registers[REG_RAX], registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
              registers[REG_R10], registers[REG_R8], registers[REG_R9]);
  registers[REG_RAX] = result == -1 ? -errno : result;
  errno = before;
}

/// Whether the clock is read without a system call. It is not if the kernel has no fast time
/// source.
bool reads_clock_by_itself() {
  timespec t{};
  system_calls = 0;
  dispatch = kRaiseSignals;
  clock_gettime(CLOCK_MONOTONIC, &t);
  dispatch = kMakeCalls;
  return system_calls == 0;
}
#endif

bool dispatch_system_calls() {
#if defined(__x86_64__)
  struct sigaction action = {};
  action.sa_sigaction = on_system_call;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(SIGSYS, &action, nullptr) != 0) return false;
  return prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &dispatch) == 0 && reads_clock_by_itself();
#else
  return false;
#endif
}

bool counts_system_calls = false;
pthread_mutex_t tried_mutex = PTHREAD_MUTEX_INITIALIZER;

/// A function of libc that locks a `Lock`, counted.
template <typename Lock>
class CountedLock {
 public:
  explicit constexpr CountedLock(const char* name) : name_(name) {}
  int operator()(Lock* lock) {
    note(locks);
    Function function = function_.load(std::memory_order_relaxed);
    if (function == nullptr)
      function_ = function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name_));
    return function(lock);
  }

 private:
  using Function = int (*)(Lock*);
  const char* name_;
  std::atomic<Function> function_{nullptr};
};
constinit CountedLock<pthread_mutex_t> mutex_lock("pthread_mutex_lock");
constinit CountedLock<pthread_mutex_t> mutex_trylock("pthread_mutex_trylock");
constinit CountedLock<pthread_rwlock_t> rwlock_rdlock("pthread_rwlock_rdlock");
constinit CountedLock<pthread_rwlock_t> rwlock_wrlock("pthread_rwlock_wrlock");

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
  return mutex_lock(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  return mutex_trylock(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  return rwlock_rdlock(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  return rwlock_wrlock(lock);
}
}

namespace gradplane::testing {

void count_forbidden_calls() {
  counts_system_calls = dispatch_system_calls();
  allocations = locks = system_calls = 0;
  armed = true;
  dispatch = counts_system_calls ? kRaiseSignals : kMakeCalls;
}

void pause_count() {
  dispatch = kMakeCalls;
  armed = false;
}

void resume_count() {
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
    std::printf(
        "system calls not counted: they are on x86-64 only, on a kernel with Syscall User Dispatch "
        "(Linux 5.11) that reads the clock without a call\n");
  if (!counters_work) std::printf("a counter did not see the call that tried it\n");
  return counters_work && made[0] + made[1] + made[2] == 0;
}

}  // namespace gradplane::testing
