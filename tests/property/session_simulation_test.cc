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

constexpr std::uint64_t kDefaultSeeds = 1500;
/// Longer than all waits together that may follow each other: silence, an overdue answer, and
/// backoff.
constexpr Duration kBound = Duration::seconds(60);

/// A planner that trusts every sample: its plan depends on the measurements and is always worth a
/// change, until the network is `calm`.
Planner restless_planner(api::NodeId aggregator, const bool& calm) {
  return [aggregator, &calm](const PlanInput& input) -> Result<PlanOffer> {
    PlanInput wanted = input;
    const bool has_silent_root =
        std::find(input.silent.begin(), input.silent.end(), aggregator) != input.silent.end();
    std::uint64_t sum = 0;
    for (const protocol::LinkSample& link : input.links) sum += link.bits_per_s + link.from;
    if (input.redraw && calm) {
      PlanOffer same{.plan = *input.in_force, .planner = PlanKind::kAuto};
      same.time = same.time_in_force = Duration::seconds(1);
      return same;
    }
    if (input.redraw && sum % 7 == 0) return Error{"no tree reaches everybody"};
    if (input.redraw) {
      const api::NodeId root = input.members[sum % input.members.size()].node;
      wanted.choice = PlanChoice{PlanKind::kStar, {root}};
      if (sum % 3 == 0 && aggregator != api::kNoNode && !has_silent_root)
        wanted.choice->roots = {aggregator};
    }
    Result<PlanOffer> offer = sharded_planner(has_silent_root ? api::kNoNode : aggregator)(wanted);
    offer.value().planner = PlanKind::kAuto;
    offer.value().time = Duration::seconds(1);
    offer.value().time_in_force = Duration::seconds(2);
    return offer;
  };
}

/// A random cluster with a random misfortune, from a seed.
class Story {
 public:
  explicit Story(std::uint64_t seed)
      : dice_(seed * 0x9e3779b97f4a7c15 + 1),
        nodes_(1 + pick(8)),
        world_size_(static_cast<std::uint16_t>(1 + pick(12))),
        coordinator_(static_cast<api::NodeId>(pick(nodes_))),
        aggregator_(pick(2) == 0 ? api::kNoNode : static_cast<api::NodeId>(pick(nodes_))),
        cluster_(seed, nodes_, coordinator_, restless_planner(aggregator_, calm_)) {
    cluster_.redraw.enabled = pick(2) == 0;
    cluster_.redraw.every = Duration::ms(500);
    if (pick(2) == 0) cluster_.planning_takes = Duration::ms(static_cast<std::int64_t>(pick(400)));
    if (aggregator_ != api::kNoNode) cluster_.relays = {aggregator_};
    for (api::NodeId node = 0; node < nodes_; ++node) {
      cluster_.start(node);
      if (seed % 2 == 1) cluster_.hosts[node].manager->greet(cluster_.now);
    }
    for (std::uint16_t rank = 0; rank < world_size_; ++rank)
      home_.push_back(static_cast<api::NodeId>(pick(nodes_)));
  }

  void tell() {
    roughen();
    attach_all();
    describe();
    replan();
    misfortune();
    settle();
    heal();
    come_back();
    leave();
  }

  /// How many nodes have left a job because of another plan.
  std::size_t departures() const { return cluster_.departures; }
  /// How many plans came into force because of measurements.
  std::size_t redraws() const { return redraws_; }

 private:
  std::uint64_t pick(std::uint64_t below) { return dice_() % below; }

  void roughen() {
    cluster_.faults.loss = 0.05 * static_cast<double>(pick(9));
    cluster_.faults.duplication = 0.1 * static_cast<double>(pick(3));
    cluster_.faults.max_delay = Duration::ms(1 + static_cast<std::int64_t>(pick(60)));
  }

  void attach_all() {
    cluster_.first_round = static_cast<std::uint32_t>(pick(2) == 0 ? 0 : 0xffffffff - pick(100));
    for (std::uint16_t rank = 0; rank < world_size_; ++rank) {
      REQUIRE(cluster_.attach(home_[rank], rank, world_size_, key_) != 0);
      if (pick(2) == 0) cluster_.run(Duration::ms(static_cast<std::int64_t>(pick(300))));
    }
  }

