// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <sstream>
#include <string>

#include "tests/property/seeds.h"
#include "tests/property/session_network.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::session;
using namespace gradplane::session::testing;

namespace {

using State = RankLog::State;

constexpr std::uint64_t kDefaultSeeds = 400;
/// The number of nodes that may coordinate and have no part in the job; the others have ranks.
constexpr api::NodeId kPure = 3;
constexpr std::size_t kNodes = 8;
constexpr std::uint16_t kRanks = kNodes - kPure;

enum class Phase { kWaiting, kBeginning, kRunning, kReplan, kTables, kLeaving, kJoining, kEnding };
constexpr std::uint64_t kPhases = 8;

/// A job on nodes that do not die, with coordinators that die in each phase: for good, with a
/// restart, or with a pause after which they believe that they still coordinate.
class Story {
 public:
  explicit Story(std::uint64_t seed)
      : dice_(seed * 0x9e3779b97f4a7c15 + 1),
        phase_(static_cast<Phase>(seed % kPhases)),
        cluster_(
            seed, kNodes, static_cast<api::NodeId>(pick(kPure)), sharded_planner(),
            [](const api::Plan&) -> Status { return Nothing{}; }, true) {
    cluster_.faults.loss = 0.05 * static_cast<double>(pick(4));
    cluster_.faults.duplication = 0.1 * static_cast<double>(pick(3));
    cluster_.faults.max_delay = Duration::ms(1 + static_cast<std::int64_t>(pick(60)));
  }

  void tell() {
    begin();
    for (std::uint64_t deaths = 1 + pick(2); deaths > 0; --deaths) {
      stir();
      kill_coordinator();
    }
    settle();
    check();
    replan_works();
    leave();
  }

 private:
  std::uint64_t pick(std::uint64_t below) { return dice_() % below; }
  Duration some_ms(std::uint64_t below) {
    return Duration::ms(static_cast<std::int64_t>(pick(below)));
  }
  api::NodeId host_of(std::uint16_t rank) const { return static_cast<api::NodeId>(kPure + rank); }

  void attach(std::uint16_t rank) {
    handles_[rank] = cluster_.attach(host_of(rank), rank, kRanks, key_);
    REQUIRE(handles_[rank] != 0);
  }

  void begin() {
    const std::uint16_t first =
        static_cast<std::uint16_t>(phase_ == Phase::kWaiting ? 1 + pick(kRanks - 1) : kRanks);
    for (std::uint16_t rank = 0; rank < first; ++rank) attach(rank);
    if (phase_ == Phase::kWaiting) {
      cluster_.run(some_ms(500));
      return;
    }
    if (phase_ == Phase::kBeginning) {
      cluster_.run(some_ms(400));
      return;
    }
    cluster_.run(Duration::seconds(30), [this] { return cluster_.all_ranks(State::kReady); });
    REQUIRE(cluster_.all_ranks(State::kReady));
    if (phase_ == Phase::kJoining) {
      take_out();
      for (int turn = 0; turn < 20; ++turn) open_rounds(100), cluster_.run(Duration::ms(500));
      if (cluster_.hosts[kNodes - 1].manager->jobs().empty()) {
        cluster_.ranks.erase(handles_[kRanks - 1]);
        joins_ = true;
      }
    }
  }

  void take_out() {
    PlanChoice choice{PlanKind::kSharded, {}, {kNodes - 1}};
    (void)cluster_.replan(kPure, protocol::job_id_of(key_), choice);
    out_ = true;
  }

  /// Brings the job into the phase in which its coordinator dies.
  void stir() {
    switch (phase_) {
      case Phase::kReplan:
        replan();
        break;
      case Phase::kTables:
        describe();
        break;
      case Phase::kLeaving:
        if (!out_) take_out();
        break;
      case Phase::kJoining:
        if (joins_ && pick(2) == 0) attach(kRanks - 1), joins_ = false;
        break;
      case Phase::kEnding:
        detach_some();
        break;
      default:
        break;
    }
    const std::uint64_t longest = pick(3) == 0 ? 1500 : 150;
    for (std::uint64_t pace = pick(5); pace > 0; --pace) {
      cluster_.run(some_ms(longest));
      cluster_.open_rounds(host_of(static_cast<std::uint16_t>(pick(kRanks))),
                           static_cast<std::uint32_t>(pick(100)));
    }
  }

  void replan() {
    PlanChoice choice{pick(2) == 0 ? PlanKind::kStar : PlanKind::kSharded, {}, {}};
    choice.roots.push_back(host_of(static_cast<std::uint16_t>(pick(kRanks))));
    (void)cluster_.replan(kPure, protocol::job_id_of(key_), choice);
  }

  void describe() {
    const std::size_t tensors = 1 + pick(400);
    for (std::uint64_t more = 1 + pick(2); more > 0; --more) {
      ++buckets_;
      for (const auto& [handle, log] : std::map(cluster_.ranks))
        if (log.state != State::kFailed) cluster_.describe(handle, buckets_, tensors);
      cluster_.run(some_ms(300));
    }
  }

  void detach_some() {
    for (auto& [rank, handle] : handles_)
      if (handle != 0 && pick(2) == 0) cluster_.detach(std::exchange(handle, 0), true);
  }

  /// Shorter than any node's limit, or longer than all nodes' limits. In between, some nodes may
  /// have lost the coordinator and others not. The coordinator then reports the first as lost, and
  /// the others believe it.
  Duration absence() { return pick(2) == 0 ? some_ms(2000) : Duration::seconds(6) + some_ms(6000); }

