// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/session/plan_codec.h"
#include "control/session/session_manager.h"
#include "tests/support/catch.h"

/// A cluster of SessionManagers in virtual time over a network that loses, doubles, delays,
/// reorders and cuts. Deterministic: everything comes from one seed.
namespace gradplane::session::testing {

struct Faults {
  double loss = 0;
  double duplication = 0;
  Duration min_delay = Duration::us(50);
  Duration max_delay = Duration::us(200);
};

/// What one rank was told.
struct RankLog {
  api::NodeId node = api::kNoNode;
  std::uint16_t rank = 0;
  enum class State { kNew, kWaiting, kReady, kFailed } state = State::kNew;
  std::uint32_t epoch = 0;
  std::string reason;
  std::vector<std::uint32_t> missing;
  std::uint32_t job_id = 0;
};

/// One host: its manager while it lives, and what its engine was told to hold.
struct Host {
  std::unique_ptr<SessionManager> manager;
  std::map<std::uint32_t, InstallJob> installed;  // by job id
  // Of the installed jobs, by job id and bucket.
  std::map<std::uint32_t, std::map<std::uint32_t, api::BucketBounds>> bounds;
};

/// A bound for every tensor that anybody can tell: a function of its name and of how many buckets
/// are known.
inline ResolvedBounds resolve_for_test(const std::vector<api::BucketBounds>& tables) {
  ResolvedBounds resolved{tables, 0.125F, "test"};
  for (api::BucketBounds& table : resolved.tables) {
    for (api::BoundedTensor& tensor : table.tensors) {
      tensor.bound = 0.01F * static_cast<float>(1 + tensor.name.size() % 32);
      tensor.why = api::BoundReason::kPreset;
      tensor.rule = std::to_string(tables.size()) + " buckets";
    }
  }
  return resolved;
}

class Cluster {
 public:
  Cluster(
      std::uint64_t seed, std::size_t nodes, api::NodeId coordinator, Planner planner,
      PlanCheck check = [](const api::Plan&) -> Status { return Nothing{}; })
      : random(seed),
        coordinator_(coordinator),
        planner_(std::move(planner)),
        check_(std::move(check)),
        hosts(nodes) {
    for (std::size_t i = 0; i < nodes; ++i) names_.emplace_back("n").append(std::to_string(i));
    for (api::NodeId node = 0; node < nodes; ++node) start(node);
  }

  void start(api::NodeId node, const JobSettings& settings = {}, const Quotas& quotas = {}) {
    SessionConfig config;
    config.self = node;
    config.coordinator = coordinator_;
    config.node_names = names_;
    config.incarnation = random() | 1;
    config.cluster_key.fill(std::byte{7});
    config.job_settings = settings;
    config.quotas = quotas;
    config.planner = planner_;
    config.resolve_bounds = resolve_for_test;
    config.check_plan = check_;
    hosts[node].manager = std::make_unique<SessionManager>(config);
  }

  void crash(api::NodeId node) {
    hosts[node] = Host();
    for (auto& [handle, log] : ranks)
      if (log.node == node) log.state = RankLog::State::kFailed, log.reason = "crashed";
  }

  /// The handle, or 0 when the attach was refused at once (`refusal` says why).
  RankHandle attach(api::NodeId node, std::uint16_t rank, std::uint32_t world_size,
                    const protocol::JobKey& key, std::uint32_t user = kRootUser) {
    const RankHandle handle = ++last_handle_;
    ranks[handle] = {node, rank, RankLog::State::kNew, 0, "", {}, protocol::job_id_of(key)};
    const Status status =
        hosts[node].manager->attach({handle, user, key, rank, world_size, "job"}, now);
    take_actions(node);
    if (status.ok()) return handle;
    refusal = status.error().message;
    REQUIRE(!refusal.empty());
    ranks.erase(handle);
    return 0;
  }

  /// `keep_memory`: a process of the rank's user still has its memory.
  void detach(RankHandle handle, bool clean, bool keep_memory = false) {
    const api::NodeId node = ranks.at(handle).node;
    if (!hosts[node].manager) return;
    hosts[node].manager->detach(handle, clean, now);
    if (!keep_memory) hosts[node].manager->memory_freed(handle);
    take_actions(node);
    ranks.erase(handle);
  }

  /// `tensors` of 10 elements, with names of this length.
  void describe(RankHandle handle, std::uint32_t bucket, std::size_t tensors,
                std::size_t name_bytes = 12) {
    api::BucketBounds table{bucket, ElementType::kFloat32, 0, {}};
    for (std::size_t t = 0; t < tensors; ++t) {
      std::string name = std::to_string(t);
      name.resize(name_bytes, 'n');
      table.tensors.push_back({name, table.elements, 10, 0, api::BoundReason::kExact, ""});
      table.elements += 10;
    }
    const api::NodeId node = ranks.at(handle).node;
    hosts[node].manager->describe_bucket(handle, table, now);
    take_actions(node);
  }

