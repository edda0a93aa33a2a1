// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "trainer-shim/group/copy_crew.h"
#include "trainer-shim/group/left_behind.h"

namespace gradplane::shim {
namespace {

constexpr std::uint32_t kMaxAttachTimeoutMs = 600000;
/// The largest uid. UINT32_MAX means no user.
constexpr std::uint32_t kMaxUid = UINT32_MAX - 1;
constexpr std::string_view kPrefix = "GRADPLANE_";
/// The prefix of variables of tests, which the shim ignores.
constexpr std::string_view kTestPrefix = "GRADPLANE_TEST_";
constexpr std::array<std::string_view, 15> kKnown = {
    "GRADPLANE_ADAPTER_DIR",    "GRADPLANE_ATTACH_TIMEOUT_MS",
    "GRADPLANE_COPY_THREADS",   "GRADPLANE_DAEMON_UID",
    "GRADPLANE_DISABLE",        "GRADPLANE_GRADIENTS",
    "GRADPLANE_HEED_REDUCE_OP", "GRADPLANE_JOB",
    "GRADPLANE_LIB_DIR",        "GRADPLANE_MPI_GRADIENTS",
    "GRADPLANE_REPORT",         "GRADPLANE_REQUIRE",
    "GRADPLANE_RUN_ID",         "GRADPLANE_SOCKET",
    "GRADPLANE_VERBOSE"};
constexpr std::size_t kMaxGradientsBytes = 64;

std::string text_of(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// The rank that the launcher of PyTorch, Open MPI, MPICH, PMIx or Slurm has set; empty if none.
std::string rank_of_launcher() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (std::string rank = text_of(name); !rank.empty()) return rank;
  }
  // A single task of Slurm may be a shell, whose children would all be rank 0.
  const std::string tasks = text_of("SLURM_NTASKS");
  return tasks.empty() || tasks == "1" ? "" : text_of("SLURM_PROCID");
}

bool is_on(const char* name) {
  const std::string value = text_of(name);
  return !value.empty() && value != "0";
}

bool parse_number(const std::string& text, std::uint32_t most, std::uint32_t& out) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (value > most) return false;
  out = value;
  return true;
}

/// Other than parse_number(), it does not take 0.
bool parse_count(const std::string& text, std::uint32_t most, std::uint32_t& out) {
  std::uint32_t value = 0;
  if (!parse_number(text, most, value) || value == 0) return false;
  out = value;
  return true;
}

bool parse_timeout(const std::string& text, std::uint32_t& out) {
  return parse_count(text, kMaxAttachTimeoutMs, out);
}

void replace_all(std::string& text, std::string_view from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// The name of the script if there is one among the first arguments, else of the program.
std::string process_label() {
  std::array<char, 4096> bytes{};
  std::FILE* file = std::fopen("/proc/self/cmdline", "re");
  if (!file) return "";
  const std::size_t size = std::fread(bytes.data(), 1, bytes.size() - 1, file);
  std::fclose(file);
  std::string_view rest(bytes.data(), size);
  std::string_view label;
  while (!rest.empty()) {
    const auto argument = rest.substr(0, rest.find('\0'));
    const auto base = argument.substr(argument.rfind('/') + 1);
    if (label.empty() || base.ends_with(".py")) label = base;
    if (base.ends_with(".py")) break;
    rest.remove_prefix(std::min(rest.size(), argument.size() + 1));
  }
  return std::string(label.substr(0, 64));
}

Environment read() {
  Environment e;
  if (const auto socket = text_of("GRADPLANE_SOCKET"); !socket.empty()) e.socket_path = socket;
  e.run_id = text_of("GRADPLANE_RUN_ID");
  e.rank = rank_of_launcher();
  e.report_path = text_of("GRADPLANE_REPORT");
  replace_all(e.report_path, "%p", std::to_string(getpid()));
  replace_all(e.report_path, "%r", e.rank);
  e.label = text_of("GRADPLANE_JOB");
  if (e.label.empty()) e.label = process_label();
  parse_timeout(text_of("GRADPLANE_ATTACH_TIMEOUT_MS"), e.attach_timeout_ms);
  parse_number(text_of("GRADPLANE_DAEMON_UID"), kMaxUid, e.daemon_uid);
  parse_count(text_of("GRADPLANE_COPY_THREADS"), kMaxCopyThreads, e.copy_threads);
  e.require = is_on("GRADPLANE_REQUIRE");
  e.verbose = is_on("GRADPLANE_VERBOSE");
  e.heeds_reduce_op = is_on("GRADPLANE_HEED_REDUCE_OP");
  if (is_on("GRADPLANE_GRADIENTS")) e.gradients = text_of("GRADPLANE_GRADIENTS");
  e.gradients.resize(std::min(e.gradients.size(), kMaxGradientsBytes));
  e.mpi_sums_are_gradients = is_on("GRADPLANE_MPI_GRADIENTS");
  return e;
}

std::atomic<const Environment*> current_environment{nullptr};  // never freed

}  // namespace

