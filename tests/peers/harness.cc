// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/peers/harness.h"

#include <time.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <exception>
#include <random>
#include <stdexcept>
#include <vector>

namespace gradplane::peers {
namespace {

constexpr std::uint64_t kSpinNs = 100'000;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::size_t kMaxLineBytes = 4096;
constexpr std::uint32_t kIndexFactor = 2654435761U;
constexpr std::uint32_t kSeedFactor = 40503U;
constexpr std::uint32_t kRankFactor = 97U;

std::FILE* open_or_throw(const std::string& path, const char* mode) {
  std::FILE* file = std::fopen(path.c_str(), mode);
  if (!file) throw std::runtime_error(path + ": " + std::strerror(errno));
  return file;
}

/// What rank and seed add to a value, of which the top byte is then used. Everything is modulo
/// 2^32.
std::uint32_t offset_of(std::uint64_t seed, std::uint32_t rank) {
  return static_cast<std::uint32_t>(seed) * kSeedFactor + rank * kRankFactor;
}

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kNsPerSecond +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// Sleeps until shortly before this time, then spins.
void wait_until(std::uint64_t at_ns) {
  const std::uint64_t wake_ns = at_ns - std::min(at_ns, kSpinNs);
  const timespec wake{static_cast<time_t>(wake_ns / kNsPerSecond),
                      static_cast<long>(wake_ns % kNsPerSecond)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, nullptr) == EINTR) {
  }
  while (now_ns() < at_ns) {
  }
}

std::uint64_t bytes_of(const nlohmann::json& command) {
  const auto bytes = command.at("bytes").get<std::uint64_t>();
  if (bytes == 0 || bytes % sizeof(float) != 0 || bytes > kMaxRoundBytes) {
    throw std::runtime_error("bytes: a multiple of 4 from 4 to 1 GiB, not " +
                             std::to_string(bytes));
  }
  return bytes;
}

RoundKind kind_of(const nlohmann::json& command) {
  const auto op = command.value("op", "all_reduce");
  if (op == "all_reduce") return RoundKind::kAllReduce;
  if (op == "push") return RoundKind::kPush;
  if (op == "broadcast") return RoundKind::kBroadcast;
  if (op == "exchange") return RoundKind::kExchange;
  throw std::runtime_error("op: all_reduce, push, broadcast or exchange, not " + op);
}

Round parse_round(const nlohmann::json& command) {
  Round round;
  round.seed = command.at("seed").get<std::uint64_t>();
  round.bytes = bytes_of(command);
  round.at_ns = command.at("at_ns").get<std::uint64_t>();
  round.kind = kind_of(command);
  round.selection = command.value("selection", 0U);
  round.spoil = command.value("spoil", false);
  return round;
}

Training parse_training(const nlohmann::json& command) {
  Training t;
  t.seed = command.at("seed").get<std::uint64_t>();
  t.bytes = bytes_of(command);
  t.at_ns = command.at("at_ns").get<std::uint64_t>();
  t.iterations = command.at("iterations").get<std::uint32_t>();
  t.compute_ns = command.at("compute_ns").get<std::uint64_t>();
  t.jitter = command.value("jitter", 0.0);
  t.buckets = command.value("buckets", 1U);
  const bool fits = t.iterations >= 1 && t.iterations <= kMaxIterations && t.buckets >= 1 &&
                    t.buckets <= kMaxBucketsOfTraining && t.compute_ns <= kMaxComputeNs &&
                    t.jitter >= 0 && t.jitter <= 1;
  if (!fits) throw std::runtime_error("a training out of bounds: " + command.dump());
  return t;
}

std::string crc_hex(std::span<const float> data) {
  auto crc = crc32_z(0, nullptr, 0);
  crc = crc32_z(crc, reinterpret_cast<const Bytef*>(data.data()), data.size_bytes());
  char text[9];
  std::snprintf(text, sizeof text, "%08lx", crc);
  return text;
}

}  // namespace

Harness::Harness(const std::string& commands_path, const std::string& answers_path)
    : commands_file_(commands_path.empty() ? nullptr : open_or_throw(commands_path, "re")),
      answers_file_(answers_path.empty() ? nullptr : open_or_throw(answers_path, "we")),
      commands_(commands_file_ ? commands_file_.get() : stdin),
      answers_(answers_file_ ? answers_file_.get() : stdout) {}

std::optional<Command> Harness::next() {
  char line[kMaxLineBytes];
  if (!std::fgets(line, sizeof line, commands_)) return std::nullopt;
  const auto command = nlohmann::json::parse(line, nullptr, false);
  const std::string what = command.is_object() ? command.value("do", "") : "";
  if (what == "end") return std::nullopt;
  if (what == "round") return parse_round(command);
  if (what == "train") return parse_training(command);
  throw std::runtime_error(std::string("no command: ") + line);
}

