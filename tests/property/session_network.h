// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/session/plan_codec.h"
#include "tests/property/session_hosts.h"
#include "tests/support/catch.h"

/// A cluster of SessionManagers in virtual time over a network with faults that a seed draws.
namespace gradplane::session::testing {

class Cluster {
 public:
  Cluster(
      std::uint64_t seed, std::size_t nodes, api::NodeId coordinator, Planner planner,
      PlanCheck check = [](const api::Plan&) -> Status { return Nothing{}; }, bool elastic = false)
      : random(seed),
        elastic_(elastic),
        coordinator_(coordinator),
        planner_(std::move(planner)),
        check_(std::move(check)),
        deadlines_(nodes),
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
    config.redraw = redraw;
    config.grant_exclusion = grant_exclusion;
    config.relays = relays;
    config.resolve_bounds = resolve_for_test;
    config.check_plan = check_;
    config.elastic = elastic_;
    hosts[node].manager = std::make_unique<SessionManager>(config);
  }

  void crash(api::NodeId node) {
    hosts[node] = Host();
    std::erase_if(open_questions, [node](const auto& entry) { return entry.second == node; });
    for (auto& [handle, log] : ranks)
      if (log.node == node) log.state = RankLog::State::kFailed, log.reason = "crashed";
  }

  /// Returns the handle, or 0 if the attach was refused at once; `refusal` says why.
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

  /// `keep_memory`: a process of the rank's user still maps its memory.
  void detach(RankHandle handle, bool clean, bool keep_memory = false) {
    const api::NodeId node = ranks.at(handle).node;
    if (!hosts[node].manager) return;
    hosts[node].manager->detach(handle, clean, now);
    if (!keep_memory) hosts[node].manager->memory_freed(handle);
    take_actions(node);
    ranks.erase(handle);
  }

  /// Describes `tensors` tensors of 10 elements, with names of this length.
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

  /// An operator asks for another plan. 0: the request was refused at once.
  AskerHandle replan(api::NodeId node, std::uint32_t job_id, const PlanChoice& choice) {
    const AskerHandle asker = ++last_handle_;
    const Status status = hosts[node].manager->replan(asker, job_id, choice, now);
    if (!status.ok()) refusal = status.error().message;
    if (status.ok()) open_questions.emplace(asker, node);
    take_actions(node);
    return status.ok() ? asker : 0;
  }

  /// Gives a node the measurements of its engine.
  void measure(api::NodeId node, const std::vector<protocol::LinkSample>& samples) {
    if (!hosts[node].manager) return;
    hosts[node].manager->on_links(samples, now);
    take_actions(node);
  }

  /// Opens up to `count` rounds of each job on a node, if it may. A round must have the same plan
  /// on all nodes.
  void open_rounds(api::NodeId node, std::uint32_t count) {
    if (!hosts[node].manager) return;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ended;  // pairs of job and epoch
    for (auto& [id, rounds] : hosts[node].rounds) {
      const std::uint32_t first_epoch = hosts[node].installed.at(id).first_epoch;
      if (const std::uint32_t epoch = rounds.open(count, epoch_of_round[first_epoch]))
        ended.emplace_back(id, epoch);
    }
    for (const auto& [id, epoch] : ended) hosts[node].manager->on_plan_ended(id, epoch, now);
    take_actions(node);
  }

