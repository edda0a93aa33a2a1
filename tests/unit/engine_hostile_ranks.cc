// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// A trainer may write anything into its channel. It loses its own session, once, and no other rank
// is disturbed.
#include <cstring>
#include <functional>
#include <random>

#include "dataplane/ipc/rounds_in_flight.h"
#include "tests/support/catch.h"
#include "tests/support/engine_host.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr std::size_t kRoundBytes = 4096;
constexpr auto kReduceScatter = static_cast<std::uint8_t>(Operation::kReduceScatter);
constexpr auto kAllGather = static_cast<std::uint8_t>(Operation::kAllGather);
constexpr auto kBroadcast = static_cast<std::uint8_t>(Operation::kBroadcast);

ipc::Submission honest(std::uint32_t round) {
  return {.round = round,
          .elements = 100,
          .element_type = static_cast<std::uint8_t>(ElementType::kFloat32)};
}

/// A host with two jobs. Job 1 has two ranks, of which the first is hostile. Job 2 has one honest
/// rank.
struct Stage {
  EngineCluster cluster{1};
  EngineHost& host = cluster.host(0);
  EngineHost::Job& victim;
  EngineHost::Job& other;
  std::uint32_t next_round = 0;
  std::optional<RankFault> fault;  // the last one that times_broken() saw

  Stage()
      : victim(host.add({.id = 1, .plan = plan(2), .round_bytes = kRoundBytes})),
        other(host.add({.id = 2, .plan = plan(1), .round_bytes = kRoundBytes})) {
    cluster.turns(64);
  }
  static api::Plan plan(std::uint16_t ranks) {
    api::Plan p = star_of(1);
    p.members[0].ranks.clear();
    for (std::uint16_t r = 0; r < ranks; ++r) p.members[0].ranks.push_back(r);
    return p;
  }
  TrainerEnd& hostile() { return victim.trainers[0]; }

  /// Lets the honest job do a round. Returns whether the round completes.
  bool other_works() {
    const std::uint32_t round = next_round++;
    if (!other.trainers[0].submit(round, 100, 5)) return false;
    ipc::Completion completion{};
    for (int turn = 0; turn < 100; ++turn) {
      cluster.turn();
      if (!other.trainers[0].completions.pop(completion)) continue;
      return completion.round == round && other.trainers[0].last(round, 100) == 5;
    }
    return false;
  }
  std::size_t times_broken() {
    std::size_t times = 0;
    for (const api::Event& event : host.events()) {
      if (event.kind != api::Event::Kind::kRankBroken) continue;
      CHECK(event.job == victim.runtime.get());
      CHECK(event.local_rank == 0);
      fault = event.fault;
      ++times;
    }
    return times;
  }
  /// Returns how many sessions of the host have ended for this reason.
  std::uint64_t count_of(RankFault why) {
    return host.snapshot(cluster.now())->rank_faults[static_cast<std::size_t>(why)];
  }
};

struct Row {
  const char* what;
  std::function<void(TrainerEnd&)> write;
  RankFault fault = RankFault::kBadSubmission;
};

void push(TrainerEnd& trainer, ipc::Submission submission) {
  REQUIRE(trainer.submissions.push(submission));
}

/// Pushes an honest submission that `change` has made dishonest.
auto with(void (*change)(ipc::Submission&)) {
  return [change](TrainerEnd& t) {
    ipc::Submission s = honest(0);
    change(s);
    push(t, s);
  };
}

std::vector<Row> reduction_rows() {
  return {
      {"an unknown reduction", with([](ipc::Submission& s) { s.reduction = 4; })},
      {"a largest of a bucket", with([](ipc::Submission& s) {
         s.bucket = 1;
         s.reduction = static_cast<std::uint8_t>(Reduction::kMax);
       })},
      {"a product of an all_gather", with([](ipc::Submission& s) {
         s.operation = kAllGather;
         s.reduction = static_cast<std::uint8_t>(Reduction::kProduct);
       })},
      {"a bit where nothing is", with([](ipc::Submission& s) { s.unused = 1; })},
  };
}