  /// Strikes the coordinator that the nodes with ranks know.
  void kill_coordinator() {
    const api::NodeId victim = cluster_.hosts[kPure].manager->term().term.coordinator;
    if (victim >= kPure) return;
    switch (pick(4)) {
      case 0:
        cluster_.crash(victim);
        break;
      case 1:
        cluster_.crash(victim);
        cluster_.run(absence());
        cluster_.start(victim);
        break;
      case 2:
        cluster_.paused.insert(victim);
        cluster_.run(absence());
        cluster_.paused.erase(victim);
        break;
      case 3:
        cluster_.cut = [victim](api::NodeId a, api::NodeId b) {
          return a == victim || b == victim;
        };
        cluster_.run(absence());
        cluster_.cut = [](api::NodeId, api::NodeId) { return false; };
    }
    if (pick(2) == 0) cluster_.run(some_ms(9000));
  }

  void open_rounds(std::uint32_t count) {
    for (api::NodeId node = kPure; node < kNodes; ++node) cluster_.open_rounds(node, count);
  }

  void settle() {
    for (std::uint16_t rank = 0; rank < kRanks; ++rank)
      if (!handles_.contains(rank)) attach(rank);
    if (joins_) attach(kRanks - 1);
    if (phase_ == Phase::kEnding)
      for (auto& [rank, handle] : handles_)
        if (handle != 0) cluster_.detach(std::exchange(handle, 0), true);
    for (int turn = 0; turn < 40; ++turn) {
      cluster_.run(Duration::seconds(1));
      open_rounds(300);
    }
    cluster_.run(Duration::seconds(10));
  }

  /// No job may be lost when a node without a part in it dies.
  void check() {
    CHECK(cluster_.open_questions.empty());
    if (phase_ == Phase::kEnding) return;
    std::set<std::uint32_t> begun;
    for (const auto& [handle, log] : cluster_.ranks) {
      INFO("rank " << log.rank << " on node " << log.node << ": " << log.reason);
      const bool may_be_out = log.rank == kRanks - 1 && (out_ || phase_ == Phase::kJoining);
      CHECK((log.state == State::kReady || (may_be_out && log.state == State::kFailed)));
    }
    for (api::NodeId node = kPure; node < kNodes; ++node) {
      for (const auto& [id, job] : cluster_.hosts[node].installed) {
        begun.insert(job.first_epoch);
        const Rounds& rounds = cluster_.hosts[node].rounds.at(id);
        CHECK_FALSE(rounds.horizon);
        CHECK(rounds.later == 0);
        CHECK(rounds.held_by == 0);
        CHECK(rounds.has_part);
        CHECK(cluster_.hosts[node].bounds[id].size() == buckets_);
      }
    }
    CHECK(begun.size() == 1);
  }

  /// The next coordinator can do all that the first one could.
  void replan_works() {
    for (api::NodeId node = 0; node < kPure; ++node)
      if (!cluster_.hosts[node].manager) cluster_.start(node);
    cluster_.run(Duration::seconds(2));
    if (phase_ == Phase::kEnding) return;
    const AskerHandle asker =
        cluster_.replan(kPure, protocol::job_id_of(key_), {PlanKind::kStar, {kPure + 1}, {}});
    REQUIRE(asker != 0);
    cluster_.run(Duration::seconds(10), [this] { return cluster_.open_questions.empty(); });
    REQUIRE(cluster_.answers.contains(asker));
    INFO(cluster_.answers[asker].text);
    const AnswerReplan& answer = cluster_.answers[asker];
    CHECK((answer.committed || answer.text.starts_with("the plan in force stays")));
    const auto before = cluster_.hosts[kPure].rounds.begin()->second.next;
    for (int turn = 0; turn < 5; ++turn) open_rounds(300), cluster_.run(Duration::seconds(1));
    CHECK(cluster_.hosts[kPure].rounds.begin()->second.next >= before + 300);
  }

  void leave() {
    for (const auto& [handle, log] : std::map(cluster_.ranks)) cluster_.detach(handle, true);
    cluster_.run(Duration::seconds(60));
    for (const Host& host : cluster_.hosts) {
      CHECK(host.installed.empty());
      CHECK(host.manager->jobs().empty());
    }
    const std::uint64_t before = cluster_.datagram_count;
    cluster_.run(Duration::seconds(60));
    CHECK(cluster_.datagram_count == before);
  }

  std::mt19937_64 dice_;
  Phase phase_;
  Cluster cluster_;
  std::map<std::uint16_t, RankHandle> handles_;
  std::uint32_t buckets_ = 0;
  bool out_ = false;    // the last node should be taken out of the job
  bool joins_ = false;  // its rank should join again
  protocol::JobKey key_ = key_number(1);
};

}  // namespace

// A failure prints its seed. GRADPLANE_SEED=<seed> runs only that one, GRADPLANE_LOG=1 prints all
// log lines, and GRADPLANE_SEEDS=<count> runs so many seeds.
TEST_CASE("coordinators die in each phase, and no job of others is lost") {
  const auto seeds = gradplane::testing::Seeds::of_simulations(kDefaultSeeds);
  seeds.each("session_takeover_test", [&](std::uint64_t seed) {
    Story story(seed);
    story.tell();
  });
}

TEST_CASE("a member is not lost because a coordinator that comes back had lost it before") {
  Story(982).tell();
}
