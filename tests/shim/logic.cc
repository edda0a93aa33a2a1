// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "control/protocol/socket_messages.h"
#include "tests/support/catch.h"
#include "trainer-shim/group/agreement.h"
#include "trainer-shim/group/carrier.h"
#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/round_window.h"

using namespace gradplane;
using namespace gradplane::shim;

namespace {

Statement at_round(std::uint64_t first_incomplete, std::uint64_t next, std::uint64_t completed) {
  Statement s;
  s.stage = Stage::kRecover;
  s.first_incomplete = first_incomplete;
  s.next_round = next;
  s.completed = completed;
  return s;
}

Round round_of(Collective& collective, std::size_t offset_bytes, std::size_t bytes) {
  Round round;
  round.collective = &collective;
  round.offset_bytes = offset_bytes;
  round.bytes = bytes;
  return round;
}

}  // namespace

TEST_CASE("the verdict names the first rank that is not able") {
  std::vector<Statement> statements(3);
  for (Statement& s : statements) s.able = 1;
  CHECK(judge(statements).all_able);
  CHECK(!judge(statements).required);
  statements[1].able = 0;
  statements[1].set_cause("no daemon");
  statements[2].able = 0;
  statements[2].required = 1;
  CHECK(!judge(statements).all_able);
  CHECK(judge(statements).required);
  CHECK(judge(statements).cause == "rank 1 reports: no daemon");
}

TEST_CASE("ranks with different settings are told which rank has others") {
  std::vector<Statement> statements(3);
  for (Statement& s : statements) {
    s.able = 1;
    s.settings = 7;
  }
  CHECK(judge(statements).all_able);
  statements[2].settings = 8;
  CHECK_FALSE(judge(statements).all_able);
  CHECK(judge(statements).cause.find("rank 2 has another value than rank 0 of GRADPLANE_") == 0);
  statements[1].able = 0;
  statements[1].set_cause("no daemon");
  CHECK(judge(statements).cause == "rank 1 reports: no daemon");
}

TEST_CASE("settings count that change what a group does, and no others") {
  Environment e;
  const std::uint64_t plain = shared_settings(e);
  e.verbose = true;
  e.label = "another";
  CHECK(shared_settings(e) == plain);
  std::set<std::uint64_t> settings{plain};
  e.heeds_reduce_op = true;
  CHECK(settings.insert(shared_settings(e)).second);
  e.mpi_sums_are_gradients = true;
  CHECK(settings.insert(shared_settings(e)).second);
  e.gradients = "outer";
  CHECK(settings.insert(shared_settings(e)).second);
}

TEST_CASE("each attempt of a group has a key of its own") {
  const JobKey group{1, 2, 3};
  std::set<JobKey> keys;
  for (const std::uint32_t attempt : {0U, 1U, 2U, 255U, 256U, 65536U, 1U << 24})
    CHECK(keys.insert(attempt_key(group, attempt)).second);
  CHECK(keys.contains(group));
}

TEST_CASE("a cause that is too long is cut and still ends") {
  Statement s;
  s.set_cause(std::string(2 * kCauseBytes, 'x'));
  CHECK(std::strlen(s.cause.data()) == kCauseBytes - 1);
}

TEST_CASE("the longest reason of a daemon reaches every rank whole") {
  const std::string reason = std::string(protocol::kMaxReasonBytes - 1, 'x') + "!";
  std::vector<Statement> statements(1);
  statements[0].set_cause(reason);
  CHECK(judge(statements).cause == "rank 0 reports: " + reason);
}

TEST_CASE("ranks that lost step are noticed") {
  std::vector<Statement> statements(2);
  CHECK(same_stage(statements, Stage::kAttached));
  statements[1].stage = Stage::kReady;
  CHECK(!same_stage(statements, Stage::kAttached));
  statements[1] = {};
  statements[1].magic = 1;
  CHECK(!same_stage(statements, Stage::kAttached));
}