void Harness::answer(const nlohmann::json& object) {
  std::fprintf(answers_, "%s\n", object.dump().c_str());
  std::fflush(answers_);
}

void expect_kind(const Round& round, std::initializer_list<RoundKind> kinds) {
  if (std::find(kinds.begin(), kinds.end(), round.kind) == kinds.end())
    throw std::runtime_error("this peer has no such round");
}

nlohmann::json Participant::train(const Training& /*training*/) {
  throw std::runtime_error("this peer has no trainings");
}

int follow(Harness& harness, const nlohmann::json& rank,
           const std::function<std::unique_ptr<Participant>()>& make) {
  try {
    const std::unique_ptr<Participant> participant = make();
    harness.answer({{"ready", true}, {"rank", rank}});
    while (const auto command = harness.next()) {
      const auto* round = std::get_if<Round>(&*command);
      harness.answer(round != nullptr ? participant->run_round(*round)
                                      : participant->train(std::get<Training>(*command)));
    }
    return 0;
  } catch (const std::exception& e) {
    harness.answer({{"rank", rank}, {"error", e.what()}});
  }
  return 1;
}

std::vector<std::uint64_t> draw_compute_ns(const Training& training) {
  std::vector<std::uint64_t> drawn(training.iterations, training.compute_ns);
  if (training.jitter == 0) return drawn;
  std::mt19937_64 generator(training.seed);
  std::normal_distribution<double> factor(1, training.jitter);
  for (std::uint64_t& ns : drawn) {
    const double scaled = static_cast<double>(ns) * factor(generator);
    ns = static_cast<std::uint64_t>(std::max(0.0, scaled));
  }
  return drawn;
}

nlohmann::json run_training(const nlohmann::json& rank, const Training& training,
                            const Reduction& reduction) {
  std::vector<std::uint64_t> start_ns;
  std::vector<std::uint64_t> end_ns;
  bool is_correct = true;
  std::uint64_t late_ns = 0;
  std::uint64_t begin_ns = training.at_ns;
  std::uint64_t seed = training.seed;
  for (const std::uint64_t compute_ns : draw_compute_ns(training)) {
    reduction.prepare(seed);
    wait_until(begin_ns);
    start_ns.push_back(now_ns());
    late_ns = std::max(late_ns, start_ns.back() - begin_ns);
    reduction.reduce();
    end_ns.push_back(now_ns());
    is_correct = reduction.is_right(seed) && is_correct;
    begin_ns = end_ns.back() + compute_ns;
    ++seed;
  }
  return {{"rank", rank},
          {"start_ns", start_ns},
          {"end_ns", end_ns},
          {"late_ns", late_ns},
          {"correct", is_correct}};
}

std::uint64_t now_ns() {
  return clock_ns(CLOCK_MONOTONIC);
}

RoundClock::RoundClock() : first_cpu_ns_(clock_ns(CLOCK_PROCESS_CPUTIME_ID)) {}

void RoundClock::start(std::uint64_t at_ns) {
  wait_until(at_ns);
  start_cpu_ns_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  start_ns_ = now_ns();
}

void RoundClock::end() {
  end_ns_ = now_ns();
  end_cpu_ns_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

std::uint64_t RoundClock::other_cpu_ns() const {
  const std::uint64_t now = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  return now - end_cpu_ns_ + start_cpu_ns_ - first_cpu_ns_;
}

nlohmann::json round_answer(const nlohmann::json& rank, const RoundClock& clock, bool is_correct,
                            std::span<const float> result) {
  const std::string crc = crc_hex(result);
  return {{"rank", rank},
          {"start_ns", clock.start_ns()},
          {"end_ns", clock.end_ns()},
          {"correct", is_correct},
          {"crc", crc},
          {"other_cpu_ns", clock.other_cpu_ns()}};
}

void fill(std::span<float> data, std::uint64_t seed, std::uint32_t rank) {
  std::uint32_t value = offset_of(seed, rank);
  for (float& element : data) {
    element = static_cast<float>(value >> 24);
    value += kIndexFactor;
  }
}

bool is_sum(std::span<const float> data, std::uint64_t seed, std::uint32_t world,
            double off_at_most) {
  const double tolerated = off_at_most * 255 * world;
  std::uint32_t index_part = 0;
  for (const float element : data) {
    std::uint32_t sum = 0;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      sum += (index_part + offset_of(seed, rank)) >> 24;
    }
    if (!(std::abs(element - static_cast<double>(sum)) <= tolerated)) return false;
    index_part += kIndexFactor;
  }
  return true;
}

}  // namespace gradplane::peers
