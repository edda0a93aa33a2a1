// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <map>
#include <string>
#include <vector>

#include "tests/property/seeds.h"
#include "tests/property/session_network.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::session;
using namespace gradplane::session::testing;

namespace {

using State = RankLog::State;

constexpr std::uint64_t kDefaultSeeds = 150;
/// Longer than a message and its answer take over a network that loses one in ten.
constexpr Duration kBound = Duration::seconds(30);
constexpr std::uint32_t kVictim = 999;

/// Greedy users attach and detach at random over a lossy network. Then a user without jobs comes
/// with one job.
class Story {
 public:
  explicit Story(std::uint64_t seed)
      : dice_(seed * 0x9e3779b97f4a7c15 + 1),
        nodes_(1 + pick(4)),
        users_(1 + pick(4)),
        cluster_(seed, nodes_, static_cast<api::NodeId>(pick(nodes_)), sharded_planner()) {
    cluster_.faults.loss = 0.05 * static_cast<double>(pick(3));
  }

  void tell() {
    for (std::uint64_t step = 40 + pick(60); step > 0; --step) {
      take_a_step();
      nobody_holds_too_much();
    }
    cluster_.run(kBound);
    CHECK(cluster_.nobody_waits_without_ranks());
    one_finds_room();
    cluster_.run(Quotas{}.wait + kBound);
    for (const auto& [handle, log] : cluster_.ranks) {
      INFO("rank " << log.rank << ": " << log.reason);
      CHECK((log.state == State::kReady || log.state == State::kFailed));
      CHECK((log.state != State::kFailed || !log.reason.empty()));
    }
  }

 private:
  std::uint64_t pick(std::uint64_t below) { return dice_() % below; }

  void take_a_step() {
    if (pick(8) == 0 && !owners_.empty()) {
      const auto at = std::next(owners_.begin(), static_cast<std::ptrdiff_t>(pick(owners_.size())));
      cluster_.detach(at->first, pick(2) == 0);
      owners_.erase(at);
    } else {
      attach();
    }
    cluster_.run(Duration::ms(static_cast<std::int64_t>(pick(10) == 0 ? pick(60000) : pick(50))));
  }

  /// Nearly every rank has its own job. Some jobs have all their ranks.
  void attach() {
    const auto user = static_cast<std::uint32_t>(1 + pick(users_));
    const auto world = static_cast<std::uint32_t>(1 + pick(4));
    const auto rank = static_cast<std::uint16_t>(pick(world));
    const auto node = static_cast<api::NodeId>(pick(nodes_));
    // The number of a key names its user, so no user joins the job of another.
    const auto key = static_cast<std::uint8_t>(user * 50 + pick(50));
    const RankHandle handle = cluster_.attach(node, rank, world, key_number(key), user);
    if (handle != 0) owners_[handle] = user;
  }

  void nobody_holds_too_much() {
    std::map<std::pair<api::NodeId, std::uint32_t>, std::uint32_t> ranks;
    std::map<std::pair<api::NodeId, std::uint32_t>, std::set<std::uint8_t>> jobs;
    for (const auto& [handle, user] : owners_) ++ranks[{cluster_.ranks.at(handle).node, user}];
    for (const auto& [place, count] : ranks) CHECK(count <= Quotas{}.ranks);
    for (const Host& host : cluster_.hosts) {
      CHECK(host.manager->jobs().size() <= 2 * kMaxJobs);
      std::map<std::uint32_t, std::size_t> held;
      for (const JobView& job : host.manager->jobs()) ++held[owner_of(job.job_id)];
      // The coordinator sees a user's jobs in the cluster, and those that only its own node hosts.
      for (const auto& [user, count] : held) CHECK(count <= 2 * Quotas{}.jobs);
      CHECK(host.installed.size() <= kMaxJobs);
      std::map<std::uint32_t, std::size_t> running;
      for (const auto& [id, job] : host.installed) ++running[owner_of(id)];
      for (const auto& [user, count] : running) CHECK(count <= Quotas{}.jobs);
    }
  }

  static std::uint32_t owner_of(std::uint32_t job_id) {
    for (std::uint32_t key = 50; key < 256; ++key)
      if (protocol::job_id_of(key_number(static_cast<std::uint8_t>(key))) == job_id)
        return key / 50;
    return kVictim;
  }

  /// Greedy users keep what they have. There must be room for one more job, unless all slots run.
  void one_finds_room() {
    std::size_t waiting = 0;
    for (const auto& [handle, user] : owners_)
      waiting += cluster_.ranks.at(handle).state == State::kWaiting ? 1 : 0;
    const auto node = static_cast<api::NodeId>(pick(nodes_));
    const RankHandle handle = cluster_.attach(node, 0, 1, key_number(1), kVictim);
    INFO(waiting << " ranks wait; " << cluster_.refusal);
    if (handle == 0) {
      CHECK(cluster_.hosts[node].installed.size() == kMaxJobs);
      return;
    }
    cluster_.run(kBound);
    const RankLog& log = cluster_.ranks.at(handle);
    INFO(log.reason);
    if (log.state == State::kReady) return;
    CHECK(log.state == State::kFailed);
    CHECK(log.reason.find("64 jobs already") != std::string::npos);
    CHECK(waiting == 0);
  }

  std::mt19937_64 dice_;
  std::size_t nodes_;
  std::size_t users_;
  Cluster cluster_;
  std::map<RankHandle, std::uint32_t> owners_;
};

}  // namespace

// A failure prints its seed. GRADPLANE_SEED=<seed> runs only that one, and GRADPLANE_SEEDS=<count>
// runs so many seeds.
TEST_CASE("whatever greedy users do, they hold no more than their share, and no wait is endless") {
  const auto seeds = gradplane::testing::Seeds::of_simulations(kDefaultSeeds);
  seeds.each("session_tenants_test", [&](std::uint64_t seed) { Story(seed).tell(); });
}
