// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <string>
#include <vector>

#include "tests/property/session_network.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::session;
using namespace gradplane::session::testing;

namespace {

using State = RankLog::State;

constexpr std::uint32_t kAlice = 1000;
constexpr std::uint32_t kBob = 1001;
constexpr std::uint32_t kCarol = 1002;
constexpr std::size_t kHalf = kMaxJobs / 2;

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

std::uint64_t refusals(Cluster& cluster, api::NodeId node, Refusal why) {
  return cluster.hosts[node].manager->refusals()[static_cast<std::size_t>(why)];
}

/// Keys that are unique in this test.
struct Keys {
  std::uint8_t last = 0;
  protocol::JobKey fresh() { return key_number(++last); }
};

/// Attaches the first of two ranks of `count` jobs of one user. The jobs wait.
std::vector<RankHandle> wait_on(Cluster& cluster, Keys& keys, api::NodeId node, std::uint32_t user,
                                std::size_t count) {
  std::vector<RankHandle> handles;
  for (std::size_t i = 0; i < count; ++i) {
    handles.push_back(cluster.attach(node, 0, 2, keys.fresh(), user));
    cluster.run(Duration::ms(10));
  }
  return handles;
}

/// Starts `count` jobs of one user that run.
void run_on(Cluster& cluster, Keys& keys, api::NodeId node, std::uint32_t user, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const RankHandle handle = cluster.attach(node, 0, 1, keys.fresh(), user);
    cluster.run(Duration::seconds(1));
    REQUIRE(cluster.ranks[handle].state == State::kReady);
  }
}

