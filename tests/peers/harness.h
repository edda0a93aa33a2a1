// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// What every rank of a measured peer shares: commands in, answers out, the data and its check.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

namespace gradplane::peers {

/// Commands beyond this are refused.
inline constexpr std::uint64_t kMaxRoundBytes = std::uint64_t{1} << 30;

/// One round: `{"do":"round","seed":S,"bytes":B,"at_ns":T}`; `"op":"push"` asks for an incast only.
struct Round {
  std::uint64_t seed = 0;
  std::uint64_t bytes = 0;
  std::uint64_t at_ns = 0;  // CLOCK_MONOTONIC
  bool push_only = false;
  bool spoil = false;  // of tests: breaks one element of the result before it is checked
};

/// Reads one line of JSON per command, and writes one per answer.
class Harness {
 public:
  /// Paths of FIFOs; empty: stdin and stdout. Throws std::runtime_error.
  Harness(const std::string& commands_path, const std::string& answers_path);

  /// Blocks for the next round; nothing at `{"do":"end"}` or at the end of the commands. Throws
  /// std::runtime_error when the line is no command.
  std::optional<Round> next();
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
/// True if every element is the sum of what `world` ranks fill in.
bool is_sum(std::span<const float> data, std::uint64_t seed, std::uint32_t world);

}  // namespace gradplane::peers
