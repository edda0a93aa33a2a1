// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/eal.h"

#include <dlfcn.h>
#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace gradplane::port {
namespace {

constexpr std::size_t kMaxLogTailBytes = 2048;
constexpr std::uint64_t kSoonestAlarmUs = 1;
/// Handlers of drivers are short; one that takes so long hangs.
constexpr std::chrono::seconds kInterruptThreadWithin{5};

// Holds the end of DPDK's log, which would otherwise go to the terminal. The size is bounded: the
// oldest bytes are dropped.
class LogTail {
 public:
  void append(const char* text, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    tail_.append(text, bytes);
    if (tail_.size() > kMaxLogTailBytes) tail_.erase(0, tail_.size() - kMaxLogTailBytes);
  }
  std::string take() {
    const std::lock_guard lock(mutex_);
    std::string text = std::exchange(tail_, {});
    while (!text.empty() && text.back() == '\n') text.pop_back();
    std::replace(text.begin(), text.end(), '\n', '|');
    return text;
  }

 private:
  std::mutex mutex_;
  std::string tail_;
};

// It is never destroyed, because DPDK's own threads may log until the process ends.
LogTail& log_tail() {
  static LogTail& tail = *new LogTail;
  return tail;
}

ssize_t write_log(void*, const char* text, std::size_t bytes) {
  log_tail().append(text, bytes);
  return static_cast<ssize_t>(bytes);
}

int write_bpf_log(int level, const char* format, va_list arguments) {
  constexpr int kWarning = 0;
  if (level > kWarning) return 0;
  std::array<char, 512> line;
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  if (length > 0) log_tail().append(line.data(), std::strlen(line.data()));
  return 0;
}

void capture_log() {
  FILE* stream = fopencookie(
      nullptr, "w", {.read = nullptr, .write = write_log, .seek = nullptr, .close = nullptr});
  if (stream == nullptr) return;
  setvbuf(stream, nullptr, _IOLBF, 0);
  rte_openlog_stream(stream);
}

// The CPUs on which the process may run, as a list for --lcores.
std::string allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return "0";
  std::string list;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    if (!list.empty()) list += ',';
    list += std::to_string(cpu);
  }
  return list;
}

std::size_t free_huge_mb() {
  std::size_t kilobytes = 0;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", ignored)) {
    const std::string name = entry.path().filename();  // hugepages-2048kB
    const std::size_t page_kb = std::strtoul(name.c_str() + name.find('-') + 1, nullptr, 10);
    std::size_t free_count = 0;
    std::ifstream(entry.path() / "free_hugepages") >> free_count;
    kilobytes += page_kb * free_count;
  }
  return kilobytes / 1024;
}

Result<bool> decide_huge_pages(const EalOptions& o) {
  if (o.huge_pages == HugePages::kNever) return false;
  const std::size_t free_mb = free_huge_mb();
  if (free_mb >= o.memory_mb) return true;
  if (o.huge_pages == HugePages::kAuto) return false;
  return Error{"dpdk: huge pages are required, " + std::to_string(o.memory_mb) +
               " MiB are needed and " + std::to_string(free_mb) +
               " MiB are free; reserve them, as with: sysctl vm.nr_hugepages=" +
               std::to_string((o.memory_mb + 1) / 2) + " (pages of 2 MiB), or do not require them"};
}

std::vector<std::string> eal_arguments(const EalOptions& o, bool huge) {
  // All processes have the same prefix. Nothing is shared under it, and no empty folders accumulate
  // in /run/dpdk.
  std::vector<std::string> args = {"gradplane", "--no-telemetry", "--file-prefix",
                                   "gradplane", "--lcores",       "(0)@(" + allowed_cpus() + ")"};
  if (o.pci_address.empty()) {
    args.insert(args.end(), {"--no-pci", "--iova-mode", "va"});
  } else {
    args.insert(args.end(), {"-a", o.pci_address});
  }
  // Without huge pages DPDK uses its legacy memory, which does not support --in-memory. --no-shconf
  // has the part of it that matters: no file is shared with other processes.
  if (huge) {
    args.push_back("--in-memory");
  } else {
    args.insert(args.end(), {"--no-shconf", "--no-huge", "-m", std::to_string(o.memory_mb)});
  }
  return args;
}

Status start(const EalOptions& o) {
  const Result<bool> huge = decide_huge_pages(o);
  if (!huge) return huge.error();
  std::vector<std::string> args = eal_arguments(o, huge.value());
  std::vector<char*> argv;
  for (std::string& a : args) argv.push_back(a.data());
  argv.push_back(nullptr);
  capture_log();
  if (rte_eal_init(static_cast<int>(args.size()), argv.data()) >= 0) return Nothing{};
  std::string message =
      "dpdk: the EAL did not start: " + std::string(rte_strerror(rte_errno)) + "; it was given";
  for (std::size_t i = 1; i < args.size(); ++i) message += " " + args[i];
  message += "; it logged: " + take_eal_log();
  if (rte_errno == EACCES || rte_errno == EPERM || geteuid() != 0) {
    message += "; run as root, or give the program cap_net_raw, cap_net_admin and cap_ipc_lock";
  }
  return Error{message};
}

// Unregisters its thread when the thread ends, so that threads that come and go do not use up lcore
// numbers.
struct ThreadRegistration {
  ThreadRegistration() {
    registered = rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0;
  }
  ~ThreadRegistration() {
    if (registered) rte_thread_unregister();
  }
  bool registered = false;
};

}  // namespace

Status start_eal(const EalOptions& options) {
  static std::mutex mutex;
  static std::optional<Status> first;
  const std::lock_guard lock(mutex);
  if (!first) first = start(options);
  return *first;
}

std::string take_eal_log() {
  return log_tail().take();
}

std::string because(int error) {
  std::string text = rte_strerror(error < 0 ? -error : error);
  const std::string log = take_eal_log();
  return log.empty() ? text : text + "; DPDK logged: " + log;
}

bool run_on_interrupt_thread(std::function<void()> work) {
  using Task = std::packaged_task<void()>;
  auto task = std::make_unique<Task>(std::move(work));
  const std::future<void> ended = task->get_future();
  const auto run = [](void* argument) {
    const std::unique_ptr<Task> mine(static_cast<Task*>(argument));
    (*mine)();
  };
  if (rte_eal_alarm_set(kSoonestAlarmUs, run, task.get()) != 0) return false;
  (void)task.release();  // the alarm has it
  return ended.wait_for(kInterruptThreadWithin) == std::future_status::ready;
}

// DPDK's af_xdp driver loads these libraries; we do not link them. Their print functions have this
// signature, with an enumeration for the level.
void capture_bpf_log() {
  using SetPrinter = void* (*)(int (*)(int, const char*, va_list));
  constexpr std::array kPrinters = {std::pair{"libbpf.so.1", "libbpf_set_print"},
                                    std::pair{"libxdp.so.1", "libxdp_set_print"}};
  for (const auto& [library, function] : kPrinters) {
    void* handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
    if (handle == nullptr) continue;
    if (auto set = reinterpret_cast<SetPrinter>(dlsym(handle, function))) set(write_bpf_log);
    dlclose(handle);
  }
}

void attach_poll_thread() noexcept {
  static thread_local ThreadRegistration registration;
  (void)registration;
}

}  // namespace gradplane::port