  /// Runs for a time, or until `done`.
  bool run(
      Duration span, const std::function<bool()>& done = [] { return false; }) {
    const Instant end = now + span;
    // Between two runs a test may have changed any manager.
    deadlines_.assign(hosts.size(), std::nullopt);
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

  /// The number of redraws that came into force.
  std::size_t redraws() const { return redrawn_.count(); }

  bool all_ranks(RankLog::State state) const {
    for (const auto& [handle, log] : ranks)
      if (log.state != state) return false;
    return true;
  }

  /// For an idle network: whether each rank that some node counts as waiting does wait there.
  bool nobody_waits_without_ranks() const {
    return std::all_of(hosts.begin(), hosts.end(),
                       [this](const Host& host) { return waits_with_ranks(host, ranks); });
  }

  std::mt19937_64 random;
  Faults faults;
  std::function<bool(api::NodeId, api::NodeId)> cut = [](api::NodeId, api::NodeId) {
    return false;
  };
  Instant now = Instant::from_ns(1000000000);
  std::map<RankHandle, RankLog> ranks;
  std::map<std::uint32_t, std::vector<std::byte>> plan_of_epoch;
  RedrawSettings redraw;
  std::vector<api::NodeId> relays;
  std::string grant_exclusion;
  Duration planning_takes;  // of nodes that start later, as are the three above
  std::size_t orders = 0;
  std::uint64_t datagram_count = 0;
  std::vector<std::pair<api::NodeId, std::vector<std::byte>>> wiretap;  // filled while `tapped`
  bool tapped = false;
  std::string refusal;
  std::map<AskerHandle, api::NodeId> open_questions;
  std::map<AskerHandle, AnswerReplan> answers;
  std::uint32_t first_round = 0;      // of jobs that begin later
  std::set<api::NodeId> paused;       // paused nodes do nothing and receive nothing
  std::size_t departures = 0;         // how many nodes have left a job because of another plan
  std::uint32_t horizon_margin = 64;  // rounds that a node that prepares a plan may still open
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> epoch_of_round;  // by first epoch

 private:
  bool lives(api::NodeId node) const { return hosts[node].manager && !paused.contains(node); }

  /// Keeps each manager's deadline until the manager acts, because asking takes longer than all
  /// else here. During run() managers act only in step().
  Instant deadline_of(api::NodeId node) {
    if (!lives(node)) return Instant::never();
    std::optional<Instant>& known = deadlines_[node];
    if (!known) {
      known = hosts[node].manager->next_deadline();
      for (const Order& order : hosts[node].orders) known = std::min(*known, order.done_at);
    }
    return *known;
  }

  Instant next_event() {
    Instant next = flights_.empty() ? Instant::never() : flights_.top().at;
    for (api::NodeId node = 0; node < hosts.size(); ++node)
      next = std::min(next, deadline_of(node));
    return next;
  }

  void step() {
    while (!flights_.empty() && flights_.top().at <= now) {
      const Flight flight = flights_.top();
      flights_.pop();
      if (!lives(flight.to)) continue;
      hosts[flight.to].manager->on_datagram(flight.bytes, now);
      take_actions(flight.to);
    }
    for (api::NodeId node = 0; node < hosts.size(); ++node) {
      if (deadline_of(node) > now) continue;
      hosts[node].finish_orders(planner_, now);
      hosts[node].manager->tick(now);
      take_actions(node);
    }
  }

  void take_actions(api::NodeId node) {
    deadlines_[node].reset();
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
    REQUIRE(job.first_epoch != 0);
    REQUIRE(!hosts[node].installed.contains(job.job_id));
    note_plan(node, job.plan);
    Rounds& rounds = hosts[node].rounds[job.job_id];
    rounds.next = first_round;
    rounds.epoch = job.joins() ? 0 : job.plan.epoch;
    rounds.prepared = job.joins() ? job.plan.epoch : 0;
    rounds.has_ranks = !job.local_ranks.empty();
    rounds.hosts = hosts_of(job.plan);
    const InstallJob order = hosts[node].installed[job.job_id] = std::move(job);
    if (order.joins()) hosts[node].answer_join(order, now);
  }

  /// An epoch must have the same plan on all nodes, also after restarts of the coordinator.
  void note_plan(api::NodeId node, const api::Plan& plan) {
    const auto bytes = encode_plan(plan);
    REQUIRE(bytes.ok());
    REQUIRE(plan_of_epoch.try_emplace(plan.epoch, bytes.value()).first->second == bytes.value());
    installed_ever_[plan.epoch].insert(node);
  }

  /// The rounds of the job that an action is about.
  template <typename Order>
  Rounds& rounds_of(api::NodeId node, const Order& order) {
    const auto job = hosts[node].installed.find(order.job_id);
    REQUIRE(job != hosts[node].installed.end());
    REQUIRE(job->second.first_epoch == order.first_epoch);
    return hosts[node].rounds.at(order.job_id);
  }

  void on(api::NodeId node, PreparePlan& order) {
    (void)rounds_of(node, order);
    note_plan(node, order.plan);
    hosts[node].prepare(node, order, horizon_margin, now);
  }

  void on(api::NodeId node, CommitPlan& order) {
    Rounds& rounds = rounds_of(node, order);
    REQUIRE(rounds.prepared == order.epoch);
    rounds.commit(order.activation_round);
    redrawn_.committed.insert(order.epoch);
  }

  void on(api::NodeId node, AbortPlan& order) {
    Rounds& rounds = rounds_of(node, order);
    // The node's refusal and the abort may have crossed.
    if (rounds.prepared == 0 && hosts[node].readiness == Readiness::kRefuses) return;
    REQUIRE(rounds.prepared == order.epoch);
    rounds.prepared = 0;
    rounds.horizon.reset();
    rounds.has_part = true;
  }

  /// No node with ranks may have a round of that plan open now.
  void on(api::NodeId node, EndOlderPlan& order) {
    Rounds& rounds = rounds_of(node, order);
    for (const Host& host : hosts) {
      const auto other = host.rounds.find(order.job_id);
      if (other != host.rounds.end() && other->second.has_ranks)
        REQUIRE(other->second.epoch != order.epoch);
    }
    if (rounds.held_by == order.epoch) rounds.held_by = 0;
    if (rounds.epoch != order.epoch && rounds.unheard != order.epoch) return;  // has ended before
    REQUIRE(rounds.end_older() == order.epoch);
    hosts[node].manager->on_plan_ended(order.job_id, order.epoch, now);
  }

  void on(api::NodeId node, AnswerReplan& answer) {
    REQUIRE(open_questions.contains(answer.asker));
    REQUIRE(open_questions[answer.asker] == node);
    REQUIRE(!answer.text.empty());
    open_questions.erase(answer.asker);
    answers[answer.asker] = std::move(answer);
  }

  void on(api::NodeId node, RemoveJob& job) {
    const auto found = hosts[node].installed.find(job.job_id);
    REQUIRE(found != hosts[node].installed.end());
    REQUIRE(found->second.first_epoch == job.first_epoch);
    if (!hosts[node].rounds.at(job.job_id).has_part) ++departures;
    hosts[node].installed.erase(found);
    hosts[node].rounds.erase(job.job_id);
    hosts[node].bounds.erase(job.job_id);
  }

  void on(api::NodeId node, InstallBounds& bounds) {
    const auto job = hosts[node].installed.find(bounds.job_id);
    REQUIRE(job != hosts[node].installed.end());
    REQUIRE(job->second.first_epoch == bounds.first_epoch);
    REQUIRE(bounds.learn_budget == 0.125F);
    REQUIRE(!bounds.table.tensors.empty());
    tables_.check(bounds);
    const std::uint32_t bucket = bounds.table.bucket;
    REQUIRE(hosts[node].bounds[bounds.job_id].emplace(bucket, std::move(bounds.table)).second);
  }

  void on(api::NodeId node, NotifyRank& notify) {
    REQUIRE(ranks.contains(notify.handle));
    RankLog& log = ranks[notify.handle];
    REQUIRE(log.node == node);
    log.hear(notify.notice);
    if (const auto* ready = std::get_if<protocol::Ready>(&notify.notice)) check_ready(*ready);
  }

  void on(api::NodeId node, MakePlan& order) {
    ++orders;
    if (planning_takes == Duration()) {
      hosts[node].manager->on_plan_made(order.ticket, planner_(order.input), now);
      return;
    }
    hosts[node].orders.push_back({now + planning_takes, std::move(order)});
  }

  void on(api::NodeId node, LogLine& line) {
    redrawn_.hear(line.text);
    if (std::getenv("GRADPLANE_LOG") == nullptr) return;
    std::fprintf(stderr, "%9.3f n%u %s\n", static_cast<double>(now.count_ns()) * 1e-9, node,
                 line.text.c_str());
  }

  /// A rank is told to begin: its plan must be one that all members have installed.
  void check_ready(const protocol::Ready& ready) {
    REQUIRE(plan_of_epoch.contains(ready.epoch));
    check_installed(plan_of_epoch[ready.epoch], ready.nodes, installed_ever_[ready.epoch]);
  }

  bool elastic_;
  api::NodeId coordinator_;
  Planner planner_;
  PlanCheck check_;
  std::vector<std::string> names_;
  std::priority_queue<Flight> flights_;
  std::vector<std::optional<Instant>> deadlines_;  // of the managers; empty: not known
  std::uint64_t last_order_ = 0;
  RankHandle last_handle_ = 0;
  Redrawn redrawn_;
  std::map<std::uint32_t, std::set<api::NodeId>> installed_ever_;  // by epoch
  InstalledTables tables_;

 public:
  std::vector<Host> hosts;
};

}  // namespace gradplane::session::testing