  /// Lets virtual time pass, or stops earlier when `done`.
  bool run(
      Duration span, const std::function<bool()>& done = [] { return false; }) {
    const Instant end = now + span;
    while (!done()) {
      const Instant next = next_event();
      if (next > end) {
        now = end;
        return done();
      }
      now = std::max(now, next);
      step();
    }
    return true;
  }

  bool all_ranks(RankLog::State state) const {
    for (const auto& [handle, log] : ranks)
      if (log.state != state) return false;
    return true;
  }

  /// For a quiet network: each rank that some node believes to wait does wait there.
  bool nobody_waits_without_ranks() const {
    for (const Host& host : hosts) {
      if (!host.manager) continue;
      for (const JobView& job : host.manager->jobs()) {
        if (job.state != JobState::kWaiting) continue;
        for (const RankView& rank : job.ranks)
          if (!waits(job, rank)) return false;
      }
    }
    return true;
  }

  std::mt19937_64 random;
  Faults faults;
  std::function<bool(api::NodeId, api::NodeId)> cut = [](api::NodeId, api::NodeId) {
    return false;
  };
  Instant now = Instant::from_ns(1000000000);
  std::map<RankHandle, RankLog> ranks;
  std::map<std::uint32_t, std::vector<std::byte>> plan_of_epoch;
  std::uint64_t datagram_count = 0;
  std::vector<std::pair<api::NodeId, std::vector<std::byte>>> wiretap;  // when tapped
  bool tapped = false;
  std::string refusal;

 private:
  struct Flight {
    Instant at;
    std::uint64_t order;
    api::NodeId to;
    std::vector<std::byte> bytes;
    bool operator<(const Flight& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  bool waits(const JobView& job, const RankView& rank) const {
    return std::any_of(ranks.begin(), ranks.end(), [&](const auto& entry) {
      const RankLog& log = entry.second;
      return log.job_id == job.job_id && log.node == rank.node && log.rank == rank.rank &&
             log.state == RankLog::State::kWaiting;
    });
  }

  Instant next_event() const {
    Instant next = flights_.empty() ? Instant::never() : flights_.top().at;
    for (const Host& host : hosts)
      if (host.manager) next = std::min(next, host.manager->next_deadline());
    return next;
  }

  void step() {
    while (!flights_.empty() && flights_.top().at <= now) {
      const Flight flight = flights_.top();
      flights_.pop();
      if (!hosts[flight.to].manager) continue;
      hosts[flight.to].manager->on_datagram(flight.bytes, now);
      take_actions(flight.to);
    }
    for (api::NodeId node = 0; node < hosts.size(); ++node) {
      if (!hosts[node].manager || hosts[node].manager->next_deadline() > now) continue;
      hosts[node].manager->tick(now);
      take_actions(node);
    }
  }

  void take_actions(api::NodeId node) {
    while (auto action = hosts[node].manager->next_action())
      std::visit([&](auto& a) { on(node, a); }, *action);
  }

  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random) < p; }

  void on(api::NodeId node, SendDatagram& send) {
    REQUIRE(send.bytes.size() <= kMaxControlBytes);
    REQUIRE(send.node < hosts.size());
    ++datagram_count;
    if (tapped) wiretap.emplace_back(send.node, send.bytes);
    if (cut(node, send.node)) return;
    for (int copy = chance(faults.duplication) ? 2 : 1; copy > 0; --copy) {
      if (chance(faults.loss)) continue;
      const Duration delay = Duration::ns(std::uniform_int_distribution<std::int64_t>(
          faults.min_delay.count_ns(), faults.max_delay.count_ns())(random));
      flights_.push({now + delay, ++last_order_, send.node, send.bytes});
    }
  }

  void on(api::NodeId node, InstallJob& job) {
    REQUIRE(job.epoch != 0);
    REQUIRE(job.plan.epoch == job.epoch);
    REQUIRE(!hosts[node].installed.contains(job.job_id));
    const auto bytes = encode_plan(job.plan);
    REQUIRE(bytes.ok());
    // One epoch, one plan: whoever installs it, and also over restarts of the coordinator.
    const auto [known, fresh] = plan_of_epoch.try_emplace(job.epoch, bytes.value());
    REQUIRE(known->second == bytes.value());
    installed_ever_[job.epoch].insert(node);
    hosts[node].installed[job.job_id] = std::move(job);
  }

