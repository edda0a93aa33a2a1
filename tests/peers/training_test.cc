// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Trainings of measured peers: what each iteration does, how long it computes, which commands are
// refused, and how a participant carries out commands.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "tests/peers/harness.h"
#include "tests/support/catch.h"

using namespace gradplane::peers;

namespace {

constexpr std::uint64_t kSeed = 70;

struct Log {
  std::vector<std::string> steps;
  std::uint64_t wrong_seed = 0;

  Reduction reduction() {
    return {.prepare = [this](std::uint64_t s) { steps.push_back("fill " + std::to_string(s)); },
            .reduce = [this] { steps.emplace_back("reduce"); },
            .is_right = [this](std::uint64_t s) { return s != wrong_seed; }};
  }
};

Training training_of(std::uint32_t iterations, std::uint64_t compute_ns, double jitter = 0) {
  return {.seed = kSeed,
          .bytes = 64,
          .at_ns = now_ns(),
          .iterations = iterations,
          .compute_ns = compute_ns,
          .jitter = jitter};
}

/// The times between the end of one all-reduce and the start of the next.
std::vector<std::uint64_t> pauses(const nlohmann::json& answer) {
  const auto start_ns = answer.at("start_ns").get<std::vector<std::uint64_t>>();
  const auto end_ns = answer.at("end_ns").get<std::vector<std::uint64_t>>();
  std::vector<std::uint64_t> found;
  for (std::size_t i = 1; i < start_ns.size(); ++i) found.push_back(start_ns[i] - end_ns[i - 1]);
  return found;
}

/// A participant that answers with what it was asked to do.
class Echo final : public Participant {
 public:
  nlohmann::json run_round(const Round& round) override { return {{"round", round.seed}}; }
  nlohmann::json train(const Training& t) override {
    return {{"train", t.seed},    {"bytes", t.bytes},   {"at_ns", t.at_ns},    {"it", t.iterations},
            {"ns", t.compute_ns}, {"jitter", t.jitter}, {"buckets", t.buckets}};
  }
};

class NoTrainings final : public Participant {
 public:
  nlohmann::json run_round(const Round& /*round*/) override { return {}; }
};

/// Carries out lines of commands. Returns the exit code and the answers.
template <typename Who>
std::pair<int, std::vector<nlohmann::json>> follow_lines(const std::string& lines) {
  const std::string commands = std::tmpnam(nullptr);
  const std::string answers = commands + ".out";
  std::ofstream(commands) << lines;
  int code = 0;
  {
    Harness harness(commands, answers);
    code = follow(harness, 3, [] { return std::make_unique<Who>(); });
  }
  std::vector<nlohmann::json> found;
  std::ifstream file(answers);
  for (std::string line; std::getline(file, line);) found.push_back(nlohmann::json::parse(line));
  std::remove(commands.c_str());
  std::remove(answers.c_str());
  return {code, found};
}

const std::string kTrain =
    R"({"do":"train","seed":5,"bytes":64,"at_ns":9,"iterations":3,"compute_ns":7)";

}  // namespace

