// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "dataplane/model/operation.h"
#include "tests/shim/client_fake_daemon.h"
#include "trainer-shim/client/yields.h"

using namespace gradplane;
using namespace gradplane::test;

namespace {

constexpr std::uint16_t kWorld = 2;  // as in options_for()
constexpr auto kAllReduce = static_cast<std::uint8_t>(Operation::kAllReduce);
constexpr auto kReduceScatter = static_cast<std::uint8_t>(Operation::kReduceScatter);
constexpr auto kAllGather = static_cast<std::uint8_t>(Operation::kAllGather);
constexpr auto kBroadcast = static_cast<std::uint8_t>(Operation::kBroadcast);
constexpr auto kExchange = static_cast<std::uint8_t>(Operation::kExchange);

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void be_ready(AttachedRank& rank, const protocol::Ready& terms) {
  send(rank.peer.connection.get(), terms);
  REQUIRE(gp_wait_ready(rank.session, 1000, nullptr, 0) == GP_OK);
}

}  // namespace

TEST_CASE("rounds go out and sums come back") {
  AttachedRank rank;
  for (std::uint32_t round = 0; round < 100; ++round) {
    auto* memory = static_cast<float*>(gp_round_memory(rank.session, round));
    memory[0] = static_cast<float>(round);
    REQUIRE(rank.submit(round, {1, 1, 1, 0, 5, 0}) == GP_OK);
    ipc::Submission submission;
    REQUIRE(rank.peer.submissions.pop(submission));
    REQUIRE(submission.round == round);
    REQUIRE(submission.elements == 1);
    REQUIRE(submission.bucket == 5);
    float value;
    std::memcpy(&value, rank.peer.channel.slot(round).data(), sizeof(value));
    value *= 2;
    std::memcpy(rank.peer.channel.slot(round).data(), &value, sizeof(value));
    REQUIRE(rank.peer.complete(round, 2, round));
    REQUIRE(gp_wait(rank.session, 1000) == GP_OK);
    gp_completion completion{};
    REQUIRE(gp_poll(rank.session, &completion) == 1);
    REQUIRE(completion.round == round);
    REQUIRE(completion.status == GP_OK);
    REQUIRE(completion.contributors == 2);
    REQUIRE(completion.partial_blocks == round);
    REQUIRE(memory[0] == 2 * static_cast<float>(round));
    REQUIRE(gp_poll(rank.session, &completion) == 0);
  }
}

TEST_CASE("no more rounds are in flight than the oldest allows") {
  AttachedRank rank;
  const std::uint32_t max_count = gp_rounds_in_flight_max(rank.session);
  for (std::uint32_t round = 0; round < max_count; ++round) REQUIRE(rank.submit(round) == GP_OK);
  CHECK(rank.submit(max_count) == GP_FULL);
  gp_completion completion{};
  REQUIRE(rank.peer.complete(1));  // not the oldest round
  REQUIRE(gp_poll(rank.session, &completion) == 1);
  CHECK(rank.submit(max_count) == GP_FULL);
  REQUIRE(rank.peer.complete(0));
  REQUIRE(gp_poll(rank.session, &completion) == 1);
  CHECK(rank.submit(max_count) == GP_OK);
  CHECK(rank.submit(max_count + 1) == GP_OK);
  CHECK(rank.submit(max_count + 2) == GP_FULL);
}

TEST_CASE("a submission that the daemon would refuse is refused here") {
  AttachedRank rank;
  CHECK(rank.submit(1) == GP_BAD_ARGUMENT);  // not the next round
  CHECK(rank.submit(0, {0, 1, 1, 0, 0, 0}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {1025, 1, 1, 0, 0, 0}) == GP_BAD_ARGUMENT);  // 4100 bytes in a slot of 4096
  CHECK(rank.submit(0, {513, 2, 1, 0, 0, 0}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {8, 0, 1, 0, 0, 0}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {8, 7, 1, 0, 0, 0}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {8, 1, 1, 0, 4097, 0}) == GP_BAD_ARGUMENT);  // no such bucket
  const gp_statement said{8, 1, 1, 0, 0, 0};
  CHECK(gp_submit(nullptr, 0, &said) == GP_BAD_ARGUMENT);
  CHECK(gp_submit(rank.session, 0, nullptr) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {1024, 1, 1, 0, 0, 0}) == GP_OK);
}

