// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tests/support/catch.h"
#include "tests/unit/session_bench.h"

using namespace gradplane;
using namespace gradplane::protocol;
using namespace gradplane::session;
using namespace gradplane::session::testing;

namespace {

/// Two keys whose jobs have the same id. An id has 32 bits, so among so many keys some have the
/// same.
std::pair<JobKey, JobKey> keys_of_one_number() {
  std::unordered_map<std::uint32_t, JobKey> known;
  for (std::uint32_t n = 0; n < 400000; ++n) {
    JobKey key{};
    std::memcpy(key.data(), &n, sizeof n);
    const auto [other, fresh] = known.emplace(job_id_of(key), key);
    if (!fresh) return {other->second, key};
  }
  FAIL("no two keys share a number");
  return {};
}

}  // namespace

TEST_CASE("a member takes the plan for its present attempt and ranks, no other") {
  MemberBench bench;
  const auto join = letters<Join>(bench.outbox);
  REQUIRE(join.size() == 1);
  const std::uint32_t attempt = join[0].second.attempt;
  bench.outbox.actions.clear();
  SECTION("it fits") {
    bench.member.on_message(prepare(attempt, 5), kNow);
    CHECK(letters<Prepared>(bench.outbox).size() == 1);
    CHECK(count_actions<InstallJob>(bench.outbox) == 1);
  }
  SECTION("another attempt: the present one goes on waiting") {
    bench.member.on_message(prepare(GENERATE(0U, 2U), 5), kNow);
    CHECK(letters<PlanRefused>(bench.outbox).size() == 1);
    CHECK(count_actions<NotifyRank>(bench.outbox) == 0);
    CHECK(bench.member.has_jobs());
  }
  SECTION("other ranks: it ends, and takes back what it asked for since") {
    bench.member.on_message(prepare(attempt, 5, 1), kNow);
    REQUIRE(bench.outbox.letters.size() == 2);
    CHECK(std::holds_alternative<PlanRefused>(bench.outbox.letters[0].message));
    REQUIRE(std::holds_alternative<Join>(bench.outbox.letters[1].message));
    CHECK(std::get<Join>(bench.outbox.letters[1].message).ranks.empty());
    CHECK(count_actions<NotifyRank>(bench.outbox) == 1);
    CHECK(!bench.member.has_jobs());
  }
  SECTION("another number of ranks") {
    Prepare other = prepare(attempt, 5);
    other.world_size = 3;
    bench.member.on_message(other, kNow);
    CHECK(letters<PlanRefused>(bench.outbox).size() == 1);
    CHECK(!bench.member.has_jobs());
  }
  SECTION("other settings") {
    Prepare other = prepare(attempt, 5);
    SECTION("block.bytes") {
      other.settings.block_bytes = 512;
    }
    SECTION("rounds.bytes") {
      other.settings.round_bytes = 65536;
    }
    SECTION("security.authenticate") {
      other.settings.authenticate = false;
    }
    bench.member.on_message(other, kNow);
    CHECK(letters<PlanRefused>(bench.outbox).size() == 1);
    CHECK(count_actions<InstallJob>(bench.outbox) == 0);
    CHECK(!bench.member.has_jobs());
  }
  SECTION("a plan of another epoch, or none at all") {
    Prepare other = prepare(attempt, 5);
    other.epoch = 6;
    if (GENERATE(false, true)) other.plan.clear();
    bench.member.on_message(other, kNow);
    CHECK(letters<PlanRefused>(bench.outbox).size() == 1);
    CHECK(count_actions<InstallJob>(bench.outbox) == 0);
  }
}

TEST_CASE("a member takes no plan with a rank that the job does not have") {
  MemberBench bench;
  const std::uint32_t attempt = letters<Join>(bench.outbox).at(0).second.attempt;
  api::Plan plan;
  plan.epoch = 5;
  plan.members = {{0, {2}}, {1, {0}}};
  plan.trees = {{1, 0, {api::kNoNode, 0}}};
  bench.member.on_message(Prepare{kKey, attempt, 5, 5, 2, {}, "job", encode_plan(plan).value()},
                          kNow);
  CHECK(count_actions<InstallJob>(bench.outbox) == 0);
  const auto failed = letters<PlanRefused>(bench.outbox);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].second.reason == "node n1: the plan names a rank that the job does not have");
}

