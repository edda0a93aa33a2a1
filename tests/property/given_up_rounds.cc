// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// A round in which nothing moves is given up, whatever the cause. A round that waits for a rank is
// never given up. Whole engines in virtual time.
#include "tests/sim/cluster.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::sim;

namespace {

constexpr std::uint32_t kBlocks = 20;
constexpr std::uint32_t kElements = kBlocks * kMinBlockBytes / 4;
constexpr std::uint32_t kRounds = 12;
constexpr std::uint32_t kBadRound = 5;
constexpr std::uint32_t kFirstLost = 3;  // blocks before this one arrive
/// Time beyond the limit for what comes before the round, for a question, and for a delayed check.
constexpr Duration kSlack = Duration::seconds(3);

/// Node 0 is the root, and nodes 1 to 3 have a rank each.
Scenario star_of_three() {
  Scenario s;
  s.plan = star(3);
  s.link.delay = Duration::ms(1);
  s.rounds.assign(kRounds, {ElementType::kFloat32, kElements});
  return s;
}

bool is_push(const testing::SeenPacket& h) {
  return h.type == wire::PacketType::kPush && h.round >= kBadRound;
}
bool is_result(const testing::SeenPacket& h) {
  return h.type == wire::PacketType::kResult && h.round >= kBadRound;
}
bool is_lost_at_first(const testing::SeenPacket& h) {
  return h.block >= kFirstLost && (h.flags & wire::kFlagRetransmission) == 0;
}

Outcome::GivenUp given_up(const Scenario& s, Duration before) {
  const Outcome outcome = run(s);
  INFO(outcome.failure);
  REQUIRE(outcome.given_up);
  CHECK(outcome.given_up->round == kBadRound);
  CHECK(outcome.given_up->stall.blocks > 0);
  CHECK(outcome.ended < Instant() + before);
  return *outcome.given_up;
}

}  // namespace

TEST_CASE("who pushes to a node that no block reaches gives the round up") {
  Scenario s = star_of_three();
  s.link.lose = [](auto from, auto, const testing::SeenPacket& h) {
    return from == 2 && is_push(h);
  };
  const Outcome::GivenUp seen = given_up(s, s.stall_after + kSlack);
  CHECK(seen.by == 2);
  CHECK(seen.because_of == 0);
  CHECK(seen.stall.reason == Stall::Reason::kPushesUnacked);
  CHECK(seen.stall.quiet >= s.stall_after);
  s.stall_after = {};  // never
  CHECK(run(s).failure.find("no end") != std::string::npos);
}

TEST_CASE("the root of a child that no result reaches gives the round up") {
  Scenario s = star_of_three();
  s.link.lose = [](auto, auto to, const testing::SeenPacket& h) { return to == 2 && is_result(h); };
  const Outcome::GivenUp seen = given_up(s, s.stall_after + kSlack);
  CHECK(seen.by == 0);
  CHECK(seen.because_of == 2);
  CHECK(seen.stall.reason == Stall::Reason::kResultsUnacked);
}

TEST_CASE("a relay of a child that no result reaches gives the round up") {
  Scenario s = star_of_three();
  s.plan = two_level_tree(2, 2);  // relays 1 and 2, and leaves 3 to 6
  s.link.lose = [](auto, auto to, const testing::SeenPacket& h) { return to == 6 && is_result(h); };
  const Outcome::GivenUp seen = given_up(s, s.stall_after + kSlack);
  CHECK(seen.by == 2);
  CHECK(seen.because_of == 6);
}

TEST_CASE("a child whose blocks stop in the middle of a round is noticed on both sides") {
  Scenario s = star_of_three();
  s.link.lose = [](auto from, auto, const testing::SeenPacket& h) {
    return from == 2 && is_push(h) && h.block >= kFirstLost;
  };
  const Outcome::GivenUp seen = given_up(s, s.stall_after + kSlack);
  CHECK(((seen.by == 0 && seen.because_of == 2) || (seen.by == 2 && seen.because_of == 0)));
}

