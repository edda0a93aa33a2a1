// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/session/plan_codec.h"
#include "control/session/session_manager.h"
#include "tests/support/catch.h"
#include "tests/support/switch_log.h"

/// The parts of a cluster of tests/property/session_network.h.
namespace gradplane::session::testing {

struct Faults {
  double loss = 0;
  double duplication = 0;
  Duration min_delay = Duration::us(50);
  Duration max_delay = Duration::us(200);
};

/// A datagram on its way.
struct Flight {
  Instant at;
  std::uint64_t order;
  api::NodeId to;
  std::vector<std::byte> bytes;
  bool operator<(const Flight& other) const {
    return at != other.at ? at > other.at : order > other.order;
  }
};

/// What one rank has been told.
struct RankLog {
  api::NodeId node = api::kNoNode;
  std::uint16_t rank = 0;
  enum class State { kNew, kWaiting, kReady, kFailed } state = State::kNew;
  std::uint32_t epoch = 0;
  std::string reason;
  std::vector<std::uint32_t> missing;
  std::uint32_t job_id = 0;
  std::uint32_t selections = 0;
  std::uint32_t average_every = 0;
  std::uint32_t staleness = 0;

  void hear(const RankNotice& notice) {
    REQUIRE(state != State::kFailed);
    if (const auto* waiting = std::get_if<protocol::Waiting>(&notice)) {
      REQUIRE(state != State::kReady);
      REQUIRE(!waiting->reason.empty());
      state = State::kWaiting;
      reason = waiting->reason;
      missing = waiting->missing;
    } else if (const auto* ready = std::get_if<protocol::Ready>(&notice)) {
      state = State::kReady;
      epoch = ready->epoch;
      selections = ready->selections;
      average_every = ready->average_every;
      staleness = ready->staleness;
    } else {
      state = State::kFailed;
      reason = std::get<protocol::JobFailed>(notice).reason;
      REQUIRE(!reason.empty());
    }
  }
};

/// The rounds and plans of a job's poll loop. Rounds open in order. The last round of a plan ends
/// when the next round opens.
struct Rounds {
  std::uint32_t next = 0;   // the next round to open
  std::uint32_t epoch = 0;  // epoch of the plan in force before `activation_round`
  std::optional<std::uint32_t> horizon;
  std::uint32_t prepared = 0;  // epoch of the prepared plan, or 0
  std::uint32_t later = 0;     // epoch from `activation_round` on, or 0
  std::uint32_t activation_round = 0;
  bool has_ranks = false;     // otherwise it learns of rounds only when other nodes send it blocks
  bool has_part = true;       // it is a member of the newest plan
  std::uint32_t unheard = 0;  // epoch that may have ended without this node's knowledge, or 0
  std::set<api::NodeId> hosts;       // of the newest plan
  std::set<api::NodeId> next_hosts;  // of the prepared plan
  std::uint32_t held_by = 0;  // epoch that must end at all ranks before further rounds open, or 0

  /// Opens up to `count` rounds, if it may. A round must have the same plan on all nodes. Returns
  /// the epoch of a plan whose last round has ended, or 0. A node without ranks never knows whether
  /// a round was the last one.
  std::uint32_t open(std::uint32_t count, std::map<std::uint32_t, std::uint32_t>& epoch_of_round) {
    std::uint32_t ended = 0;
    for (std::uint32_t i = 0; i < count && epoch != 0; ++i) {
      if (horizon && next == *horizon) break;
      if (later != 0 && next == activation_round) {
        (has_ranks ? ended : unheard) = epoch;
        epoch = has_part ? later : 0;
        later = 0;
        if (epoch == 0) break;
      }
      if (held_by != 0 && next == activation_round) break;
      REQUIRE(epoch_of_round.try_emplace(next, epoch).first->second == epoch);
      ++next;
    }
    return ended;
  }