TEST_CASE("a recovery repairs from the first round that some rank lacks") {
  SECTION("all alike: nothing to repair") {
    const std::vector<Statement> s = {at_round(5, 8, 0), at_round(5, 6, 0)};
    const auto plan = plan_recovery(s);
    CHECK(plan.possible);
    CHECK(plan.holders.empty());
  }
  SECTION("one rank is ahead") {
    const std::vector<Statement> s = {at_round(5, 9, 0), at_round(7, 9, 0), at_round(6, 9, 0)};
    const auto plan = plan_recovery(s);
    CHECK(plan.first == 5);
    CHECK(plan.holders == std::vector<int>{1, 1});
  }
  SECTION("the lowest holder of each round, also beyond a hole") {
    const std::vector<Statement> s = {at_round(5, 9, 0b100), at_round(6, 9, 0)};
    const auto plan = plan_recovery(s);
    CHECK(plan.first == 5);
    CHECK(plan.holders == std::vector<int>{1, kNobody, 0});
  }
  SECTION("others went on without a rank: it gets the results of what it did not submit") {
    const std::vector<Statement> s = {at_round(13, 21, 0), at_round(5, 8, 0), at_round(12, 20, 0)};
    const auto plan = plan_recovery(s);
    CHECK(plan.possible);
    CHECK(plan.first == 5);
    CHECK(plan.holders == std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0});
  }
  SECTION("a round that nobody completed lies before one that a rank did not submit") {
    const std::vector<Statement> s = {at_round(6, 10, 0b10), at_round(5, 6, 0)};
    const auto plan = plan_recovery(s);
    CHECK(plan.possible);
    CHECK(plan.holders == std::vector<int>{0, kNobody, 0});
  }
  SECTION("as far ahead as ranks can get, every result is still there") {
    const std::uint64_t ahead = 5 + kMaxLeadRounds;
    const std::vector<Statement> s = {at_round(5, 5, 0),
                                      at_round(ahead, ahead + kMaxInFlightRounds, 0)};
    const auto plan = plan_recovery(s);
    CHECK(plan.possible);
    CHECK(plan.holders == std::vector<int>(kMaxLeadRounds, 1));
  }
  SECTION("a result whose slot serves a newer round is gone") {
    const std::vector<Statement> s = {at_round(5, 8, 0), at_round(14, 22, 0)};
    CHECK(!plan_recovery(s).possible);
    CHECK(plan_recovery(s).obstacle ==
          "rank 1 has gone on to round 22 and forgotten round 5, which another rank lacks");
  }
  SECTION("a rank cannot have completed what it did not submit") {
    const std::vector<Statement> s = {at_round(9, 12, 0), at_round(5, 8, 0b1000)};
    CHECK(!plan_recovery(s).possible);
    CHECK(plan_recovery(s).obstacle == "rank 1 has completed what it did not submit");
  }
  SECTION("nonsense from a peer asks for no endless repair") {
    const std::vector<Statement> s = {at_round(0, UINT64_MAX, 0), at_round(4000000, UINT64_MAX, 0)};
    CHECK(!plan_recovery(s).possible);
    CHECK(!plan_recovery({}).possible);
    const std::vector<Statement> far = {at_round(0, 1, 0), at_round(4000000, 4000001, 0)};
    CHECK(!plan_recovery(far).possible);
  }
  SECTION("one rank is past 2^32 rounds and the other is not") {
    const std::uint64_t wrap = std::uint64_t{1} << 32;
    const std::vector<Statement> s = {at_round(wrap - 2, wrap + 3, 0b1001),
                                      at_round(wrap + 1, wrap + 4, 0)};
    const auto plan = plan_recovery(s);
    CHECK(plan.possible);
    CHECK(plan.first == wrap - 2);
    CHECK(plan.holders == std::vector<int>{0, 1, 1, 0});
  }
}