TEST_CASE("what does not fit the operation of a submission is refused here") {
  AttachedRank rank;  // one of two ranks
  CHECK(rank.submit(0, {8, 1, 0, 0, 0, 0}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {8, 1, 6, 0, 0, 0}) == GP_BAD_ARGUMENT);
  // An all_reduce has no source.
  CHECK(rank.submit(0, {8, 1, kAllReduce, 1, 0, 0}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {8, 1, kBroadcast, kWorld, 0, 0}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {8, 1, kBroadcast, 0, 5, 0}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {kWorld + 1, 1, kAllGather, 0, 0, 0}) == GP_BAD_ARGUMENT);  // unequal shards
  CHECK(rank.submit(0, {kWorld, 1, kAllGather, 1, 0, 0}) == GP_BAD_ARGUMENT);
}

TEST_CASE("only a sum is of a bucket, and what only copies reduces nothing") {
  AttachedRank rank;
  constexpr auto kMax = static_cast<std::uint8_t>(Reduction::kMax);
  CHECK(rank.submit(0, {8, 1, kAllReduce, 0, 0, 4}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {8, 1, kAllReduce, 0, 5, kMax}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {8, 1, kBroadcast, 0, 0, kMax}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {kWorld, 1, kAllGather, 0, 0, kMax}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {8, 1, kAllReduce, 0, 0, kMax}) == GP_OK);
}

TEST_CASE("an exchange is of a floating type and of a selection that the plan has") {
  AttachedRank rank;
  CHECK(rank.submit(0, {8, 1, kExchange, 0, 0, 0}) == GP_BAD_ARGUMENT);  // the job has no exchanges
  be_ready(rank, {.epoch = 1, .nodes = 2, .selections = 3});
  CHECK(rank.submit(0, {8, 1, kExchange, 3, 0, 0}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {8, 5, kExchange, 0, 0, 0}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {8, 1, kExchange, 2, 4097, 0}) == GP_BAD_ARGUMENT);
  CHECK(rank.submit(0, {8, 1, kExchange, 2, 4096, 0}) == GP_OK);
}

TEST_CASE("the daemon reads of a submission what the rank said") {
  AttachedRank rank;
  be_ready(rank, {.epoch = 1, .nodes = 2, .selections = kMaxSelections});
  const gp_statement all_said[] = {{7, 5, kBroadcast, kWorld - 1, 0, 0},
                                   {4 * kWorld, 2, kAllGather, 0, 0, 0},
                                   {kWorld, 3, kReduceScatter, 0, 0, 3},
                                   {9, 4, kAllReduce, 0, 4096, 0},
                                   {5, 4, kExchange, kMaxSelections - 1, 17, 0}};
  for (std::uint32_t round = 0; round < std::size(all_said); ++round) {
    const gp_statement& said = all_said[round];
    REQUIRE(rank.submit(round, said) == GP_OK);
    ipc::Submission read;
    REQUIRE(rank.peer.submissions.pop(read));
    CHECK(read.round == round);
    CHECK(read.elements == said.elements);
    CHECK(read.element_type == said.element_type);
    CHECK(read.operation == said.operation);
    CHECK(read.source == said.source);
    CHECK(read.bucket == said.bucket);
    CHECK(read.reduction == said.reduction);
  }
}

TEST_CASE("the daemon's doorbell rings only while it sleeps") {
  AttachedRank rank;
  REQUIRE(rank.submit(0) == GP_OK);
  const int doorbell = rank.peer.daemon_doorbell.listen.get();
  char ring;
  CHECK(::recv(doorbell, &ring, sizeof(ring), MSG_DONTWAIT) < 0);
  ipc::announce_sleep(rank.peer.channel.daemon_sleeps());
  REQUIRE(rank.submit(1) == GP_OK);
  CHECK(::recv(doorbell, &ring, sizeof(ring), MSG_DONTWAIT) == sizeof(ring));
}

TEST_CASE("a sleeping trainer is woken by a completion and by gp_wake") {
  AttachedRank rank;
  REQUIRE(rank.submit(0) == GP_OK);
  std::thread daemon([&] {
    while (!ipc::is_asleep(rank.peer.channel.trainer_sleeps())) std::this_thread::yield();
    REQUIRE(rank.peer.complete(0));
    ipc::ring_doorbell(rank.peer.trainer_doorbell.ring.get());
  });
  gp_completion completion{};
  int got = 0;
  while ((got = gp_poll(rank.session, &completion)) == 0) {
    REQUIRE(gp_wait(rank.session, 1000) == GP_OK);
  }
  daemon.join();
  CHECK(got == 1);
  CHECK_FALSE(ipc::is_asleep(rank.peer.channel.trainer_sleeps()));

  std::thread waking([&] {
    while (!ipc::is_asleep(rank.peer.channel.trainer_sleeps())) std::this_thread::yield();
    gp_wake(rank.session);
  });
  CHECK(gp_wait(rank.session, 1000) == GP_OK);
  waking.join();
}