  void commit(std::uint32_t activation) {
    horizon.reset();
    const std::uint32_t committed = std::exchange(prepared, 0);
    if (epoch == 0) {  // the node joins
      epoch = committed;
      next = activation;
      return;
    }
    REQUIRE(static_cast<std::int32_t>(activation - next) >= 0);
    later = committed;
    activation_round = activation;
    const std::set<api::NodeId> before = std::exchange(hosts, next_hosts);
    const bool all_stay = std::includes(hosts.begin(), hosts.end(), before.begin(), before.end());
    if (!all_stay && has_ranks) held_by = epoch;
  }

  /// Ends the older plan, because nothing more of it comes. Returns its epoch.
  std::uint32_t end_older() {
    if (later != 0) {  // the node has not heard of any of the last rounds
      unheard = std::exchange(epoch, has_part ? later : 0);
      next = activation_round;
      later = 0;
    }
    return std::exchange(unheard, 0);
  }
};

inline std::set<api::NodeId> hosts_of(const api::Plan& plan) {
  std::set<api::NodeId> hosts;
  for (const api::Member& member : plan.members)
    if (!member.ranks.empty()) hosts.insert(member.node);
  return hosts;
}

/// An engine's answer to PreparePlan.
enum class Readiness { kReady, kRefuses, kSilent };

/// A plan that a planner is making.
struct Order {
  Instant done_at;
  MakePlan order;
};

/// One host: its manager while it runs, and what its engine has been given.
struct Host {
  std::unique_ptr<SessionManager> manager;
  std::map<std::uint32_t, InstallJob> installed;  // by job id
  // Of the installed jobs, by job id and bucket.
  std::map<std::uint32_t, std::map<std::uint32_t, api::BucketBounds>> bounds;
  std::map<std::uint32_t, Rounds> rounds;  // of the installed jobs
  Readiness readiness = Readiness::kReady;
  std::vector<Order> orders;

  void finish_orders(const Planner& planner, Instant now) {
    for (Order& done : std::exchange(orders, {})) {
      if (done.done_at > now)
        orders.push_back(std::move(done));
      else
        manager->on_plan_made(done.order.ticket, planner(done.order.input), now);
    }
  }

  void answer_join(const InstallJob& job, Instant now) const {
    if (readiness == Readiness::kRefuses)
      manager->on_job_error(job.job_id, "the poll loop serves as many jobs as it can", now);
    if (readiness == Readiness::kReady)
      manager->on_plan_prepared(job.job_id, job.plan.epoch, 0, now);
  }

  void prepare(api::NodeId self, const PreparePlan& order, std::uint32_t margin, Instant now) {
    Rounds& own = rounds.at(order.job_id);
    // There are at most two plans at a time.
    REQUIRE(own.prepared == 0);
    REQUIRE(own.later == 0);
    REQUIRE(own.unheard == 0);
    REQUIRE(order.plan.epoch > own.epoch);
    if (readiness == Readiness::kRefuses) {
      manager->on_plan_refused(order.job_id, order.plan.epoch, "no memory for a second plan", now);
      return;
    }
    own.prepared = order.plan.epoch;
    own.next_hosts = hosts_of(order.plan);
    own.has_part = std::any_of(order.plan.members.begin(), order.plan.members.end(),
                               [self](const api::Member& member) { return member.node == self; });
    own.horizon = own.next + margin;
    if (readiness == Readiness::kReady)
      manager->on_plan_prepared(order.job_id, order.plan.epoch, *own.horizon, now);
  }
};

/// Whether each rank that the host counts as waiting does wait there.
inline bool waits_with_ranks(const Host& host, const std::map<RankHandle, RankLog>& ranks) {
  const auto waits = [&ranks](const JobView& job, const RankView& rank) {
    return std::any_of(ranks.begin(), ranks.end(), [&](const auto& entry) {
      const RankLog& log = entry.second;
      return log.job_id == job.job_id && log.node == rank.node && log.rank == rank.rank &&
             log.state == RankLog::State::kWaiting;
    });
  };
  if (!host.manager) return true;
  for (const JobView& job : host.manager->jobs()) {
    if (job.state != JobState::kWaiting) continue;
    for (const RankView& rank : job.ranks)
      if (!waits(job, rank)) return false;
  }
  return true;
}

/// Checks that exactly the plan's members, which are `nodes`, have installed it.
inline void check_installed(const std::vector<std::byte>& plan_bytes, std::size_t nodes,
                            const std::set<api::NodeId>& installed) {
  const auto plan = decode_plan(plan_bytes);
  REQUIRE(plan.ok());
  REQUIRE(plan.value().members.size() == nodes);
  for (const api::Member& member : plan.value().members) REQUIRE(installed.contains(member.node));
}

/// Which plans are redraws, from the coordinator's log, and which of them came into force.
struct Redrawn {
  std::set<std::uint32_t> epochs;
  std::set<std::uint32_t> committed;