TEST_CASE("a rank that lacks an exchange asks nobody") {
  SECTION("of an exchange each rank has its own") {
    std::vector<Statement> s = {at_round(5, 9, 0), at_round(7, 9, 0), at_round(6, 9, 0)};
    for (Statement& one : s) one.exchanges = 0b1000;  // of round 5
    const auto plan = plan_recovery(s);
    CHECK(plan.possible);
    CHECK(plan.first == 5);
    CHECK(plan.holders == std::vector<int>{kEachItsOwn, 1});
  }
  SECTION("an exchange that nobody completed is summed") {
    std::vector<Statement> s = {at_round(5, 9, 0b10), at_round(5, 9, 0)};
    for (Statement& one : s) one.exchanges = 0b1111;
    CHECK(plan_recovery(s).holders == std::vector<int>{kNobody, kEachItsOwn});
  }
  SECTION("in exchanges ranks may be far apart, and forget what the others lack") {
    std::vector<Statement> s = {at_round(5, 9, 0), at_round(105, 110, 0)};
    for (Statement& one : s) one.selections = 3;
    s[0].exchanges = 0b1111;
    const auto plan = plan_recovery(s);
    CHECK(plan.possible);
    CHECK(plan.holders == std::vector<int>(100, kEachItsOwn));
    // That does not hold for the result of a sum.
    s[0].exchanges = 0b0111;
    CHECK(!plan_recovery(s).possible);
    CHECK(plan_recovery(s).obstacle ==
          "rank 1 has gone on to round 110 and forgotten round 5, which another rank lacks");
  }
  SECTION("where nothing is exchanged, a round that a rank did not submit is handed on") {
    const std::vector<Statement> s = {at_round(5, 5, 0), at_round(6, 9, 0)};
    CHECK(plan_recovery(s).holders == std::vector<int>{1});
  }
  SECTION("ranks are not apart for ever") {
    std::vector<Statement> s = {at_round(5, 5, 0), at_round(4000000, 4000001, 0)};
    for (Statement& one : s) one.selections = 3;
    CHECK(!plan_recovery(s).possible);
  }
}

TEST_CASE("ranks exchange only if all are told of the same selections") {
  std::vector<Statement> s(3);
  CHECK(exchange_terms(s).selections == 0);
  for (Statement& one : s) one.selections = 5;
  CHECK(exchange_terms(s).selections == 5);
  CHECK(exchange_terms(s).average_every == 0);
  SECTION("they average as often as any operator wants") {
    s[0].average_every = 300;
    s[2].average_every = 100;
    CHECK(exchange_terms(s).average_every == 100);
    CHECK(exchange_terms(s).staleness == 0);
  }
  SECTION("what holds for all is the largest staleness") {
    s[1].staleness = 4;
    s[2].staleness = 3;
    CHECK(exchange_terms(s).staleness == 4);
  }
  SECTION("one is told of others") {
    s[2].selections = 4;
    s[2].average_every = 100;
    CHECK(exchange_terms(s).selections == 0);
    CHECK(exchange_terms(s).average_every == 0);
  }
  SECTION("one is told of none") {
    s[0].selections = 0;
    CHECK(exchange_terms(s).selections == 0);
  }
}

TEST_CASE("the round window says which of its last rounds are exchanges") {
  RoundWindow window;
  window.restart(8, 100);
  CHECK(window.exchange_bits() == 0);
  Collective collective;
  for (std::uint64_t i = 0; i < 20; ++i) {
    Round round = round_of(collective, 0, 1);
    if (i == 3 || i == 5 || i == 19) round.operation = Operation::kExchange;
    window.submit(round);
    if (i == 6) CHECK(window.exchange_bits() == 0b1010);
  }
  CHECK(window.exchange_bits() == (1 | 1 << 14));  // round 3 is no longer in the window
}

TEST_CASE("the round window bounds how far a rank runs ahead of its first incomplete round") {
  RoundWindow window;
  window.restart(4);
  Collective collective;
  collective.bytes = 400;
  for (std::size_t i = 0; i < 4; ++i) {
    REQUIRE(window.may_submit());
    window.submit(round_of(collective, i, 1));
  }
  CHECK(!window.may_submit());
  CHECK(window.complete(1));
  CHECK(window.complete(3));
  CHECK(!window.may_submit());  // round 0 is still the first incomplete one
  CHECK(window.first_incomplete() == 0);
  CHECK(window.completed_bits() == 0b1010);
  CHECK(window.complete(0));
  CHECK(window.first_incomplete() == 2);
  CHECK(window.completed_bits() == 0b10);
  CHECK(window.may_submit());
  SECTION("what nobody waits for is refused") {
    CHECK(!window.complete(0));
    CHECK(!window.complete(3));
    CHECK(!window.complete(4));
    CHECK(!window.complete(UINT32_MAX));
    CHECK(window.find(4) == nullptr);
    CHECK(window.find(1000) == nullptr);
  }
}

