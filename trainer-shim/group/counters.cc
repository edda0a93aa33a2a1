// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/counters.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <utility>

#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/left_behind.h"

namespace gradplane::shim {
namespace {

struct FallbackCause {
  std::mutex mutex;
  std::string text;        // cause of the last fallback
  bool announced = false;  // a fallback was announced, and no return since
};

// These are never freed, because threads may use them during static destruction.
Counters* own_counters = new Counters;
FallbackCause* fallback_cause = new FallbackCause;
std::atomic<bool> has_announced_exchange{false};
std::atomic<bool> has_announced_sums{false};

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

std::uint64_t total(const OperationCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

/// The members of an object: the name and the value of each counter that is not 0.
template <typename Counts, typename Name>
std::string json_members(const Counts& counts, const Name& name_of) {
  std::string out;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::uint64_t value = counts[i];
    if (value == 0) continue;
    if (!out.empty()) out += ", ";
    out += json_text(name_of(i)) + ": " + std::to_string(value);
  }
  return out;
}

template <typename Counts, typename Name>
std::string json_counts(const Counts& counts, const Name& name_of) {
  std::string out = "{";
  out += json_members(counts, name_of);
  return out + "}";
}

void write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".part";
  std::FILE* file = std::fopen(temporary.c_str(), "we");
  bool ok = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file) ok = std::fclose(file) == 0 && ok;
  if (ok && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  std::fprintf(stderr, "gradplane: the report %s cannot be written\n", path.c_str());
}

}  // namespace

std::string_view pass_reason_name(PassReason reason) {
  switch (reason) {
    case PassReason::kReduceOp:
      return "reduce_op";
    case PassReason::kTensorCount:
      return "tensor_count";
    case PassReason::kElementType:
      return "element_type";
    case PassReason::kLayout:
      return "layout";
    case PassReason::kDevice:
      return "device";
    case PassReason::kEmpty:
      return "empty";
    case PassReason::kOverlap:
      return "overlap";
    case PassReason::kArguments:
      return "arguments";
    case PassReason::kPeers:
      return "peers";
    case PassReason::kForked:
      return "forked";
    case PassReason::kOneRank:
      return "one_rank";
    case PassReason::kOperation:
      return "operation";
    case PassReason::kCount:
      break;
  }
  return "?";
}

std::string_view other_operation_name(OtherOperation operation) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(OtherOperation::kCount)> kNames =
      {"reduce", "gather", "scatter", "all_to_all", "send", "recv"};
  return kNames[static_cast<std::size_t>(operation)];
}

Counters& counters() {
  return *own_counters;
}

void forget_counters_after_fork() {
  leave_behind(std::exchange(own_counters, new Counters));
  leave_behind(std::exchange(fallback_cause, new FallbackCause));
  has_announced_exchange = false;
  has_announced_sums = false;
}

void count(OperationCounts& counts, Operation operation) {
  counts[static_cast<std::size_t>(operation) - 1].fetch_add(1);
}

void count_pass(Operation operation, PassReason reason) {
  count(counters().passed_ops, operation);
  counters().passed_through[static_cast<std::size_t>(reason)].fetch_add(1);
}

void count_pass(OtherOperation operation, PassReason reason) {
  counters().other_ops[static_cast<std::size_t>(operation)].fetch_add(1);
  counters().passed_through[static_cast<std::size_t>(reason)].fetch_add(1);
}

void announce_fallback(const std::string& cause, const char* framework) {
  {
    const std::lock_guard lock(fallback_cause->mutex);
    if (std::exchange(fallback_cause->announced, true)) return;
    fallback_cause->text = cause;
  }
  std::fprintf(stderr, "gradplane: %s; every collective goes through %s\n", cause.c_str(),
               framework);
}

void announce_return() {
  {
    const std::lock_guard lock(fallback_cause->mutex);
    if (!std::exchange(fallback_cause->announced, false)) return;
  }
  std::fprintf(stderr, "gradplane: all ranks are back; collectives are carried again\n");
}