  /// Ranks describe their buckets; rank 0 describes some before the job is ready.
  void describe() {
    if (pick(2) == 0) cluster_.run(Duration::ms(static_cast<std::int64_t>(pick(2000))));
    buckets_ = pick(4);
    const std::size_t tensors = 1 + pick(400);
    for (std::uint32_t bucket = 1; bucket <= buckets_; ++bucket) {
      for (const auto& [handle, log] : std::map(cluster_.ranks))
        if (log.state != State::kFailed) cluster_.describe(handle, bucket, tensors);
      cluster_.run(Duration::ms(static_cast<std::int64_t>(pick(300))));
    }
  }

  /// Operators ask for other plans while nodes complete rounds at different speeds.
  void replan() {
    for (std::uint64_t turns = pick(4); turns > 0; --turns) {
      const auto node = static_cast<api::NodeId>(pick(nodes_));
      PlanChoice choice;
      choice.kind = pick(2) == 0 ? PlanKind::kStar : PlanKind::kSharded;
      for (std::uint64_t roots = pick(3); roots > 0; --roots)
        choice.roots.push_back(static_cast<api::NodeId>(pick(nodes_)));
      std::sort(choice.roots.begin(), choice.roots.end());
      choice.roots.erase(std::unique(choice.roots.begin(), choice.roots.end()), choice.roots.end());
      if (pick(8) == 0) cluster_.hosts[node].readiness = Readiness::kRefuses;
      (void)cluster_.replan(static_cast<api::NodeId>(pick(nodes_)), protocol::job_id_of(key_),
                            choice);
      for (std::uint64_t pace = pick(6); pace > 0; --pace) {
        cluster_.run(Duration::ms(static_cast<std::int64_t>(pick(150))));
        cluster_.open_rounds(static_cast<api::NodeId>(pick(nodes_)),
                             static_cast<std::uint32_t>(pick(100)));
        measure();
      }
    }
  }

  /// Some node reports measurements, which may be wrong.
  void measure() {
    std::vector<protocol::LinkSample> samples;
    for (api::NodeId from = 0; from < nodes_ + 1; ++from) {
      if (pick(2) == 0) continue;
      protocol::LinkSample& sample = samples.emplace_back();
      sample.from = from;
      sample.bits_per_s = 1 + pick(protocol::kMaxLinkBitsPerSecond);
      sample.is_lower_bound = pick(3) == 0;
      sample.rate_confidence = static_cast<std::uint8_t>(1 + pick(100));
    }
    cluster_.measure(static_cast<api::NodeId>(pick(nodes_)), samples);
  }

  void misfortune() {
    for (std::uint64_t turns = pick(6); turns > 0; --turns) {
      measure();
      cluster_.run(Duration::ms(static_cast<std::int64_t>(pick(700))));
      for (api::NodeId node = 0; node < nodes_; ++node) cluster_.open_rounds(node, 100);
    }
    cluster_.run(Duration::ms(static_cast<std::int64_t>(pick(2) == 0 ? pick(300) : pick(8000))));
    const auto victim = static_cast<api::NodeId>(pick(nodes_));
    switch (pick(7)) {
      case 0:
        return;  // no misfortune
      case 1:
        cluster_.crash(victim);
        return;
      case 2:
        cluster_.crash(victim);
        cluster_.run(Duration::ms(static_cast<std::int64_t>(pick(5000))));
        cluster_.start(victim);
        return;
      case 3:
        cluster_.cut = [victim](api::NodeId a, api::NodeId b) {
          return a == victim || b == victim;
        };
        cluster_.run(Duration::ms(static_cast<std::int64_t>(pick(10000))));
        cluster_.cut = [](api::NodeId, api::NodeId) { return false; };
        return;
      case 4:  // cut in one direction only
        cluster_.cut = [victim](api::NodeId a, api::NodeId) { return a == victim; };
        cluster_.run(Duration::ms(static_cast<std::int64_t>(pick(10000))));
        cluster_.cut = [](api::NodeId, api::NodeId) { return false; };
        return;
      case 5:
        detach_one(false);
        return;
      case 6:
        detach_one(true);
        return;
    }
  }

  void detach_one(bool clean) {
    for (const auto& [handle, log] : cluster_.ranks) {
      if (log.state == State::kFailed || pick(3) != 0) continue;
      cluster_.detach(handle, clean);
      return;
    }
  }