TEST_CASE("the round window goes across 2^32 as across any other number") {
  constexpr std::uint64_t kWrap = std::uint64_t{1} << 32;
  RoundWindow window;
  window.restart(8, kWrap - 20);
  Collective collective;
  CHECK(window.find(kWrap - 21) == nullptr);
  for (std::uint64_t round = kWrap - 20; round < kWrap + 20; ++round) {
    REQUIRE(window.may_submit());
    REQUIRE(window.next() == round);
    window.submit(round_of(collective, 0, 1));
    if (round < kWrap - 20 + 6) continue;
    // Completes rounds six rounds late, and of each two the newer one first.
    const std::uint64_t late = (round - 6) ^ 1;
    REQUIRE(window.expand(static_cast<std::uint32_t>(late)) == late);
    REQUIRE(window.complete(late));
    REQUIRE(!window.complete(late));
    REQUIRE(window.find(late)->completed);
    // A round that the daemon completes twice must not be taken for a round 2^32 later.
    REQUIRE(window.find(window.expand(static_cast<std::uint32_t>(round - 9))) == nullptr);
  }
  CHECK(window.first_incomplete() == kWrap + 14);
  CHECK(window.completed_bits() == 0);
}

TEST_CASE("a round whose slot serves a newer one is not found") {
  RoundWindow window;
  window.restart(8);
  Collective collective;
  for (std::size_t i = 0; i <= kRoundSlots; ++i) window.submit(round_of(collective, i, 1));
  CHECK(window.find(0) == nullptr);
  CHECK(window.find(1) != nullptr);
}

TEST_CASE("the window never exceeds what the arena keeps") {
  RoundWindow window;
  window.restart(1000);
  Collective collective;
  std::size_t submitted = 0;
  while (window.may_submit()) {
    window.submit(round_of(collective, submitted, 1));
    ++submitted;
  }
  CHECK(submitted == kMaxInFlightRounds);
}

namespace {

constexpr std::size_t kManyElements = 123457;  // takes eight rounds

/// Acts as one of two ranks of a job whose rounds begin at `first_round`, and sums `values`.
/// Returns whether the carrier knew every round by its number.
bool sum_as(std::uint32_t rank, std::uint64_t first_round, std::vector<float>& values) {
  for (std::size_t i = 0; i < kManyElements; ++i) {
    values.push_back(static_cast<float>(i % 1000 + rank));
  }
  Carrier carrier({rank, 2}, 60000);
  std::string cause;
  const JobKey key = {static_cast<std::uint8_t>(first_round)};
  if (!carrier.attach(key, cause) || !carrier.wait_ready(cause)) return false;
  carrier.start(carrier.round_bytes(), carrier.rounds_in_flight_max(), first_round);
  Collective collective;
  collective.data = reinterpret_cast<std::byte*>(values.data());
  collective.bytes = kManyElements * sizeof(float);
  while (!collective.complete()) {
    while (!collective.all_submitted() && carrier.submit_next(collective, nullptr)) {
    }
    if (carrier.poll() == Carrier::Turn::kOver) break;
    carrier.wait(10);
  }
  Statement statement;
  carrier.describe(statement);
  const auto kept = carrier.release_all();
  return kept.size() == 8 && kept.front().round == first_round &&
         statement.first_incomplete == first_round + 8 && statement.next_round == first_round + 8;
}

}  // namespace

TEST_CASE("two carriers cut, sum and put together a reduction of many rounds") {
  char folder[] = "/tmp/gp-logic-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  setenv("GRADPLANE_SOCKET", folder, 1);
  setenv("GRADPLANE_ATTACH_TIMEOUT_MS", "5000", 1);
  for (const std::uint64_t first_round : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 3}) {
    CAPTURE(first_round);
    setenv("GRADPLANE_TEST_FAKE", ("first=" + std::to_string(first_round)).c_str(), 1);
    std::vector<float> values[2];
    bool whole[2] = {};
    std::thread other([&] { whole[1] = sum_as(1, first_round, values[1]); });
    whole[0] = sum_as(0, first_round, values[0]);
    other.join();
    REQUIRE(values[0].size() == kManyElements);
    CHECK((whole[0] && whole[1]));
    bool right = values[0] == values[1];
    for (std::size_t i = 0; i < kManyElements; ++i) {
      right = right && values[0][i] == static_cast<float>(2 * (i % 1000) + 1);
    }
    CHECK(right);
  }
  std::filesystem::remove_all(folder);
}