  void hear(const std::string& line) {
    if (const auto epoch = gradplane::testing::redraw_in(line)) epochs.insert(*epoch);
  }
  std::size_t count() const {
    return static_cast<std::size_t>(std::count_if(
        committed.begin(), committed.end(), [this](auto epoch) { return epochs.contains(epoch); }));
  }
};

/// Checks that all nodes install the same table for each bucket of an epoch.
struct InstalledTables {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> said;

  void check(const InstallBounds& bounds) {
    std::string now;
    for (const api::BoundedTensor& tensor : bounds.table.tensors)
      now += tensor.name + " " + std::to_string(tensor.bound) + " " + tensor.rule + ";";
    const std::pair bucket(bounds.first_epoch, bounds.table.bucket);
    REQUIRE(said.try_emplace(bucket, now).first->second == now);
  }
};

/// A test's bounds, which every node can compute: a function of a tensor's name and the number of
/// known buckets.
inline ResolvedBounds resolve_for_test(const std::vector<api::BucketBounds>& tables) {
  // A pattern fits only the tensors of a third bucket.
  const std::string warning = tables.size() < 3 ? "a test's warning" : "";
  ResolvedBounds resolved{tables, 0.125F, {"test", warning}};
  for (api::BucketBounds& table : resolved.tables) {
    for (api::BoundedTensor& tensor : table.tensors) {
      tensor.bound = 0.01F * static_cast<float>(1 + tensor.name.size() % 32);
      tensor.why = api::BoundReason::kPreset;
      tensor.rule = std::to_string(tables.size()) + " buckets";
    }
  }
  return resolved;
}

/// A planner in which every training node is the root of a share, and `aggregator` of one more
/// (kNoNode: none). The roots of an operator's choice replace these; a star uses the first one.
inline Planner sharded_planner(api::NodeId aggregator = api::kNoNode) {
  return [aggregator](const PlanInput& input) -> Result<PlanOffer> {
    api::Plan plan;
    plan.epoch = input.epoch;
    plan.activation_round = input.activation_round;
    plan.members = input.members;
    plan.kind = input.choice ? input.choice->kind : PlanKind::kSharded;
    std::vector<api::NodeId> roots;
    if (input.choice) roots = input.choice->roots;
    if (roots.empty()) {
      for (const api::Member& member : plan.members) roots.push_back(member.node);
      if (aggregator != api::kNoNode) roots.push_back(aggregator);
    }
    if (plan.kind == PlanKind::kStar) roots.resize(1);
    if (roots.size() > kMaxTrees) roots.resize(kMaxTrees);
    for (const api::NodeId root : roots) {
      const bool known = std::any_of(plan.members.begin(), plan.members.end(),
                                     [root](const api::Member& m) { return m.node == root; });
      if (!known) plan.members.push_back({root, {}});
    }
    std::set<api::NodeId> seen;
    for (const api::NodeId root : roots) {
      if (!seen.insert(root).second) continue;
      api::Tree& tree = plan.trees.emplace_back();
      tree.root = root;
      for (const api::Member& member : plan.members)
        tree.parent.push_back(member.node == root ? api::kNoNode : root);
    }
    return PlanOffer{.plan = std::move(plan), .planner = PlanKind::kSharded};
  };
}

inline protocol::JobKey key_number(std::uint8_t n) {
  protocol::JobKey key{};
  key.fill(std::byte{n});
  return key;
}

}  // namespace gradplane::session::testing
