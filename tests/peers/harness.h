// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// What all ranks of a measured peer share: commands, answers, the data and their check.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace gradplane::peers {

/// Commands beyond these limits are refused. An answer has every iteration in one line.
inline constexpr std::uint64_t kMaxRoundBytes = std::uint64_t{1} << 30;
inline constexpr std::uint32_t kMaxIterations = 1000;
inline constexpr std::uint32_t kMaxBucketsOfTraining = 64;
inline constexpr std::uint64_t kMaxComputeNs = 10'000'000'000;

/// The kind of a round, from "op" in its command.
enum class RoundKind : std::uint8_t {
  kAllReduce,  // also if there is no "op"
  kPush,       // an incast without results
  kBroadcast,  // of rank 0's data
  kExchange,   // of updates, with the receivers of a "selection"
};

/// One round: `{"do":"round","seed":S,"bytes":B,"at_ns":T}`.
struct Round {
  std::uint64_t seed = 0;
  std::uint64_t bytes = 0;
  std::uint64_t at_ns = 0;  // CLOCK_MONOTONIC
  RoundKind kind = RoundKind::kAllReduce;
  std::uint32_t selection = 0;  // of an exchange
  bool spoil = false;           // for tests: changes one element of the result before the check
};

/// Iterations of an all-reduce and a computation, which is a wait: `{"do":"train","seed":S,
/// "bytes":B,"at_ns":T,"iterations":I,"compute_ns":C,"jitter":J,"buckets":N}`. The first all-reduce
/// begins at T.
struct Training {
  std::uint64_t seed = 0;   // of the jitter; iteration i has the data of a round with seed + i
  std::uint64_t bytes = 0;  // of all buckets together
  std::uint64_t at_ns = 0;  // CLOCK_MONOTONIC
  std::uint32_t iterations = 0;
  std::uint64_t compute_ns = 0;
  /// Standard deviation of the computing time, relative to it. All ranks draw the same times.
  double jitter = 0;
  // Buckets that are submitted together; peers without buckets send one message.
  std::uint32_t buckets = 1;
};

using Command = std::variant<Round, Training>;

/// Reads a command from each line of JSON, and writes an answer as one line.
class Harness {
 public:
  /// Opens the FIFOs at these paths; empty: stdin and stdout. Throws std::runtime_error.
  Harness(const std::string& commands_path, const std::string& answers_path);

  /// Blocks until the next command. Returns nothing at `{"do":"end"}` or at the end of the input.
  /// Throws std::runtime_error if a line is not a command.
  std::optional<Command> next();
  void answer(const nlohmann::json& object);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  File commands_file_;
  File answers_file_;
  std::FILE* commands_;
  std::FILE* answers_;
};

/// Throws std::runtime_error if the round is of another kind.
void expect_kind(const Round& round, std::initializer_list<RoundKind> kinds);

/// Carries out commands. Both functions throw std::runtime_error.
class Participant {
 public:
  virtual ~Participant() = default;
  virtual nlohmann::json run_round(const Round& round) = 0;
  /// The default refuses trainings.
  virtual nlohmann::json train(const Training& training);
};

/// Makes the participant, answers that it is ready, and carries out commands until they end. Errors
/// become answers. Returns the program's exit code. `rank` is a number, or "server".
int follow(Harness& harness, const nlohmann::json& rank,
           const std::function<std::unique_ptr<Participant>()>& make);

/// The parts of an iteration's all-reduce. All may throw.
struct Reduction {
  std::function<void(std::uint64_t seed)> prepare;
  std::function<void()> reduce;
  std::function<bool(std::uint64_t seed)> is_right;
};

/// The computing time of each iteration.
std::vector<std::uint64_t> draw_compute_ns(const Training& training);

/// Runs a training. The answer has "start_ns" and "end_ns" of every all-reduce. Data are prepared
/// and checked during the computation, so an all-reduce may begin late: "late_ns" has the largest
/// delay.
nlohmann::json run_training(const nlohmann::json& rank, const Training& training,
                            const Reduction& reduction);

std::uint64_t now_ns();

/// When a round began and ended, and the CPU time that the process used before and after: preparing
/// and checking the data are not measured.
class RoundClock {
 public:
  RoundClock();
  /// Sleeps until shortly before this time, then spins.
  void start(std::uint64_t at_ns);
  void end();
  std::uint64_t start_ns() const { return start_ns_; }
  std::uint64_t end_ns() const { return end_ns_; }
  /// CPU time of the process since the constructor, without the time from start() to end().
  std::uint64_t other_cpu_ns() const;

 private:
  std::uint64_t first_cpu_ns_;
  std::uint64_t start_cpu_ns_ = 0;
  std::uint64_t end_cpu_ns_ = 0;
  std::uint64_t start_ns_ = 0;
  std::uint64_t end_ns_ = 0;
};

/// The fields that all ranks' answers have. `rank` is a number, or "server".
nlohmann::json round_answer(const nlohmann::json& rank, const RoundClock& clock, bool is_correct,
                            std::span<const float> result);

/// Small integers, so that a sum is the same in any order.
void fill(std::span<float> data, std::uint64_t seed, std::uint32_t rank);
/// Whether every element is the sum of what `world` ranks fill in, or differs from it by at most
/// this share of the largest possible sum.
bool is_sum(std::span<const float> data, std::uint64_t seed, std::uint32_t world,
            double off_at_most = 0);

}  // namespace gradplane::peers