void announce_loss(const std::string& cause, int rank, const char* framework) {
  std::fprintf(stderr,
               "gradplane: rank %d lost its session: %s; it cannot go on over %s either, and the "
               "error of its collective says only how that ended\n",
               rank, cause.c_str(), framework);
}

void announce_gloos_sums() {
  if (has_announced_sums.exchange(true)) return;
  std::fprintf(
      stderr,
      "gradplane: a reduce_scatter asks for another reduction than a sum, and Gloo of this PyTorch "
      "gives the sum (pytorch issue 162338); gradplane does the same, and gives what is asked for "
      "where GRADPLANE_HEED_REDUCE_OP=1 is set on all ranks\n");
}

void announce_exchange(const ExchangeTerms& terms) {
  if (has_announced_exchange.exchange(true)) return;
  const auto steps = [](std::uint32_t count) {
    return std::to_string(count) + (count == 1 ? " step" : " steps");
  };
  std::string mode = "selective-bsp";
  std::string older;
  if (terms.staleness > 0) {
    mode = "selective-ssp, staleness " + std::to_string(terms.staleness);
    older = "a result may hold older updates of other ranks, up to " + steps(terms.staleness) +
            ", and waits only for ranks that are further behind; ";
  }
  const std::string averages =
      terms.average_every == 0 ? "never" : "every " + steps(terms.average_every);
  std::fprintf(
      stderr,
      "gradplane: ranks exchange their gradients (training.mode: %s): each "
      "receives those of the share of ranks that the operator chose, so replicas differ by "
      "design; %sthe parameters are averaged exactly %s; see docs/selective.md\n",
      mode.c_str(), older.c_str(), averages.c_str());
}

void say_verbose(const std::string& line) {
  if (environment().verbose) std::fprintf(stderr, "gradplane: %s\n", line.c_str());
}

std::string counters_json() {
  const Counters& c = counters();
  const std::pair<const char*, std::uint64_t> numbers[] = {
      {"carried_ops", total(c.carried_ops)},
      {"carried_buckets", c.carried_buckets},
      {"carried_rounds", c.carried_rounds},
      {"carried_bytes", c.carried_bytes},
      {"partial_rounds", c.partial_rounds},
      {"partial_blocks", c.partial_blocks},
      {"early_rounds", c.early_rounds},
      {"early_blocks", c.early_blocks},
      {"fallbacks", c.fallbacks},
      {"fallen_back_ops", total(c.fallen_back_ops)},
      {"recovered_rounds", c.recovered_rounds},
      {"averages", c.averages},
      {"last_drift_ppm", c.last_drift_ppm},
      {"failed_ops", c.failed_ops},
      {"pending_ns", c.pending_ns},
      {"waited_ns", c.waited_ns}};
  std::string out = "{\"version\": 1, \"pid\": " + std::to_string(getpid());
  out += ", \"rank\": " + json_text(environment().rank);
  for (const auto& [name, value] : numbers) {
    out += ", " + json_text(name) + ": " + std::to_string(value);
  }
  const auto operation = [](std::size_t i) { return kOperationNames[i]; };
  const auto reason = [](std::size_t i) { return pass_reason_name(static_cast<PassReason>(i)); };
  out += ", \"carried\": " + json_counts(c.carried_ops, operation);
  out += ", \"fallen_back\": " + json_counts(c.fallen_back_ops, operation);
  const auto other = [](std::size_t i) {
    return other_operation_name(static_cast<OtherOperation>(i));
  };
  const std::string passed = json_members(c.passed_ops, operation);
  const std::string others = json_members(c.other_ops, other);
  const char* comma = passed.empty() || others.empty() ? "" : ", ";
  out += ", \"passed\": {" + passed + comma + others + "}";
  out += ", \"passed_through\": " + json_counts(c.passed_through, reason);
  const std::lock_guard lock(fallback_cause->mutex);
  return out + ", \"fallback_cause\": " + json_text(fallback_cause->text) + "}";
}

void write_report() {
  const std::string json = counters_json();
  say_verbose(json);
  if (!environment().report_path.empty()) write_file(environment().report_path, json + "\n");
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace gradplane::shim