std::vector<Row> submission_rows() {
  return {
      {"a round ahead", with([](ipc::Submission& s) { s.round = 1; })},
      {"a round half the numbers ahead", with([](ipc::Submission& s) { s.round = 0x8000'0000; })},
      {"a round before the first", with([](ipc::Submission& s) { s.round = 0xffff'ffff; })},
      {"no elements", with([](ipc::Submission& s) { s.elements = 0; })},
      {"one element too many", with([](ipc::Submission& s) { s.elements = kRoundBytes / 4 + 1; })},
      {"elements that overflow", with([](ipc::Submission& s) { s.elements = 0xffff'ffff; })},
      {"bytes that overflow 32 bits", with([](ipc::Submission& s) {
         s.elements = 0x4000'0001;
         s.element_type = static_cast<std::uint8_t>(ElementType::kFloat32);
       })},
      {"no type", with([](ipc::Submission& s) { s.element_type = 0; })},
      {"an unknown type", with([](ipc::Submission& s) { s.element_type = 7; })},
      {"the last type a byte can name", with([](ipc::Submission& s) { s.element_type = 255; })},
      {"no operation", with([](ipc::Submission& s) { s.operation = 0; })},
      {"an unknown operation", with([](ipc::Submission& s) { s.operation = 5; })},
      {"the last operation a byte can name", with([](ipc::Submission& s) { s.operation = 255; })},
      {"a source of an all_reduce", with([](ipc::Submission& s) { s.source = 1; })},
      {"a source of an all_gather", with([](ipc::Submission& s) {
         s.operation = kAllGather;
         s.source = 1;
       })},
      {"a bucket of a reduce_scatter", with([](ipc::Submission& s) {
         s.operation = kReduceScatter;
         s.bucket = 1;
       })},
      {"a bucket of a broadcast", with([](ipc::Submission& s) {
         s.operation = kBroadcast;
         s.bucket = 1;
       })},
      {"a broadcast from a rank that there is not", with([](ipc::Submission& s) {
         s.operation = kBroadcast;
         s.source = 2;
       })},
      {"elements that two ranks cannot share", with([](ipc::Submission& s) {
         s.operation = kAllGather;
         s.elements = 99;
       })},
      {"shards of more blocks than a round may have", with([](ipc::Submission& s) {
         s.operation = kReduceScatter;
         s.elements = kRoundBytes / 4 - 2;
       })},
      {"the same round twice",
       [](TrainerEnd& t) {
         push(t, honest(0));
         push(t, honest(0));
       }},
      {"a round left out",
       [](TrainerEnd& t) {
         push(t, honest(0));
         push(t, honest(2));
       }},
  };
}

std::vector<Row> index_rows() {
  const auto tail = [](std::uint32_t value) {
    return [value](TrainerEnd& t) { t.channel->channel.submissions().tail.store(value); };
  };
  return {
      {"a tail one beyond the ring", tail(ipc::kRingEntries + 1), RankFault::kBadRingIndex},
      {"a tail before the start", tail(0xffff'ffff), RankFault::kBadRingIndex},
      {"a tail half the numbers away", tail(0x8000'0000), RankFault::kBadRingIndex},
      {"a tail over entries that nobody wrote", tail(ipc::kRingEntries)},
      {"a tail that goes back",
       [](TrainerEnd& t) {
         push(t, honest(0));
         push(t, honest(1));
         t.channel->channel.submissions().tail.store(0xffff'fffe);
       },
       RankFault::kBadRingIndex},
  };
}

void check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.what);
    Stage stage;
    REQUIRE(stage.other_works());
    row.write(stage.hostile());
    stage.cluster.turns(100);
    CHECK(stage.times_broken() == 1);
    CHECK(stage.fault == row.fault);
    CHECK(stage.count_of(row.fault) == 1);
    CHECK(stage.other_works());
    // The engine ignores later submissions of the broken rank, and does not report it again.
    (void)stage.hostile().submissions.push(honest(0));
    stage.cluster.turns(100);
    CHECK(stage.times_broken() == 0);
    CHECK(stage.other_works());
  }
}

}  // namespace

TEST_CASE("a submission that no honest client makes breaks its rank once") {
  check(submission_rows());
  check(reduction_rows());
}
TEST_CASE("a ring index that cannot be breaks its rank once") {
  check(index_rows());
}

TEST_CASE("a rank that says something else than its neighbour ends the job with a mismatch") {
  Stage stage;
  push(stage.victim.trainers[0], honest(0));
  stage.cluster.turns(10);
  ipc::Submission other = honest(0);
  other.elements = 99;
  push(stage.victim.trainers[1], other);
  stage.cluster.turns(10);
  const std::vector<api::Event> events = stage.host.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == api::Event::Kind::kMismatch);
  CHECK(events[0].ours.elements == 100);
  CHECK(events[0].theirs.elements == 99);
  CHECK(stage.other_works());
}

TEST_CASE("ranks that disagree about the order of two buckets are a mismatch") {
  Stage stage;
  const auto submission = [](std::uint32_t round, std::uint16_t bucket) {
    ipc::Submission made = honest(round);
    made.bucket = bucket;
    return made;
  };
  push(stage.victim.trainers[0], submission(0, 1));
  push(stage.victim.trainers[0], submission(1, 2));
  stage.cluster.turns(10);
  push(stage.victim.trainers[1], submission(0, 2));
  stage.cluster.turns(10);
  const std::vector<api::Event> events = stage.host.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == api::Event::Kind::kMismatch);
  CHECK(events[0].ours.bucket == 1);
  CHECK(events[0].theirs.bucket == 2);
}

TEST_CASE("a rank that says another operation or source than its neighbour is a mismatch, too") {
  ipc::Submission ours = honest(0);
  ipc::Submission theirs = honest(0);
  SECTION("operation") {
    theirs.operation = kAllGather;
  }
  SECTION("source") {
    ours.operation = theirs.operation = kBroadcast;
    theirs.source = 1;
  }
  Stage stage;
  push(stage.victim.trainers[0], ours);
  stage.cluster.turns(10);
  push(stage.victim.trainers[1], theirs);
  stage.cluster.turns(10);
  const std::vector<api::Event> events = stage.host.events();
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == api::Event::Kind::kMismatch);
  CHECK(static_cast<std::uint8_t>(events[0].ours.operation) == ours.operation);
  CHECK(static_cast<std::uint8_t>(events[0].theirs.operation) == theirs.operation);
  CHECK(events[0].theirs.source == theirs.source);
}

TEST_CASE("a rank that never takes its completions loses its session when the ring is full") {
  Stage stage;
  ipc::RoundsInFlight neighbour;
  for (std::uint32_t round = 0; round < 2 * ipc::kRingEntries; ++round) {
    (void)stage.victim.trainers[0].submissions.push(honest(round));
    if (!neighbour.full()) {
      push(stage.victim.trainers[1], honest(neighbour.next()));
      neighbour.submit();
    }
    ipc::Completion completion;
    stage.cluster.turns(50);
    while (stage.victim.trainers[1].completions.pop(completion)) {
      CHECK(neighbour.complete(completion.round));
    }
    CHECK(stage.other_works());
  }
  CHECK(stage.times_broken() == 1);
  CHECK(stage.fault == RankFault::kCompletionsNotTaken);
}

TEST_CASE("a completion head that cannot be breaks its rank once") {
  const std::uint32_t head = GENERATE(1u, 64u, 0x8000'0000u, 0xffff'ffffu);
  Stage stage;
  stage.hostile().channel->channel.completions().head.store(head);
  for (std::uint32_t round = 0; round < ipc::kRingEntries + 8; ++round) {
    ipc::Completion completion;
    for (TrainerEnd& trainer : stage.victim.trainers) (void)trainer.submissions.push(honest(round));
    stage.cluster.turns(50);
    (void)stage.victim.trainers[1].completions.pop(completion);
  }
  CHECK(stage.times_broken() == 1);
  CHECK(stage.other_works());
}

TEST_CASE("a rank far ahead of its job waits, and does not keep the loop awake") {
  Stage stage;
  for (std::uint32_t round = 0; round < kMaxInFlightRounds; ++round)
    push(stage.hostile(), honest(round));
  stage.cluster.turns(200);
  CHECK(stage.times_broken() == 0);
  CHECK(stage.host.engine().prepare_sleep());
  stage.host.engine().end_sleep();
  CHECK(stage.other_works());
}

TEST_CASE("a rank with more rounds in flight than it may have is broken, and counted") {
  Stage stage;
  const std::uint32_t complete = GENERATE(0u, 1u, 5u);
  for (std::uint32_t round = 0; round < complete; ++round) {
    for (TrainerEnd& trainer : stage.victim.trainers) push(trainer, honest(round));
    stage.cluster.turns(50);
  }
  std::uint32_t round = complete;
  for (; round < complete + kMaxInFlightRounds; ++round) push(stage.hostile(), honest(round));
  stage.cluster.turns(100);
  CHECK(stage.times_broken() == 0);
  CHECK(stage.count_of(RankFault::kTooManyRounds) == 0);
  push(stage.hostile(), honest(round));
  stage.cluster.turns(100);
  CHECK(stage.times_broken() == 1);
  CHECK(stage.fault == RankFault::kTooManyRounds);
  CHECK(stage.count_of(RankFault::kTooManyRounds) == 1);
  CHECK(stage.other_works());
}

TEST_CASE("garbage all over a channel breaks nothing but its rank") {
  std::mt19937_64 random(11);
  for (int attempt = 0; attempt < 50; ++attempt) {
    Stage stage;
    ipc::Channel& channel = stage.hostile().channel->channel;
    for (int step = 0; step < 40; ++step) {
      auto* ring = reinterpret_cast<std::byte*>(&channel.submissions());
      auto* end = reinterpret_cast<std::byte*>(channel.slot(0).data());
      for (int n = 0; n < 64; ++n) {
        ring[random() % static_cast<std::uint64_t>(end - ring)] = static_cast<std::byte>(random());
      }
      // The honest rank submits no more rounds than may be in flight.
      if (step % 5 == 0)
        push(stage.victim.trainers[1], honest(static_cast<std::uint32_t>(step / 5)));
      stage.cluster.turns(3);
    }
    REQUIRE(stage.times_broken() <= 1);
    REQUIRE(stage.other_works());
  }
}