TEST_CASE("no gp_wake is lost, whatever the trainer does at the time") {
  AttachedRank rank;
  // If a wake is lost, the wait lasts until its limit. On a machine that is stopped meanwhile, a
  // few other waits last as long. So only many of them are a failure, which ends the test early.
  constexpr std::uint32_t kLimitMs = 1000;
  constexpr int kTooMany = 20;
  std::atomic<int> lost{0};
  const auto wait = [&] {
    rank.peer.channel.beat();
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE(gp_wait(rank.session, kLimitMs) == GP_OK);
    if (std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(kLimitMs)) ++lost;
  };
  for (int i = 0; i < 100 && lost < kTooMany; ++i) {  // wakes before the wait
    gp_wake(rank.session);
    wait();
  }
  constexpr int kWakes = 5000;
  constexpr int kSleepsEvery = 50;
  static_assert(kWakes / kSleepsEvery > kTooMany);
  std::atomic<int> seen{0};
  std::thread waking([&] {  // wakes at about the beginning of the wait
    for (int i = 0; i < kWakes && lost < kTooMany; ++i) {
      const auto waits = [&] { return seen <= i && lost < kTooMany; };
      while (seen < i && lost < kTooMany) std::this_thread::yield();
      // Most waits end before the trainer sleeps.
      const bool sleeps = i % kSleepsEvery == 0;
      while (sleeps && waits() && !ipc::is_asleep(rank.peer.channel.trainer_sleeps()))
        std::this_thread::yield();
      gp_wake(rank.session);
    }
  });
  for (; seen < kWakes && lost < kTooMany; ++seen) wait();
  waking.join();
  CHECK(lost < kTooMany);
}