TEST_CASE("who hears no answer to its questions gives the round up") {
  Scenario s = star_of_three();
  // All of node 2's blocks of the round arrive, but no packet after them.
  s.link.lose = [](auto from, auto, const testing::SeenPacket& h) {
    return from == 2 && is_push(h) && (h.flags & wire::kFlagRetransmission) != 0;
  };
  s.compute_max_of_rank = {Duration::ms(1), Duration::ms(1), Duration::seconds(100)};
  s.limit = Duration::seconds(5000);
  const Outcome outcome = run(s);
  INFO(outcome.failure);
  REQUIRE(outcome.given_up);
  CHECK(outcome.given_up->by == 2);
  CHECK(outcome.given_up->stall.reason == Stall::Reason::kUnanswered);
}

TEST_CASE("a parent that lacks what it had acknowledged is found out by a question") {
  Scenario s = star_of_three();
  s.authenticate = false;
  s.link.lose = [](auto from, auto, const testing::SeenPacket& h) {
    return from == 2 && is_push(h) && is_lost_at_first(h);
  };
  bool forged = false;
  s.link.forge = [&](auto, auto to, testing::SeenPacket& h) {
    if (forged || to != 2 || h.type != wire::PacketType::kPushAck || h.round != kBadRound) return;
    forged = true;
    h.flags |= wire::kFlagComplete;
  };
  const Outcome::GivenUp seen = given_up(s, hop::kAskInterval + kSlack);
  CHECK(forged);
  CHECK(seen.by == 2);
  CHECK(seen.because_of == 0);
  CHECK(seen.stall.reason == Stall::Reason::kDisputed);
  // The question itself has brought one block.
  CHECK(seen.stall.blocks >= kBlocks - kFirstLost - 1);
}

TEST_CASE("a parent that ends a round without us is found out by a question") {
  Scenario s = star_of_three();
  s.authenticate = false;
  s.link.lose = [](auto, auto to, const testing::SeenPacket& h) {
    return to == 2 && is_result(h) && is_lost_at_first(h);
  };
  bool forged = false;
  s.link.forge = [&](auto from, auto, testing::SeenPacket& h) {
    if (forged || from != 2 || h.type != wire::PacketType::kResultAck || h.round != kBadRound)
      return;
    forged = true;
    h.flags |= wire::kFlagComplete;
  };
  const Outcome::GivenUp seen = given_up(s, hop::kAskInterval + kSlack);
  CHECK(forged);
  CHECK(seen.by == 2);
  CHECK(seen.stall.reason == Stall::Reason::kDisputed);
  CHECK(seen.stall.blocks == kBlocks - kFirstLost);
}

TEST_CASE("a rank that computes for minutes is waited for") {
  for (const api::Plan& plan : {star(3), sharded(3), two_level_tree(2, 2)}) {
    for (const double loss : {0.0, 0.2}) {
      Scenario s = star_of_three();
      s.plan = plan;
      s.link.loss = loss;
      s.compute_max_of_rank = {Duration::ms(1), Duration::seconds(120), Duration::seconds(600)};
      s.limit = Duration::seconds(100'000);
      const Outcome outcome = run(s);
      CAPTURE(plan.trees.size(), loss);
      CHECK(outcome.failure == "");
      CHECK(outcome.ended > Instant() + Duration::seconds(1000));
    }
  }
}

TEST_CASE("a link that is down for less than the limit ends nothing") {
  Scenario s = star_of_three();
  s.rounds.assign(2000, {ElementType::kFloat32, kElements});
  HostFault cut{.host = 2};
  cut.cut_from = Instant() + Duration::ms(100);
  cut.cut_until = cut.cut_from + s.stall_after - Duration::ms(200);
  s.link.host_faults = {cut};
  const Outcome outcome = run(s);
  CHECK(outcome.failure == "");
  CHECK(outcome.ended > cut.cut_until);
}

TEST_CASE("a path that loses most of what it carries ends nothing") {
  Scenario s = star_of_three();
  s.link.host_faults = {{.host = 2, .loss_sent = 0.7, .loss_received = 0.7}};
  s.seed = GENERATE(1u, 2u, 3u);
  s.limit = Duration::seconds(600);
  CHECK(run(s).failure == "");
}