TEST_CASE("every iteration has data of its own, and its all-reduce is timed") {
  Log log;
  const auto answer = run_training(1, training_of(3, 0), log.reduction());
  CHECK(log.steps ==
        std::vector<std::string>{"fill 70", "reduce", "fill 71", "reduce", "fill 72", "reduce"});
  const auto start_ns = answer.at("start_ns").get<std::vector<std::uint64_t>>();
  const auto end_ns = answer.at("end_ns").get<std::vector<std::uint64_t>>();
  REQUIRE(start_ns.size() == 3);
  REQUIRE(end_ns.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(start_ns[i] <= end_ns[i]);
  CHECK(answer.at("rank") == 1);
  CHECK(answer.at("correct") == true);
}

TEST_CASE("one wrong sum is told, whichever it is") {
  const std::uint64_t wrong = GENERATE(as<std::uint64_t>{}, kSeed, kSeed + 1, kSeed + 2);
  Log log{.steps = {}, .wrong_seed = wrong};
  CHECK(run_training(1, training_of(3, 0), log.reduction()).at("correct") == false);
}

TEST_CASE("computing takes as long as it is told to, from the end of the all-reduce on") {
  Log log;
  for (const std::uint64_t ns : pauses(run_training(1, training_of(4, 300'000), log.reduction()))) {
    CHECK(ns >= 300'000);
  }
}

TEST_CASE("a training that begins in the past says how late it was") {
  Log log;
  Training training = training_of(1, 0);
  training.at_ns -= 5'000'000;
  CHECK(run_training(1, training, log.reduction()).at("late_ns") >= 5'000'000);
}

TEST_CASE("jitter draws each computing anew, the same for all ranks") {
  // A computation takes at least the time that was drawn. On a busy machine there is no upper
  // bound.
  constexpr double kJitter = 0.5;
  const auto drawn = draw_compute_ns(training_of(200, 1'000'000, kJitter));
  CHECK(drawn == draw_compute_ns(training_of(200, 1'000'000, kJitter)));
  double sum = 0;
  double squares = 0;
  for (const std::uint64_t ns : drawn) {
    sum += static_cast<double>(ns);
    squares += static_cast<double>(ns) * static_cast<double>(ns);
  }
  const double mean = sum / 200;
  CHECK_THAT(mean, Catch::Matchers::WithinRel(1e6, 0.1));
  CHECK_THAT(std::sqrt(squares / 200 - mean * mean),
             Catch::Matchers::WithinRel(kJitter * 1e6, 0.2));
  CHECK(draw_compute_ns(training_of(3, 5)) == std::vector<std::uint64_t>{5, 5, 5});
}

TEST_CASE("rounds and trainings are followed until the end") {
  const auto [code, answers] = follow_lines<Echo>(R"({"do":"round","seed":4,"bytes":4,"at_ns":1})"
                                                  "\n" +
                                                  kTrain + R"(,"jitter":0.25,"buckets":2})" + "\n" +
                                                  kTrain + "}\n" + R"({"do":"end"})" + "\n");
  CHECK(code == 0);
  REQUIRE(answers.size() == 4);
  CHECK(answers[0] == nlohmann::json{{"ready", true}, {"rank", 3}});
  CHECK(answers[1] == nlohmann::json{{"round", 4}});
  nlohmann::json expected = {{"train", 5}, {"bytes", 64},    {"at_ns", 9},  {"it", 3},
                             {"ns", 7},    {"jitter", 0.25}, {"buckets", 2}};
  CHECK(answers[2] == expected);
  expected["jitter"] = 0.0;
  expected["buckets"] = 1;
  CHECK(answers[3] == expected);
}

TEST_CASE("what is no training ends a participant with a word") {
  const std::string line = GENERATE(
      as<std::string>{},
      R"({"do":"train","seed":5,"bytes":64,"at_ns":9,"iterations":0,"compute_ns":7})",
      R"({"do":"train","seed":5,"bytes":64,"at_ns":9,"iterations":1001,"compute_ns":7})",
      R"({"do":"train","seed":5,"bytes":62,"at_ns":9,"iterations":3,"compute_ns":7})",
      R"({"do":"train","seed":5,"bytes":64,"at_ns":9,"iterations":3,"compute_ns":10000000001})",
      R"({"do":"train","seed":5,"bytes":64,"at_ns":9,"iterations":3})", kTrain + R"(,"buckets":0})",
      kTrain + R"(,"buckets":65})", kTrain + R"(,"jitter":1.5})", kTrain + R"(,"jitter":-0.1})",
      R"({"do":"dance"})", "nonsense");
  const auto [code, answers] = follow_lines<Echo>(line + "\n");
  CHECK(code == 1);
  REQUIRE(answers.size() == 2);
  CHECK(answers[1].contains("error"));
}

TEST_CASE("a peer without trainings says so") {
  const auto [code, answers] = follow_lines<NoTrainings>(kTrain + "}\n");
  CHECK(code == 1);
  REQUIRE(answers.size() == 2);
  CHECK(answers[1].at("error").get<std::string>().find("no trainings") != std::string::npos);
}