std::size_t waiting(Cluster& cluster, const std::vector<RankHandle>& handles) {
  std::size_t count = 0;
  for (const RankHandle handle : handles)
    count += handle != 0 && cluster.ranks[handle].state == State::kWaiting ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("one user never holds every slot of a node, and is told what to do") {
  Cluster cluster(1, 2, 0, sharded_planner());
  Keys keys;
  const auto alice = wait_on(cluster, keys, 1, kAlice, kMaxJobs);
  CHECK(waiting(cluster, alice) == Quotas{}.jobs);
  CHECK(alice.back() == 0);
  CHECK(has(cluster.refusal,
            "node n1 serves 32 jobs of user 1000 already, which is the most for one user "
            "(quotas.jobs); end one of them, or ask the operator to allow more"));
  CHECK(refusals(cluster, 1, Refusal::kUserJobs) == kMaxJobs - Quotas{}.jobs);
  CHECK(waiting(cluster, wait_on(cluster, keys, 1, kBob, 1)) == 1);
}

TEST_CASE("one user never holds every slot of the cluster, from however many nodes") {
  Cluster cluster(1, 9, 0, sharded_planner());
  Keys keys;
  std::vector<RankHandle> alice;
  for (api::NodeId node = 1; node < 9; ++node)
    for (const RankHandle handle : wait_on(cluster, keys, node, kAlice, kMaxJobs / 8))
      alice.push_back(handle);
  cluster.run(Duration::seconds(1));
  CHECK(waiting(cluster, alice) == Quotas{}.jobs);
  CHECK(cluster.ranks[alice.back()].state == State::kFailed);
  CHECK(
      has(cluster.ranks[alice.back()].reason, "node n0 coordinates 32 jobs of user 1000 already"));
  // A node that gets into contact asks a second time, so there may be more refusals.
  CHECK(refusals(cluster, 0, Refusal::kUserJobs) >= kMaxJobs - Quotas{}.jobs);
  CHECK(waiting(cluster, wait_on(cluster, keys, 8, kBob, 1)) == 1);
}

TEST_CASE("root may hold every slot") {
  Cluster cluster(1, 1, 0, sharded_planner());
  Keys keys;
  CHECK(waiting(cluster, wait_on(cluster, keys, 0, kRootUser, kMaxJobs)) == kMaxJobs);
}

TEST_CASE("a user's ranks on a node are bounded, and count until their memory is freed") {
  Cluster cluster(1, 2, 0, sharded_planner());
  const std::uint32_t most = Quotas{}.ranks;
  std::vector<RankHandle> held;
  for (std::uint32_t i = 0; i < most; ++i) {
    const auto job = static_cast<std::uint8_t>(1 + i / kMaxLocalRanks);
    held.push_back(cluster.attach(1, i % kMaxLocalRanks, kMaxRanks, key_number(job), kAlice));
    REQUIRE(held.back() != 0);
  }
  CHECK(cluster.attach(1, 0, 2, key_number(100), kAlice) == 0);
  CHECK(has(cluster.refusal, "node n1 holds memory for 64 ranks of user 1000 already"));
  CHECK(has(cluster.refusal, "(quotas.ranks)"));
  CHECK(refusals(cluster, 1, Refusal::kUserRanks) == 1);
  CHECK(cluster.attach(1, 0, 2, key_number(101), kBob) != 0);
  // A rank whose job has ended still holds its memory.
  cluster.run(Quotas{}.wait + Duration::seconds(10));
  REQUIRE(cluster.ranks[held[0]].state == State::kFailed);
  CHECK(cluster.attach(1, 0, 2, key_number(100), kAlice) == 0);
  // A rank that has left still holds its memory while its process keeps it.
  cluster.detach(held[0], true, true);
  CHECK(cluster.attach(1, 0, 2, key_number(100), kAlice) == 0);
  cluster.hosts[1].manager->memory_freed(held[0]);
  CHECK(cluster.attach(1, 0, 2, key_number(100), kAlice) != 0);
}

TEST_CASE("the ranks of a node are bounded, whoever owns them") {
  Cluster cluster(1, 2, 0, sharded_planner());
  for (std::uint32_t i = 0; i < kMaxRanksOfNode; ++i) {
    const auto job = static_cast<std::uint8_t>(1 + i / kMaxLocalRanks);
    REQUIRE(cluster.attach(1, i % kMaxLocalRanks, kMaxRanks, key_number(job), kRootUser) != 0);
  }
  CHECK(cluster.attach(1, 0, 2, key_number(100), kRootUser) == 0);
  CHECK(has(cluster.refusal,
            "node n1 holds memory for 1024 ranks already, which is the most; wait until some end"));
  CHECK(refusals(cluster, 1, Refusal::kNoSlot) == 1);
}

TEST_CASE("a job waits for its ranks for so long and no longer, and then names the missing") {
  Cluster cluster(1, 2, 0, sharded_planner());
  const RankHandle zero = cluster.attach(1, 0, 4, key_number(1), kAlice);
  const RankHandle two = cluster.attach(1, 2, 4, key_number(1), kAlice);
  const std::string named = "waiting for ranks 1 and 3 of 4 to attach";
  SECTION("by the coordinator's clock") {
    cluster.run(Duration::seconds(300));
    // A rank that attaches and leaves does not start the wait anew.
    cluster.detach(cluster.attach(0, 3, 4, key_number(1), kAlice), true);
    cluster.run(Quotas{}.wait - Duration::seconds(301));
    CHECK(cluster.ranks[zero].state == State::kWaiting);
    cluster.run(Duration::seconds(2));
    CHECK(refusals(cluster, 0, Refusal::kWaitedTooLong) == 1);
    CHECK(refusals(cluster, 1, Refusal::kWaitedTooLong) == 0);
  }
  SECTION("where the coordinator is lost, by that of the next one") {
    cluster.crash(0);
    cluster.run(Quotas{}.wait + Duration::seconds(10));
    CHECK(refusals(cluster, 1, Refusal::kWaitedTooLong) == 1);
  }
  for (const RankHandle handle : {zero, two}) {
    CHECK(cluster.ranks[handle].state == State::kFailed);
    CHECK(has(cluster.ranks[handle].reason, "not ready within 600 s (quotas.wait): " + named));
  }
  CHECK(cluster.hosts[1].manager->jobs().empty());
}

TEST_CASE("while the coordinator is heard, its word alone ends the wait") {
  Cluster cluster(1, 3, 0, sharded_planner());
  cluster.start(2, {}, {.wait = Duration::seconds(60)});
  const RankHandle zero = cluster.attach(2, 0, 2, key_number(1), kAlice);
  cluster.run(Quotas{}.wait - Duration::seconds(1));
  INFO(cluster.ranks[zero].reason);
  CHECK(cluster.ranks[zero].state == State::kWaiting);
  SECTION("which comes") {
    cluster.run(Duration::seconds(2));
    CHECK(has(cluster.ranks[zero].reason, "not ready within 600 s (quotas.wait): waiting for"));
  }
  SECTION("and if it is lost, the node's own, until there is another one") {
    cluster.crash(0);
    cluster.crash(1);
    cluster.run(Duration::seconds(10));
    CHECK(has(cluster.ranks[zero].reason, "not ready within 60 s (quotas.wait): node n0"));
  }
}

TEST_CASE("a job that is ready is not bounded by the wait") {
  Cluster cluster(1, 2, 0, sharded_planner());
  const RankHandle zero = cluster.attach(0, 0, 2, key_number(1), kAlice);
  cluster.attach(1, 1, 2, key_number(1), kAlice);
  cluster.run(Quotas{}.wait * 2);
  CHECK(cluster.ranks[zero].state == State::kReady);
}

TEST_CASE("when every slot is taken, the oldest job of the user with the most that wait goes") {
  Cluster cluster(1, 3, 0, sharded_planner());
  Keys keys;
  const auto alice = wait_on(cluster, keys, 1, kAlice, kHalf);
  const auto bob = wait_on(cluster, keys, 2, kBob, kHalf);
  const auto carol = wait_on(cluster, keys, 0, kCarol, 1);
  cluster.run(Duration::seconds(1));
  CHECK(waiting(cluster, carol) == 1);
  CHECK(cluster.ranks[alice[0]].state == State::kFailed);
  CHECK(has(cluster.ranks[alice[0]].reason,
            "node n0 coordinates 64 jobs, and this one gave way to one of user 1002 while waiting "
            "for rank 1 of 2 to attach; start all ranks of a job together"));
  CHECK(waiting(cluster, alice) == kHalf - 1);
  CHECK(waiting(cluster, bob) == kHalf);
  CHECK(refusals(cluster, 0, Refusal::kGaveWay) == 1);

  // Jobs give way only until the users have about as many.
  const auto more = wait_on(cluster, keys, 0, kCarol, kHalf - 1);
  cluster.run(Duration::seconds(1));
  CHECK(waiting(cluster, more) + 1 == kMaxJobs / 3);
  const auto again = wait_on(cluster, keys, 1, kAlice, 1);
  cluster.run(Duration::seconds(1));
  CHECK(waiting(cluster, again) == 0);
  CHECK(refusals(cluster, 0, Refusal::kNoSlot) > 0);
}

TEST_CASE("jobs that wait keep none out whose ranks are all there") {
  Cluster cluster(1, 3, 0, sharded_planner(2));
  Keys keys;
  SECTION("at the coordinator") {
    wait_on(cluster, keys, 1, kAlice, kHalf);
    wait_on(cluster, keys, 1, kBob, kHalf);
  }
  SECTION("at a node that only sums, which cannot be asked whose jobs wait there") {
    // The coordinator does not know the jobs of this node, because no message reaches it.
    cluster.cut = [](api::NodeId a, api::NodeId b) { return a == 2 || b == 2; };
    wait_on(cluster, keys, 2, kAlice, kHalf);
    wait_on(cluster, keys, 2, kBob, kHalf);
    REQUIRE(cluster.hosts[2].manager->jobs().size() == kMaxJobs);
    cluster.cut = [](api::NodeId, api::NodeId) { return false; };
  }
  const RankHandle ready = cluster.attach(0, 0, 1, keys.fresh(), kCarol);
  cluster.run(Duration::seconds(5));
  INFO(cluster.ranks[ready].reason);
  CHECK(cluster.ranks[ready].state == State::kReady);
}

TEST_CASE("a node takes no slot away for a newcomer whom the coordinator refuses") {
  // Node 2 sums for all jobs, so running and waiting jobs together fill its slots.
  Cluster cluster(1, 3, 0, sharded_planner(2));
  Keys keys;
  run_on(cluster, keys, 1, kAlice, Quotas{}.jobs);
  const auto bob = wait_on(cluster, keys, 2, kBob, kMaxJobs - Quotas{}.jobs);
  REQUIRE(cluster.hosts[2].manager->jobs().size() == kMaxJobs);
  for (int i = 0; i < 3; ++i) {
    const RankHandle refused = cluster.attach(2, 0, 1, keys.fresh(), kAlice);
    REQUIRE(refused != 0);
    cluster.run(Duration::seconds(1));
    CHECK(has(cluster.ranks[refused].reason, "node n0 coordinates 32 jobs of user 1000 already"));
  }
  CHECK(waiting(cluster, bob) == bob.size());
}

TEST_CASE("who holds much takes nothing from who holds less") {
  Cluster cluster(1, 3, 0, sharded_planner());
  Keys keys;
  run_on(cluster, keys, 1, kAlice, kHalf);
  run_on(cluster, keys, 1, kBob, kHalf - 1);
  const auto carol = wait_on(cluster, keys, 2, kCarol, 1);
  cluster.run(Duration::seconds(1));  // the coordinator hears of it first
  const RankHandle more = cluster.attach(1, 0, 1, keys.fresh(), kBob);
  cluster.run(Duration::seconds(1));
  CHECK(waiting(cluster, carol) == 1);
  CHECK(has(cluster.ranks[more].reason, "node n0 coordinates 64 jobs already"));
}

TEST_CASE("no rank holds a slot that it was refused, whenever another one leaves") {
  for (std::int64_t pause = 0; pause < 400; ++pause) {
    Cluster cluster(static_cast<std::uint64_t>(pause), 2, 0, sharded_planner());
    Keys keys;
    const auto others = wait_on(cluster, keys, 0, kAlice, Quotas{}.jobs);
    const auto job = keys.fresh();
    wait_on(cluster, keys, 1, kBob, 1);
    cluster.run(Duration::seconds(1));  // the nodes get into contact
    cluster.attach(1, 0, 3, job, kAlice);
    const RankHandle leaves = cluster.attach(1, 1, 3, job, kAlice);
    cluster.run(Duration::us(pause));
    cluster.detach(leaves, true);
    cluster.run(Duration::us(pause % 20 * 10));
    cluster.detach(others[0], true);
    cluster.run(Duration::seconds(1));
    INFO("after " << pause << " us");
    CHECK(cluster.nobody_waits_without_ranks());
  }
}

TEST_CASE("all ranks of a job on a node are of one user") {
  Cluster cluster(1, 2, 0, sharded_planner());
  const RankHandle first = cluster.attach(1, 0, 3, key_number(1), kAlice);
  CHECK(cluster.attach(1, 1, 3, key_number(1), kBob) == 0);
  CHECK(has(cluster.refusal, "is of user 1000 on node n1, and rank 1 of user 1001"));
  CHECK(refusals(cluster, 1, Refusal::kNotFitting) == 1);
  CHECK(cluster.attach(1, 1, 3, key_number(1), kAlice) != 0);
  // On another node the same person may have another uid.
  CHECK(cluster.attach(0, 2, 3, key_number(1), kBob) != 0);
  cluster.run(Duration::seconds(1));
  CHECK(cluster.ranks[first].state == State::kReady);
}

TEST_CASE("a job whose ranks are all there takes the slot of one of its user that waits") {
  std::vector<Slot> slots;
  for (std::uint8_t i = 0; i < kMaxJobs; ++i)
    slots.push_back({key_number(i), i % 2 == 0 ? kAlice : kBob, i == 4, Instant::from_ns(i)});
  CHECK(who_gives_way(slots, {.user = kAlice, .complete = true}) == key_number(4));
  CHECK(who_gives_way(slots, {.user = kBob, .complete = true}) == std::nullopt);
}

TEST_CASE("no job that gives way takes users further from equal numbers") {
  using Counts = std::map<std::uint32_t, std::size_t>;
  const auto squares = [](const Counts& counts) {
    std::size_t sum = 0;
    for (const auto& [user, jobs] : counts) sum += jobs * jobs;
    return sum;
  };
  const auto count = [](const std::vector<Slot>& slots, bool running_too) {
    Counts counts;
    for (const Slot& slot : slots) counts[slot.user] += slot.waiting || running_too ? 1 : 0;
    return counts;
  };
  std::mt19937_64 dice(7);
  for (int story = 0; story < 2000; ++story) {
    std::vector<Slot> slots;
    for (std::uint8_t i = 0; i < kMaxJobs; ++i)
      slots.push_back({key_number(i), static_cast<std::uint32_t>(1 + dice() % 5), dice() % 4 != 0,
                       Instant::from_ns(static_cast<std::int64_t>(dice() % 100))});
    const Newcomer newcomer{static_cast<std::uint32_t>(1 + dice() % 6), dice() % 2 == 0};
    const auto key = who_gives_way(slots, newcomer);
    const auto waits = [](const Slot& slot) { return slot.waiting; };
    Counts held = count(slots, true);
    if (newcomer.complete && held[newcomer.user] == 0)
      CHECK(key.has_value() == std::any_of(slots.begin(), slots.end(), waits));
    if (!key) continue;
    const Counts before = count(slots, newcomer.complete);
    Slot& victim = slots[std::to_integer<std::size_t>((*key)[0])];
    REQUIRE(victim.waiting);
    for (const Slot& other : slots)
      if (other.waiting && other.user == victim.user) CHECK(victim.since <= other.since);
    victim = {key_number(99), newcomer.user, !newcomer.complete, Instant()};
    const Counts after = count(slots, newcomer.complete);
    CHECK(squares(after) <= squares(before));
    if (!newcomer.complete) CHECK(squares(after) < squares(before));
  }
}