TEST_CASE("a node installs as many jobs as it has slots, and no more") {
  const SessionConfig c = config(1, 0);
  Outbox outbox;
  Member member(c, outbox);
  api::Plan plan;
  plan.epoch = 5;
  plan.members = {{0, {0, 1}}, {1, {}}};
  plan.trees = {{1, 1, {1, api::kNoNode}}};
  const std::vector<std::byte> bytes = encode_plan(plan).value();
  for (std::uint8_t job = 1; job <= kMaxJobs + 1; ++job)
    member.on_message(Prepare{key_number(job), 0, 5, 5, 2, {}, "job", bytes}, kNow);
  CHECK(count_actions<InstallJob>(outbox) == kMaxJobs);
  CHECK(letters<PlanRefused>(outbox).size() == 1);
  CHECK(outbox.refusals[static_cast<std::size_t>(Refusal::kNoSlot)] == 1);
}

TEST_CASE("two jobs whose keys give the same number are never there together") {
  const auto [first, second] = keys_of_one_number();
  SECTION("at the coordinator") {
    CoordinatorBench bench;
    bench.coordinator.on_message(1, Join{first, 1, kRootUser, 2, {0}, "first"}, bench.now);
    bench.outbox.letters.clear();
    bench.coordinator.on_message(1, Join{second, 2, kRootUser, 2, {0}, "second"}, bench.now);
    const auto refused = letters<Refused>(bench.outbox);
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].second.key == second);
    CHECK(refused[0].second.reason.find("gives the same number as that of job first") !=
          std::string::npos);
  }
  SECTION("at a member") {
    const SessionConfig c = config(1, 0);
    Outbox outbox;
    Member member(c, outbox);
    REQUIRE(member.attach({7, kRootUser, first, 0, 2, "first"}, kNow).ok());
    const Status again = member.attach({8, kRootUser, second, 0, 2, "second"}, kNow);
    REQUIRE(!again.ok());
    CHECK(again.error().message.find("gives the same number") != std::string::npos);
  }
}

TEST_CASE("a member sends what rank 0 says of its buckets, when the job is ready") {
  const auto rank = static_cast<std::uint16_t>(GENERATE(0, 1));
  const SessionConfig c = config(1, 0);
  Outbox outbox;
  Member member(c, outbox);
  REQUIRE(member.attach({7, kRootUser, kKey, rank, 2, "job"}, kNow).ok());
  const std::uint32_t attempt = letters<Join>(outbox).at(0).second.attempt;
  member.describe(7, {1, ElementType::kFloat32, 5, {{"a", 0, 5, 0, {}, ""}}});
  member.describe(8, {2, ElementType::kFloat32, 5, {{"a", 0, 5, 0, {}, ""}}});
  member.on_message(prepare(attempt, 5, rank), kNow);
  CHECK_FALSE(member.send_table_part());
  member.on_message(Commit{kKey, 5, 0}, kNow);
  CHECK(member.send_table_part() == (rank == 0));
  CHECK_FALSE(member.send_table_part());
  const auto sent = letters<DescribeBucket>(outbox);
  REQUIRE(sent.size() == (rank == 0 ? 1U : 0U));
  if (rank == 0) CHECK(sent[0].second.first_epoch == 5);
}

TEST_CASE("a member takes bounds of the epoch that it has, and only such as can be") {
  MemberBench bench;
  const std::uint32_t attempt = letters<Join>(bench.outbox).at(0).second.attempt;
  bench.member.on_message(prepare(attempt, 5), kNow);
  bench.outbox.actions.clear();
  const std::vector<std::byte> part =
      encode_table({1, ElementType::kFloat32, 5, {{"a", 0, 5, 0.1F, {}, ""}}}).at(0);
  bench.member.on_message(BucketBounds{kKey, 4, 0, part}, kNow);
  CHECK(bench.outbox.actions.empty());
  bench.member.on_message(BucketBounds{kKey, 5, 0, {}}, kNow);
  CHECK(count_actions<InstallBounds>(bench.outbox) == 0);
  bench.member.on_message(BucketBounds{kKey, 5, 0, part}, kNow);
  CHECK(count_actions<InstallBounds>(bench.outbox) == 1);
  bench.member.on_message(BucketBounds{kKey, 5, 0, part}, kNow);
  CHECK(count_actions<InstallBounds>(bench.outbox) == 0);
}