TEST_CASE("a rank yields until somebody keeps the processor, and then sleeps for a while") {
  using gradplane::Duration;
  using gradplane::Instant;
  using gradplane::client::Yields;
  const Instant begin = Instant::from_ns(1'000'000'000);
  Yields yields;
  REQUIRE(yields.may_yield(begin));
  yields.on_yield(begin, begin + Yields::kLong);
  CHECK(yields.may_yield(begin + Yields::kLong));
  const Instant late = begin + Yields::kLong + Duration::us(1);
  yields.on_yield(begin, late);
  CHECK_FALSE(yields.may_yield(late));
  CHECK_FALSE(yields.may_yield(late + Yields::kPause - Duration::ns(1)));
  CHECK(yields.may_yield(late + Yields::kPause));
}

TEST_CASE("a completion that cannot be ends the session") {
  AttachedRank rank;
  gp_completion completion{};
  SECTION("of a round that was never submitted") {
    REQUIRE(rank.peer.complete(3));
  }
  SECTION("of a round that is complete") {
    REQUIRE(rank.submit(0) == GP_OK);
    REQUIRE(rank.peer.complete(0));
    REQUIRE(gp_poll(rank.session, &completion) == 1);
    REQUIRE(rank.peer.complete(0));
  }
  SECTION("by more contributors than ranks") {
    REQUIRE(rank.submit(0) == GP_OK);
    REQUIRE(rank.peer.complete(0, 3));
  }
  SECTION("with more partial blocks than a round can have") {
    REQUIRE(rank.submit(0) == GP_OK);
    REQUIRE(rank.peer.complete(0, 2, kMaxBlocksPerRound + 1));
  }
  SECTION("with an unknown status") {
    REQUIRE(rank.submit(0) == GP_OK);
    REQUIRE(rank.peer.completions.push({.round = 0, .status = ipc::CompletionStatus{9}}));
  }
  SECTION("an index out of reach") {
    rank.peer.channel.completions().tail.store(0x12345678);
  }
  CHECK(gp_poll(rank.session, &completion) == -GP_BROKEN);
  CHECK_FALSE(std::string(gp_failure(rank.session)).empty());
  CHECK(rank.submit(1) == GP_BROKEN);
  CHECK(gp_wait(rank.session, 1000) == GP_BROKEN);
  CHECK(gp_wait_ready(rank.session, 1000, nullptr, 0) == GP_BROKEN);
}

TEST_CASE("a submission ring whose head cannot be ends the session") {
  AttachedRank rank;
  gp_completion completion{};
  int status = GP_OK;
  // The client reads the head when the ring seems full, after as many rounds as it has entries.
  for (std::uint32_t round = 0; status == GP_OK && round < 100; ++round) {
    rank.peer.channel.submissions().head.store(0xdeadbeef);
    status = rank.submit(round);
    if (status != GP_OK) break;
    REQUIRE(rank.peer.complete(round));
    REQUIRE(gp_poll(rank.session, &completion) == 1);
  }
  CHECK(status == GP_BROKEN);
}

TEST_CASE("a failed round is a failed job, and is told so") {
  AttachedRank rank;
  REQUIRE(rank.submit(0) == GP_OK);
  REQUIRE(rank.peer.completions.push({.round = 0, .status = ipc::CompletionStatus::kFailed}));
  send(rank.peer.connection.get(), protocol::JobFailed{"rank 0 died"});
  REQUIRE(gp_wait(rank.session, 1000) == GP_OK);
  gp_completion completion{};
  REQUIRE(gp_poll(rank.session, &completion) == 1);
  CHECK(completion.status == GP_JOB_FAILED);
  CHECK(gp_wait(rank.session, 1000) == GP_JOB_FAILED);
  CHECK(std::string(gp_failure(rank.session)) == "rank 0 died");
  CHECK(rank.submit(1) == GP_JOB_FAILED);
  CHECK(gp_poll(rank.session, &completion) == -GP_JOB_FAILED);
}

TEST_CASE("a daemon that goes away is noticed; what it completed before is kept") {
  AttachedRank rank;
  REQUIRE(rank.submit(0) == GP_OK);
  REQUIRE(rank.submit(1) == GP_OK);
  REQUIRE(rank.peer.complete(0));
  rank.peer.connection.reset();
  gp_completion completion{};
  REQUIRE(gp_wait_ready(rank.session, 1000, nullptr, 0) == GP_BROKEN);
  CHECK(contains(gp_failure(rank.session), "closed the connection"));
  CHECK(gp_poll(rank.session, &completion) == 1);
  CHECK(gp_poll(rank.session, &completion) == -GP_BROKEN);
  CHECK(gp_wait(rank.session, 1000) == GP_BROKEN);
  CHECK(gp_register_bucket(rank.session, 1, 1, nullptr, 0) == GP_BROKEN);
}

TEST_CASE("who has left submits no more, and still gets what the daemon completes") {
  AttachedRank rank;
  REQUIRE(rank.submit(0) == GP_OK);
  REQUIRE(rank.submit(1) == GP_OK);
  REQUIRE(rank.peer.complete(0));
  gp_leave(rank.session);
  CHECK(receive_text(rank.peer.connection.get()) == protocol::encode(protocol::Detach{false}));
  CHECK(receive_text(rank.peer.connection.get()).empty());  // the end of the connection
  CHECK(rank.submit(2) == GP_BROKEN);
  CHECK(gp_wait(rank.session, 1000) == GP_BROKEN);
  std::memset(rank.peer.channel.slot(1).data(), 7, 8);
  REQUIRE(rank.peer.complete(1));
  gp_completion completion{};
  CHECK(gp_poll(rank.session, &completion) == 1);
  CHECK(gp_poll(rank.session, &completion) == 1);
  CHECK(completion.round == 1);
  CHECK(static_cast<const char*>(gp_round_memory(rank.session, 1))[7] == 7);
  CHECK(gp_poll(rank.session, &completion) == -GP_BROKEN);
  gp_leave(rank.session);  // a second call does nothing
  gp_leave(nullptr);
}

TEST_CASE("a daemon whose beat stands still is given up") {
  AttachedRank rank;
  REQUIRE(rank.submit(0) == GP_OK);
  int status = GP_OK;
  int waits = 0;
  for (; status == GP_OK && waits < 20; ++waits) status = gp_wait(rank.session, 1000);
  CHECK(status == GP_BROKEN);
  CHECK(waits >= 5);
  CHECK(contains(gp_failure(rank.session), "no sign of life"));
}

TEST_CASE("a wait of no time looks at the socket all the same, and keeps errno") {
  AttachedRank rank;
  errno = 4321;
  CHECK(gp_wait(rank.session, 0) == GP_OK);
  CHECK(gp_wait(rank.session, -5) == GP_OK);
  send(rank.peer.connection.get(), protocol::JobFailed{"over"});
  CHECK(gp_wait(rank.session, 0) == GP_JOB_FAILED);
  CHECK(errno == 4321);
}

TEST_CASE("a forked child forgets the session and the parent goes on") {
  AttachedRank rank;
  REQUIRE(rank.submit(0) == GP_OK);
  const pid_t child = ::fork();
  if (child == 0) {
    gp_abandon(rank.session);
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  CHECK(gp_wait(rank.session, 0) == GP_OK);
  REQUIRE(rank.peer.complete(0));
  gp_completion completion{};
  CHECK(gp_poll(rank.session, &completion) == 1);
  send(rank.peer.connection.get(), protocol::Ready{1, 1});
  CHECK(gp_wait_ready(rank.session, 1000, nullptr, 0) == GP_OK);
}
