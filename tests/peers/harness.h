// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// What every rank of a measured peer shares: commands in, answers out, the data and its check.

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

/// Commands beyond these are refused. An answer tells of every iteration in one line.
inline constexpr std::uint64_t kMaxRoundBytes = std::uint64_t{1} << 30;
inline constexpr std::uint32_t kMaxIterations = 1000;
inline constexpr std::uint32_t kMaxBucketsOfTraining = 64;
inline constexpr std::uint64_t kMaxComputeNs = 10'000'000'000;

/// What a round is, by "op" of its command.
enum class RoundKind : std::uint8_t {
  kAllReduce,  // also without "op"
  kPush,       // an incast only
  kBroadcast,  // of what rank 0 has
  kExchange,   // of updates with the receivers of a "selection"
};

/// One round: `{"do":"round","seed":S,"bytes":B,"at_ns":T}`.
struct Round {
  std::uint64_t seed = 0;
  std::uint64_t bytes = 0;
  std::uint64_t at_ns = 0;  // CLOCK_MONOTONIC
  RoundKind kind = RoundKind::kAllReduce;
  std::uint32_t selection = 0;  // of an exchange
  bool spoil = false;           // of tests: breaks one element of the result before it is checked
};

/// Iterations of an all-reduce and some computing, which is a wait: `{"do":"train","seed":S,
/// "bytes":B,"at_ns":T,"iterations":I,"compute_ns":C,"jitter":J,"buckets":N}`. The first all-reduce
/// begins at T.
struct Training {
  std::uint64_t seed = 0;   // of the jitter; iteration i has the data of a round with seed + i
  std::uint64_t bytes = 0;  // of all buckets together
  std::uint64_t at_ns = 0;  // CLOCK_MONOTONIC
  std::uint32_t iterations = 0;
  std::uint64_t compute_ns = 0;
  /// Standard deviation of the computing, as a part of it; all ranks draw the same.
  double jitter = 0;
  std::uint32_t buckets = 1;  // that are submitted together; a peer without buckets has one message
};

using Command = std::variant<Round, Training>;

/// Reads one line of JSON per command, and writes one per answer.
class Harness {
 public:
  /// Paths of FIFOs; empty: stdin and stdout. Throws std::runtime_error.
  Harness(const std::string& commands_path, const std::string& answers_path);

  /// Blocks for the next command; nothing at `{"do":"end"}` or at the end of the commands. Throws
  /// std::runtime_error when the line is no command.
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

/// Throws std::runtime_error unless the round is of one of these kinds.
void expect_kind(const Round& round, std::initializer_list<RoundKind> kinds);

/// What follows the commands. Both throw std::runtime_error.
class Participant {
 public:
  virtual ~Participant() = default;
  virtual nlohmann::json run_round(const Round& round) = 0;
  /// Without one of its own a participant has no trainings.
  virtual nlohmann::json train(const Training& training);
};

/// Makes the participant, says that it is ready, and follows commands until they end; tells of what
/// goes wrong. The exit code of the program. `rank` is a number, or "server".
int follow(Harness& harness, const nlohmann::json& rank,
           const std::function<std::unique_ptr<Participant>()>& make);

/// One iteration's all-reduce in its parts. All may throw.
struct Reduction {
  std::function<void(std::uint64_t seed)> prepare;
  std::function<void()> reduce;
  std::function<bool(std::uint64_t seed)> is_right;
};

/// How long each iteration of a training computes.
std::vector<std::uint64_t> draw_compute_ns(const Training& training);

/// Runs a training; its answer has "start_ns" and "end_ns" of every all-reduce, and in "late_ns" by
/// how much the worst of them began too late, because preparing and checking are done while it
/// computes.
nlohmann::json run_training(const nlohmann::json& rank, const Training& training,
                            const Reduction& reduction);

std::uint64_t now_ns();

/// When a round began and ended, and what the process spent on it before and after: preparing and
/// checking the data are no part of what is measured.
class RoundClock {
 public:
  RoundClock();
  /// Sleeps until shortly before the time and spins the rest.
  void start(std::uint64_t at_ns);
  void end();
  std::uint64_t start_ns() const { return start_ns_; }
  std::uint64_t end_ns() const { return end_ns_; }
  /// Processor time of the process, from the constructor to now, outside of start() to end().
  std::uint64_t other_cpu_ns() const;

 private:
  std::uint64_t first_cpu_ns_;
  std::uint64_t start_cpu_ns_ = 0;
  std::uint64_t end_cpu_ns_ = 0;
  std::uint64_t start_ns_ = 0;
  std::uint64_t end_ns_ = 0;
};

/// The fields of an answer that every rank gives. `rank` is a number, or "server".
nlohmann::json round_answer(const nlohmann::json& rank, const RoundClock& clock, bool is_correct,
                            std::span<const float> result);

/// Small integers, so that a sum is the same in whatever order it is made.
void fill(std::span<float> data, std::uint64_t seed, std::uint32_t rank);
/// True if every element is the sum of what `world` ranks fill in, or off by no more than a share
/// of the largest sum that there is.
bool is_sum(std::span<const float> data, std::uint64_t seed, std::uint32_t world,
            double off_at_most = 0);

}  // namespace gradplane::peers