TEST_CASE("a member heeds the epoch that it has, no other") {
  MemberBench bench;
  const std::uint32_t attempt = letters<Join>(bench.outbox).at(0).second.attempt;
  bench.member.on_message(prepare(attempt, 5), kNow);
  bench.outbox.actions.clear();
  const auto heeded = [](const Action& action) { return !std::holds_alternative<LogLine>(action); };
  for (const NodeMessage& message :
       std::vector<NodeMessage>{Commit{kKey, 4, 0}, Abort{kKey, 4, "x"}, Failed{kKey, 6, "x"},
                                Finished{kKey, 4}, WaitingFor{kKey, attempt, 1, {1}, {}},
                                Refused{kKey, attempt, {0}, "x"}, Commit{key_number(2), 5, 0}}) {
    bench.member.on_message(message, kNow);
    CHECK(std::none_of(bench.outbox.actions.begin(), bench.outbox.actions.end(), heeded));
  }
  bench.member.on_message(prepare(attempt, 6), kNow);
  CHECK(letters<PlanRefused>(bench.outbox).size() == 1);
  CHECK(count_actions<InstallJob>(bench.outbox) == 0);
  bench.member.on_message(Commit{kKey, 5, 0}, kNow);
  CHECK(count_actions<NotifyRank>(bench.outbox) == 1);
  bench.member.on_message(Commit{kKey, 5, 0}, kNow);
  CHECK(count_actions<NotifyRank>(bench.outbox) == 0);
  bench.member.on_message(Finished{kKey, 5}, kNow);
  CHECK(count_actions<RemoveJob>(bench.outbox) == 1);
}

TEST_CASE("answers to an earlier attempt are ignored by who waits") {
  MemberBench bench;
  const std::uint32_t attempt = letters<Join>(bench.outbox).at(0).second.attempt;
  bench.outbox.actions.clear();
  bench.member.on_message(Refused{kKey, attempt + 1, {0}, "x"}, kNow);
  bench.member.on_message(WaitingFor{kKey, attempt + 1, 1, {1}, {}}, kNow);
  bench.member.on_message(Failed{kKey, 5, "x"}, kNow);
  CHECK(bench.outbox.actions.empty());
  bench.member.on_message(WaitingFor{kKey, attempt, 1, {1}, {}}, kNow);
  CHECK(count_actions<NotifyRank>(bench.outbox) == 1);
  bench.member.on_message(Refused{kKey, attempt, {1}, "not ours"}, kNow);
  CHECK(count_actions<NotifyRank>(bench.outbox) == 0);
  bench.member.on_message(Refused{kKey, attempt, {0}, "x"}, kNow);
  CHECK(count_actions<NotifyRank>(bench.outbox) == 1);
  CHECK(!bench.member.has_jobs());
  CHECK(!bench.member.on_message(Join{kKey, 1, kRootUser, 2, {0}, ""}, kNow));
}

TEST_CASE("the coordinator commits when every member has answered for this epoch") {
  CoordinatorBench bench;
  const std::uint32_t epoch = bench.prepared_job();
  CHECK(epoch == 41);
  bench.coordinator.on_message(1, Prepared{kKey, epoch - 1, false, 0}, bench.now);
  bench.coordinator.on_message(2, Prepared{kKey, epoch, false, 0}, bench.now);
  bench.coordinator.on_message(2, Prepared{kKey, epoch, false, 0}, bench.now);
  bench.coordinator.on_message(0, Prepared{kKey, epoch, false, 0}, bench.now);
  CHECK(letters<Commit>(bench.outbox).empty());
  bench.coordinator.on_message(1, Prepared{kKey, epoch, false, 0}, bench.now);
  CHECK(letters<Commit>(bench.outbox).size() == 2);
  bench.coordinator.on_message(1, Prepared{kKey, epoch, false, 0}, bench.now);
  CHECK(letters<Commit>(bench.outbox).empty());
}