  void on(api::NodeId node, RemoveJob& job) {
    const auto found = hosts[node].installed.find(job.job_id);
    REQUIRE(found != hosts[node].installed.end());
    REQUIRE(found->second.epoch == job.epoch);
    hosts[node].installed.erase(found);
    hosts[node].bounds.erase(job.job_id);
  }

  void on(api::NodeId node, InstallBounds& bounds) {
    const auto job = hosts[node].installed.find(bounds.job_id);
    REQUIRE(job != hosts[node].installed.end());
    REQUIRE(job->second.epoch == bounds.epoch);
    REQUIRE(bounds.learn_budget == 0.125F);
    REQUIRE(!bounds.table.tensors.empty());
    // One table for each bucket of an epoch, whoever installs it; and once on each node.
    std::string said;
    for (const api::BoundedTensor& tensor : bounds.table.tensors)
      said += tensor.name + " " + std::to_string(tensor.bound) + " " + tensor.rule + ";";
    const auto [known, fresh] =
        table_of_bucket_.try_emplace({bounds.epoch, bounds.table.bucket}, said);
    REQUIRE(known->second == said);
    const std::uint32_t bucket = bounds.table.bucket;
    REQUIRE(hosts[node].bounds[bounds.job_id].emplace(bucket, std::move(bounds.table)).second);
  }

  void on(api::NodeId node, NotifyRank& notify) {
    REQUIRE(ranks.contains(notify.handle));
    RankLog& log = ranks[notify.handle];
    REQUIRE(log.node == node);
    REQUIRE(log.state != RankLog::State::kFailed);
    if (const auto* waiting = std::get_if<protocol::Waiting>(&notify.notice)) {
      REQUIRE(log.state != RankLog::State::kReady);
      REQUIRE(!waiting->reason.empty());
      log.state = RankLog::State::kWaiting;
      log.reason = waiting->reason;
      log.missing = waiting->missing;
    } else if (const auto* ready = std::get_if<protocol::Ready>(&notify.notice)) {
      log.state = RankLog::State::kReady;
      log.epoch = ready->epoch;
      check_ready(*ready);
    } else {
      log.state = RankLog::State::kFailed;
      log.reason = std::get<protocol::JobFailed>(notify.notice).reason;
      REQUIRE(!log.reason.empty());
    }
  }

  void on(api::NodeId node, LogLine& line) {
    if (std::getenv("GRADPLANE_LOG") == nullptr) return;
    std::fprintf(stderr, "%9.3f n%u %s\n", static_cast<double>(now.count_ns()) * 1e-9, node,
                 line.text.c_str());
  }

  /// Whoever is told to begin: the plan is one that was agreed on by all members.
  void check_ready(const protocol::Ready& ready) {
    REQUIRE(plan_of_epoch.contains(ready.epoch));
    const auto plan = decode_plan(plan_of_epoch[ready.epoch]);
    REQUIRE(plan.ok());
    REQUIRE(plan.value().members.size() == ready.nodes);
    for (const api::Member& member : plan.value().members)
      REQUIRE(installed_ever_[ready.epoch].contains(member.node));
  }

  api::NodeId coordinator_;
  Planner planner_;
  PlanCheck check_;
  std::vector<std::string> names_;
  std::priority_queue<Flight> flights_;
  std::uint64_t last_order_ = 0;
  RankHandle last_handle_ = 0;
  std::map<std::uint32_t, std::set<api::NodeId>> installed_ever_;  // by epoch
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> table_of_bucket_;

 public:
  std::vector<Host> hosts;
};

/// Every training node roots a share; `aggregator` (kNoNode: none) roots one more.
inline Planner sharded_planner(api::NodeId aggregator = api::kNoNode) {
  return [aggregator](const PlanInput& input) -> Result<api::Plan> {
    api::Plan plan;
    plan.epoch = input.epoch;
    plan.activation_round = input.activation_round;
    plan.members = input.members;
    bool hosts_ranks = aggregator == api::kNoNode;
    for (const api::Member& member : plan.members) hosts_ranks |= member.node == aggregator;
    if (!hosts_ranks) plan.members.push_back({aggregator, {}});
    for (const api::Member& root : plan.members) {
      if (plan.trees.size() == kMaxTrees) break;
      api::Tree& tree = plan.trees.emplace_back();
      tree.root = root.node;
      for (const api::Member& member : plan.members)
        tree.parent.push_back(member.node == root.node ? api::kNoNode : root.node);
    }
    return plan;
  };
}

inline protocol::JobKey key_number(std::uint8_t n) {
  protocol::JobKey key{};
  key.fill(std::byte{n});
  return key;
}

}  // namespace gradplane::session::testing