  /// After a time limit, all ranks of the job are ready, or none is. Those that are not have a
  /// reason.
  void settle() {
    redraws_ = cluster_.redraws();
    calm_ = true;
    for (int turn = 0; turn < 4; ++turn) {
      cluster_.run(kBound / 4);
      for (api::NodeId node = 0; node < nodes_; ++node) cluster_.open_rounds(node, 300);
    }
    cluster_.run(kBound);
    CHECK(cluster_.open_questions.empty());
    std::size_t ready = 0;
    std::set<std::uint32_t> epochs;
    for (const auto& [handle, log] : cluster_.ranks) {
      INFO("rank " << log.rank << " on node " << log.node << ": " << log.reason);
      CHECK(log.state != State::kNew);
      if (log.state == State::kReady) {
        ++ready;
        epochs.insert(log.epoch);
      } else {
        CHECK(!log.reason.empty());
      }
    }
    CHECK(epochs.size() <= 1);
    CHECK((ready == 0 || ready == world_size_));
    for (const Host& host : cluster_.hosts)
      for (const auto& [id, job] : host.installed) {
        CHECK_FALSE(host.rounds.at(id).horizon);
        CHECK(host.rounds.at(id).later == 0);
        CHECK(host.rounds.at(id).unheard == 0);
        CHECK(host.rounds.at(id).has_part);
        CHECK(epochs.contains(job.first_epoch));
        CHECK(host.bounds.contains(id) == (buckets_ > 0));
        if (buckets_ > 0) CHECK(host.bounds.at(id).size() == buckets_);
      }
  }

  void heal() {
    for (api::NodeId node = 0; node < nodes_; ++node)
      if (!cluster_.hosts[node].manager) cluster_.start(node);
    cluster_.faults.loss = std::min(cluster_.faults.loss, 0.1);
  }

  /// When all nodes are up again, failed ranks attach with the same key, and the job becomes ready.
  void come_back() {
    for (int turn = 0; turn < 20 && !complete(); ++turn) {
      std::set<std::uint16_t> attached;
      for (auto it = cluster_.ranks.begin(); it != cluster_.ranks.end();)
        it = it->second.state == State::kFailed ? cluster_.ranks.erase(it) : std::next(it);
      for (const auto& [handle, log] : cluster_.ranks) attached.insert(log.rank);
      for (std::uint16_t rank = 0; rank < world_size_; ++rank)
        if (!attached.contains(rank)) cluster_.attach(home_[rank], rank, world_size_, key_);
      cluster_.run(Duration::seconds(10), [&] { return complete(); });
    }
    INFO(why_not());
    REQUIRE(complete());
    std::set<std::uint32_t> epochs;
    for (const auto& [handle, log] : cluster_.ranks) epochs.insert(log.epoch);
    CHECK(epochs.size() == 1);
  }

  bool complete() const {
    return cluster_.ranks.size() == world_size_ && cluster_.all_ranks(State::kReady);
  }

  std::string why_not() const {
    std::ostringstream text;
    for (const auto& [handle, log] : cluster_.ranks)
      text << "rank " << log.rank << " on node " << log.node << " state "
           << static_cast<int>(log.state) << ": " << log.reason << "\n";
    text << cluster_.refusal;
    return text.str();
  }

  /// All ranks leave. Nothing is left of the job, and nodes send no more about it.
  void leave() {
    std::vector<RankHandle> handles;
    for (const auto& [handle, log] : cluster_.ranks) handles.push_back(handle);
    for (const RankHandle handle : handles) cluster_.detach(handle, true);
    cluster_.run(kBound);
    for (const Host& host : cluster_.hosts) {
      CHECK(host.installed.empty());
      CHECK(host.manager->jobs().empty());
    }
    const std::uint64_t before = cluster_.datagram_count;
    cluster_.run(kBound);
    CHECK(cluster_.datagram_count == before);
  }

  std::mt19937_64 dice_;
  std::size_t nodes_;
  std::uint16_t world_size_;
  api::NodeId coordinator_;
  api::NodeId aggregator_;
  bool calm_ = false;
  std::size_t redraws_ = 0;
  Cluster cluster_;
  std::vector<api::NodeId> home_;
  std::size_t buckets_ = 0;
  protocol::JobKey key_ = key_number(1);
};

}  // namespace

// A failure prints its seed. GRADPLANE_SEED=<seed> runs only that one, GRADPLANE_LOG=1 prints all
// log lines, and GRADPLANE_SEEDS=<count> runs so many seeds.
TEST_CASE("whatever happens, everybody is ready with one plan or knows why not") {
  const auto seeds = gradplane::testing::Seeds::of_simulations(kDefaultSeeds);
  std::size_t departures = 0;
  std::size_t redraws = 0;
  seeds.each("session_simulation_test", [&](std::uint64_t seed) {
    Story story(seed);
    story.tell();
    departures += story.departures();
    redraws += story.redraws();
  });
  CHECK((seeds.alone || departures > 0));
  CHECK((seeds.alone || redraws > seeds.count / 10));
}