const Environment& environment() {
  const Environment* known = current_environment;
  if (known) return *known;
  const auto* fresh = new Environment(read());
  if (current_environment.compare_exchange_strong(known, fresh)) return *fresh;
  delete fresh;  // another thread came first
  return *known;
}

std::span<const std::string_view> known_variables() {
  return kKnown;
}

std::uint64_t shared_settings(const Environment& e) {
  std::string all = e.gradients;
  all.push_back(e.heeds_reduce_op ? '1' : '0');
  all.push_back(e.mpi_sums_are_gradients ? '1' : '0');
  return std::hash<std::string_view>{}(all);
}

void forget_environment_after_fork() {
  leave_behind(current_environment.exchange(nullptr));
}

void warn_of_strange_variables() {
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view variable(*entry);
    const auto name = variable.substr(0, variable.find('='));
    if (!name.starts_with(kPrefix) || name.starts_with(kTestPrefix)) continue;
    if (std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) continue;
    std::fprintf(stderr,
                 "gradplane: the variable %.*s means nothing to gradplane; is it misspelt?\n",
                 static_cast<int>(name.size()), name.data());
  }
  const std::string timeout = text_of("GRADPLANE_ATTACH_TIMEOUT_MS");
  std::uint32_t ignored = 0;
  if (!timeout.empty() && !parse_timeout(timeout, ignored)) {
    std::fprintf(stderr,
                 "gradplane: GRADPLANE_ATTACH_TIMEOUT_MS is \"%s\"; expected 1 to %u; %u is used\n",
                 timeout.c_str(), kMaxAttachTimeoutMs, environment().attach_timeout_ms);
  }
  const std::string threads = text_of("GRADPLANE_COPY_THREADS");
  if (!threads.empty() && !parse_count(threads, kMaxCopyThreads, ignored)) {
    std::fprintf(stderr,
                 "gradplane: GRADPLANE_COPY_THREADS is \"%s\"; expected 1 to %u; %u is used\n",
                 threads.c_str(), kMaxCopyThreads, environment().copy_threads);
  }
  if (text_of("GRADPLANE_GRADIENTS").size() > kMaxGradientsBytes) {
    std::fprintf(stderr, "gradplane: GRADPLANE_GRADIENTS has more than %zu bytes; \"%s\" is used\n",
                 kMaxGradientsBytes, environment().gradients.c_str());
  }
  const std::string uid = text_of("GRADPLANE_DAEMON_UID");
  if (!uid.empty() && !parse_number(uid, kMaxUid, ignored)) {
    std::fprintf(stderr,
                 "gradplane: GRADPLANE_DAEMON_UID is \"%s\"; expected the number of a user; no "
                 "other daemon than root's and this user's is trusted\n",
                 uid.c_str());
  }
}

}  // namespace gradplane::shim