TEST_CASE("the coordinator sends no plan that breaks the rules of plans") {
  CoordinatorBench bench;
  bench.c.check_plan = [](const api::Plan&) -> Status { return Error{"tree 0 has a cycle"}; };
  bench.join(1, 1, {0});
  bench.outbox.letters.clear();
  bench.join(2, 1, {1});
  REQUIRE(bench.outbox.letters.size() == 2);
  for (const Outbox::Letter& letter : bench.outbox.letters) {
    REQUIRE(std::holds_alternative<Refused>(letter.message));
    CHECK(std::get<Refused>(letter.message).reason ==
          "there is no plan for it: tree 0 has a cycle");
  }
  CHECK(!bench.coordinator.has_jobs());
}

TEST_CASE("a member that lives but does not answer ends the start by name") {
  CoordinatorBench bench;
  const std::uint32_t epoch = bench.prepared_job();
  bench.coordinator.on_message(1, Prepared{kKey, epoch, false, 0}, bench.now);
  CHECK(bench.coordinator.next_deadline() <= bench.now + Duration::seconds(6));
  bench.coordinator.tick(bench.now + Duration::ms(5999));
  CHECK(letters<Failed>(bench.outbox).empty());
  bench.coordinator.tick(bench.now + Duration::ms(6000));
  const auto failed = letters<Failed>(bench.outbox);
  REQUIRE(failed.size() == 2);
  CHECK(failed[0].second.reason == "node n2 does not answer the plan");
  CHECK(!bench.coordinator.has_jobs());
}

TEST_CASE("what changes at a member while the job is starting ends the start") {
  CoordinatorBench bench;
  const std::uint32_t epoch = bench.prepared_job();
  SECTION("the same again is nothing new") {
    bench.join(1, 1, {0});
    CHECK(bench.outbox.letters.empty());
  }
  SECTION("a rank is withdrawn") {
    bench.join(1, 1, {});
    CHECK(letters<Failed>(bench.outbox).size() == 2);
    CHECK(!bench.coordinator.has_jobs());
  }
  SECTION("another attempt begins a new collection") {
    bench.join(1, 2, {0});
    CHECK(letters<Failed>(bench.outbox).size() == 2);
    CHECK(bench.coordinator.has_jobs());
    bench.join(2, 2, {1});
    const auto again = letters<Prepare>(bench.outbox);
    REQUIRE(again.size() == 2);
    CHECK(again[0].second.epoch == epoch + 1);
    CHECK(again[0].second.attempt == 2);
  }
  SECTION("a rank leaves in order") {
    bench.coordinator.on_message(1, Leave{kKey, epoch, 0, true}, bench.now);
    CHECK(letters<Failed>(bench.outbox).size() == 2);
  }
}

TEST_CASE("a leave counts only from the node that hosts the rank, in this epoch") {
  CoordinatorBench bench;
  const std::uint32_t epoch = bench.prepared_job();
  for (const api::NodeId node : std::vector<api::NodeId>{1, 2})
    bench.coordinator.on_message(node, Prepared{kKey, epoch, false, 0}, bench.now);
  bench.outbox.letters.clear();
  bench.coordinator.on_message(1, Leave{kKey, epoch, 1, false}, bench.now);
  bench.coordinator.on_message(0, Leave{kKey, epoch, 0, false}, bench.now);
  bench.coordinator.on_message(1, Leave{kKey, epoch + 1, 0, false}, bench.now);
  CHECK(bench.outbox.letters.empty());
  bench.coordinator.on_message(1, Leave{kKey, epoch, 0, true}, bench.now);
  bench.coordinator.on_message(1, Leave{kKey, epoch, 0, true}, bench.now);
  CHECK(letters<Finished>(bench.outbox).empty());
  bench.coordinator.on_message(2, Leave{kKey, epoch, 1, true}, bench.now);
  CHECK(letters<Finished>(bench.outbox).size() == 2);
  CHECK(!bench.coordinator.on_message(1, Commit{kKey, epoch, 0}, bench.now));
}
