// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/retry_policy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>

#include "tests/support/catch.h"

using namespace gradplane::shim;

namespace {

constexpr std::int64_t kUs = 1000;
constexpr std::int64_t kMs = 1000 * kUs;
constexpr std::int64_t kSecond = 1000 * kMs;

/// A program on three ranks whose clocks are not related.
struct Program {
  std::function<std::int64_t(std::uint64_t op)> op_ns;
  std::array<RetryPolicy, 3> ranks;
  std::array<std::int64_t, 3> clock_ahead_ns = {0, 7000 * kSecond, 5 * kMs};
  std::uint64_t op = 0;
  std::int64_t now_ns = 1000 * kSecond;
  int checkpoints = 0;

  std::int64_t clock(std::size_t rank) const { return now_ns + clock_ahead_ns[rank]; }
  void begin_carrying() {
    for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r].begin_carrying(op, clock(r));
  }
  void fall_back() {
    checkpoints = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r].fall_back(op, clock(r));
  }
  void run_ops(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) now_ns += op_ns(op++);
  }
  bool all_decide() {
    ++checkpoints;
    std::array<RetryView, 3> views;
    for (std::size_t r = 0; r < ranks.size(); ++r) views[r] = ranks[r].view(clock(r));
    const bool retry = ranks[0].decide(views, clock(0));
    for (std::size_t r = 1; r < ranks.size(); ++r) {
      // One CHECK for each of these millions of decisions would take longer than the test.
      const bool alike = ranks[r].decide(views, clock(r)) == retry &&
                         ranks[r].checkpoint() == ranks[0].checkpoint();
      if (!alike) FAIL("the ranks decide differently");
    }
    return retry;
  }
  /// Falls back and runs until the next attempt. Returns the nanoseconds between them.
  std::int64_t time_to_retry() {
    const std::int64_t from = now_ns;
    fall_back();
    do {
      if (ranks[0].checkpoint() <= op) FAIL("a checkpoint is over");
      run_ops(ranks[0].checkpoint() - op);
    } while (!all_decide());
    return now_ns - from;
  }
};

Program steady(std::int64_t op_ns) {
  return {[op_ns](std::uint64_t) { return op_ns; }, {}};
}

}  // namespace

TEST_CASE("a program with one operation a minute tries again at the next one") {
  Program program = steady(60 * kSecond);
  program.run_ops(10);
  program.time_to_retry();
  CHECK(program.op == 11);
  CHECK(program.checkpoints == 1);
}

TEST_CASE("a fast program tries again when it is time, and looks at few operations before") {
  Program program = steady(100 * kUs);
  const std::int64_t time = program.time_to_retry();
  CHECK(time >= kFirstRetryNs);
  CHECK(time <= kFirstRetryNs + kMs);
  CHECK(static_cast<std::uint64_t>(program.checkpoints) <=
        program.op / kMaxOpsBetweenCheckpoints + 10);
}

TEST_CASE("every speed comes back in time") {
  for (std::int64_t op_ns = kUs; op_ns <= 10 * kSecond; op_ns = op_ns * 3 / 2) {
    Program program = steady(op_ns);
    for (std::int64_t wait_ns = kFirstRetryNs; wait_ns <= 64 * kSecond; wait_ns *= 2) {
      const std::int64_t time = program.time_to_retry();
      INFO("operations of " << op_ns << " ns, a wait of " << wait_ns << " ns");
      CHECK(time >= wait_ns);
      CHECK(time <= wait_ns + 2 * op_ns);
    }
  }
}

TEST_CASE("a program that works in bursts is not taken for a fast one") {
  // Ten operations of a millisecond, then a second without any.
  Program program{[](std::uint64_t op) { return op % 10 == 9 ? kSecond : kMs; }, {}};
  const std::int64_t time = program.time_to_retry();
  CHECK(time >= kFirstRetryNs);
  CHECK(time <= 2 * kFirstRetryNs);
}

TEST_CASE("a program that becomes slow is noticed within the operations of one gap") {
  std::int64_t op_ns = 10 * kUs;
  Program program{[&](std::uint64_t) { return op_ns; }, {}};
  program.fall_back();
  std::uint64_t gap = 0;
  while (program.now_ns < 1001 * kSecond) {
    const std::uint64_t previous = std::max<std::uint64_t>(gap, 1);
    gap = program.ranks[0].checkpoint() - program.op;
    CHECK(gap <= kMaxOpsBetweenCheckpoints);
    CHECK(gap <= 2 * previous);
    program.run_ops(gap);
    REQUIRE(!program.all_decide());
  }
  CHECK(gap == kMaxOpsBetweenCheckpoints);
  op_ns = kSecond;
  program.run_ops(program.ranks[0].checkpoint() - program.op);
  CHECK(program.all_decide());
}

TEST_CASE("each attempt that fails doubles the wait, up to a bound") {
  Program program = steady(kMs);
  for (const int seconds : {2, 4, 8, 16, 32, 64, 64, 64}) {
    CHECK(program.time_to_retry() / kSecond == seconds);
  }
}

TEST_CASE("only the first attempt may take as long as it likes") {
  Program program = steady(kMs);
  CHECK(program.ranks[0].attempt_limit_ns() == std::numeric_limits<std::int64_t>::max());
  for (const int seconds : {2, 2, 2, 2, 4, 8, 8}) {
    program.time_to_retry();
    CHECK(program.ranks[0].attempt_limit_ns() == seconds * kSecond);
  }
}

TEST_CASE("a good session makes the next attempt early again") {
  Program program = steady(kMs);
  for (int i = 0; i < 4; ++i) program.time_to_retry();
  program.begin_carrying();
  SECTION("one that carried many operations") {
    program.run_ops(kGoodSessionOps);
    CHECK(program.time_to_retry() / kSecond == 2);
  }
  SECTION("one that lasted long") {
    program.now_ns += kGoodSessionNs;
    CHECK(program.time_to_retry() / kSecond == 2);
  }
  SECTION("not one that ended soon") {
    program.run_ops(kGoodSessionOps - 1);
    CHECK(program.time_to_retry() / kSecond == 32);
    SECTION("and what comes later is no part of it") {
      program.run_ops(kGoodSessionOps);
      program.now_ns += kGoodSessionNs;
      CHECK(program.time_to_retry() / kSecond == 64);
    }
  }
}

TEST_CASE("the ranks wait for the one that wants to wait longest") {
  Program program = steady(kMs);
  program.fall_back();
  program.ranks[1].fall_back(program.op, program.clock(1));  // this rank has failed once more
  program.run_ops(1);
  while (!program.all_decide()) program.run_ops(program.ranks[0].checkpoint() - program.op);
  CHECK((program.now_ns - 1000 * kSecond) / kSecond == 4);
}

TEST_CASE("whatever a rank says, the next checkpoint is near and ahead") {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  for (const RetryView said : {RetryView{kMax, kMax}, {kMax, 0}, {1, kMax}, {kMax, 1}}) {
    RetryPolicy policy;
    policy.fall_back(0, 0);
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t before = policy.checkpoint();
      REQUIRE(!policy.decide({&said, 1}, 0));
      CHECK(policy.checkpoint() > before);
      CHECK(policy.checkpoint() - before <= kMaxOpsBetweenCheckpoints);
    }
  }
}
