// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/session_node.h"

#include <algorithm>
#include <utility>

#include "control/daemon/links.h"
#include "control/daemon/placement.h"
#include "control/daemon/planners.h"
#include "control/daemon/session_config.h"
#include "tests/sim/agenda.h"

namespace gradplane::sim {
namespace {

/// In jobs with kManyNodes, invariants are checked after one turn in so many.
constexpr std::uint64_t kTurnsPerCheck = 1024;
constexpr session::AskerHandle kAsker = 1'000'000;
const protocol::JobKey kKey = {std::byte{1}};

}  // namespace

SessionNode::SessionNode(Network& network, config::Config config, const Pace& pace,
                         SwitchWatch& watch, ToleranceChecker& checker, const Instant& clock)
    : config_(std::move(config)),
      pace_(pace),
      watch_(watch),
      checker_(checker),
      network_(network),
      port_(network, network.add_host(config_.self_node().address), config_.self_node().address,
            clock, {.queue_count = daemon::core_count(config_)}),
      planner_(daemon::planner_of(config_)) {}

void SessionNode::start(std::uint64_t incarnation) {
  const std::size_t cores = daemon::core_count(config_);
  std::vector<api::CommandQueue*> commands;
  if (cores > 1) shared_link_ = std::make_unique<engine::SharedLink>(0, cores);
  for (std::size_t c = 0; c < cores; ++c) {
    Queues& queues = *queues_.emplace_back(std::make_unique<Queues>());
    commands.push_back(&queues.commands);
    engine::EngineOptions options;
    options.self = config_.self;
    options.queue = static_cast<std::uint16_t>(c);
    options.udp_port = static_cast<std::uint16_t>(options.udp_port + c);
    options.link = {.block_bytes = config_.block_bytes};
    options.shared_link = shared_link_.get();
    for (const config::NodeConfig& node : config_.cluster.nodes)
      options.nodes.push_back(node.address);
    engines_.push_back(std::make_unique<engine::Engine>(
        std::move(options), port_.queue(c), queues.commands, queues.events, queues.reports));
    snapshots_.push_back(std::make_unique<api::EngineSnapshot>());
  }
  jobs_ = std::make_unique<daemon::JobTable>(config_, std::move(commands));
  config::ClusterKey key{};
  key.fill(std::byte{7});
  session_ =
      std::make_unique<session::SessionManager>(daemon::session_config(config_, key, incarnation));
  network_.set_up(id(), true);
}

void SessionNode::crash() {
  if (!lives()) return;
  network_.set_up(id(), false);
  engines_.clear();
  // Deletes plans and snapshots in the queues, because no one owns them now.
  for (const auto& queues : queues_) {
    for (; const api::Command* left = queues->commands.front(); queues->commands.pop()) {
      delete left->plan;
      delete left->snapshot;
    }
    for (; const api::Event* left = queues->events.front(); queues->events.pop()) {
      delete left->plan;
      delete left->snapshot;
    }
  }
  session_.reset();
  jobs_.reset();
  queues_.clear();
  snapshots_.clear();
  links_ = {};
  ranks_.clear();
  orders_.clear();
}

void SessionNode::set_paused(bool is_paused) {
  is_paused_ = is_paused;
  network_.set_up(id(), !is_paused);
}

void SessionNode::attach(const Scenario& scenario, std::uint16_t rank, std::uint32_t world,
                         Instant now) {
  const session::RankHandle handle = rank + 1u;
  const Status joined =
      session_->attach({handle, session::kRootUser, kKey, rank, world, "job"}, now);
  if (!joined.ok()) return fail("rank " + std::to_string(rank) + ": " + joined.error().message);
  const daemon::Placement place = daemon::placement_of(config_, protocol::job_id_of(kKey));
  auto channel = ipc::Channel::create({.slot_count = kRoundSlots,
                                       .slot_bytes = scenario.round_bytes,
                                       .core_count = static_cast<std::uint32_t>(place.count)});
  auto shared =
      std::make_shared<engine::RankChannel>(engine::RankChannel{std::move(channel.value()), {}});
  trainers_.push_back(std::make_unique<Trainer>(scenario, rank, world, shared, checker_));
  trainers_.back()->begin_at(0);
  daemon::Rank& entry = ranks_[handle];
  entry.attach.key = kKey;
  entry.attach.rank = rank;
  entry.channel = std::move(shared);
  for (const api::BucketBounds& bucket : scenario.tolerance.buckets) {
    if (rank == 0 && Tolerance::is_described(bucket))
      session_->describe_bucket(handle, bucket, now);
  }
}

void SessionNode::detach_all(Instant now) {
  for (const auto& trainer : trainers_) trainer->leave();
  for (const auto& [handle, rank] : std::exchange(ranks_, {})) {
    session_->detach(handle, true, now);
    session_->memory_freed(handle);
  }
}

void SessionNode::replan(const session::PlanChoice& choice, Instant now) {
  const Status asked = session_->replan(kAsker, protocol::job_id_of(kKey), choice, now);
  if (!asked.ok()) fail(asked.error().message);
}

std::uint32_t SessionNode::epoch() const {
  if (!lives() || jobs_->installed().empty()) return 0;
  return jobs_->installed().front().epoch;
}

std::size_t SessionNode::tables() const {
  return epoch() == 0 ? 0 : jobs_->installed().front().bounds->buckets().size();
}

bool SessionNode::at_rest() const {
  if (!lives()) return true;
  return std::all_of(
      jobs_->installed().begin(), jobs_->installed().end(), [](const auto& installed) {
        return std::all_of(installed.parts.begin(), installed.parts.end(), [](const auto& part) {
          const job::Job& job = part.runtime->job();
          return !job.waiting().any &&
                 std::all_of(job.peers().begin(), job.peers().end(),
                             [](const hop::Peer& peer) { return peer.flow.in_flight() == 0; });
        });
      });
}

void SessionNode::make_exact() {
  is_exact_ = true;
  if (!lives()) return;
  for (const daemon::InstalledJob& job : jobs_->installed()) {
    for (const daemon::InstalledBucket& installed : job.bounds->buckets()) {
      for (std::size_t t = 0; t < installed.any().tensor_count(); ++t) {
        for (const auto& part : installed.parts) part->set_bound(t, 0);
      }
    }
  }
}

void SessionNode::open_gate() {
  for (const auto& trainer : trainers_) trainer->open_gate();
}

void SessionNode::fail(const std::string& what) {
  if (failure_.empty()) failure_ = "node " + std::to_string(id()) + ": " + what;
}

void SessionNode::turn(Instant now) {
  if (!runs()) return;
  bool worked = true;
  for (std::size_t turns = 0; worked && !watch_.has_struck(); ++turns) {
    worked = step_trainers(now);
    ask_links(now);
    for (const auto& engine : engines_) worked = engine->poll_once(now) || worked;
    hear_reports(now);
    worked = hear_events(now) || worked;
    worked = tick(now) || worked;
    worked = run_actions(now) || worked;
    if (turns > kMaxTurns) return fail("it never comes to rest");
  }
  // With many nodes, a check takes longer than a turn.
  const bool checks_all = config_.cluster.nodes.size() < kManyNodes;
  if (!checks_all && ++turns_ % kTurnsPerCheck != 0) return;
  for (const daemon::InstalledJob& job : jobs_->installed()) {
    for (const daemon::JobPart& part : job.parts) {
      if (const char* broken = part.runtime->job().broken_invariant()) fail(broken);
    }
  }
}

bool SessionNode::step_trainers(Instant now) {
  if (ready_ < trainers_.size()) return false;
  bool worked = false;
  for (const auto& trainer : trainers_) {
    worked = trainer->step(now) || worked;
    if (!trainer->failure().empty()) fail(trainer->failure());
  }
  return worked;
}

/// A report must arrive before a rank that reads the round's sum.
void SessionNode::hear_reports(Instant now) {
  for (const auto& queues : queues_) {
    for (; const api::JobRoundReport* heard = queues->reports.front(); queues->reports.pop()) {
      if (jobs_->keep_report(*heard) == nullptr) {
        fail("I3: it reports a round of a job that it does not have");
      } else if (const std::string wrong = checker_.on_report(id(), *heard, now); !wrong.empty()) {
        fail(wrong);
      }
    }
  }
}

/// Adds the job's counters before the job is gone.
void SessionNode::end_job(engine::JobRuntime* runtime) {
  for (const daemon::InstalledJob& job : jobs_->installed()) {
    for (std::size_t p = 0; p < job.parts.size(); ++p) {
      if (job.parts[p].runtime.get() != runtime) continue;
      counters_.add(runtime->job().counters());
      for (const daemon::InstalledBucket& installed : job.bounds->buckets())
        checker_.add_counts(*installed.parts[p]);
    }
  }
  jobs_->on_returned(runtime);
}

bool SessionNode::hear_events(Instant now) {
  bool any = false;
  for (std::size_t c = 0; c < queues_.size(); ++c) {
    api::EventQueue& events = queues_[c]->events;
    for (; const api::Event* event = events.front(); events.pop()) {
      any = true;
      if (event->kind != api::Event::Kind::kSnapshotFilled) {
        hear(*event, now);
        continue;
      }
      snapshots_[c].reset(event->snapshot);
      links_.update(*snapshots_[c], now, c);
      if (has_all_snapshots())
        session_->on_links(daemon::samples_of(links_.take_updated(now), id()), now);
    }
  }
  return any;
}

bool SessionNode::has_all_snapshots() const {
  return std::count(snapshots_.begin(), snapshots_.end(), nullptr) == 0;
}

void SessionNode::hear(const api::Event& event, Instant now) {
  using Kind = api::Event::Kind;
  if (event.kind == Kind::kControl) {
    session_->on_datagram({event.control.bytes.data(), event.control.length_bytes}, now);
    return;
  }
  switch (event.kind) {
    case Kind::kJobRemoved:
      return end_job(event.job);
    case Kind::kPlanPrepared:
    case Kind::kPlanReturned:
    case Kind::kPlanRefused:
      return hear_of_plan(event, now);
    case Kind::kStalled:
      return fail("I3: it gives round " + std::to_string(event.round) + " up because of node " +
                  std::to_string(event.node));
    default:
      return fail("its engine reported trouble");
  }
}

void SessionNode::hear_of_plan(const api::Event& event, Instant now) {
  const auto told = jobs_->take_plan_event(event);
  const daemon::InstalledJob* job = jobs_->find_running(event.job);
  if (!told || job == nullptr) return;
  switch (told->kind) {
    case api::Event::Kind::kPlanPrepared:
      watch_.on_ready(id(), told->epoch);
      return session_->on_plan_prepared(job->id, told->epoch, told->round, now);
    case api::Event::Kind::kPlanReturned:
      return session_->on_plan_ended(job->id, told->epoch, now);
    default:
      return session_->on_plan_refused(job->id, told->epoch, "the engine refuses it", now);
  }
}

bool SessionNode::tick(Instant now) {
  bool worked = finish_orders(now);
  if (session_->next_deadline() <= now) {
    session_->tick(now);
    worked = true;
  }
  return worked;
}

bool SessionNode::finish_orders(Instant now) {
  bool any = false;
  for (Order& order : std::exchange(orders_, {})) {
    if (order.done_at > now) {
      orders_.push_back(std::move(order));
      continue;
    }
    session_->on_plan_made(order.order.ticket, planner_(order.order.input), now);
    any = true;
  }
  return any;
}

void SessionNode::ask_links(Instant now) {
  if (links_at_ > now) return;
  links_at_ = now + pace_.links_every;
  if (!session_->wants_links() || !has_all_snapshots()) return;
  for (std::size_t c = 0; c < queues_.size(); ++c) {
    if (queues_[c]->commands.room() == 0) continue;
    api::Command fill;
    fill.kind = api::Command::Kind::kFillSnapshot;
    fill.snapshot = snapshots_[c].release();
    (void)queues_[c]->commands.push(fill);
  }
}

Instant SessionNode::wake_time(Instant now) const {
  if (!runs()) return Instant::never();
  Instant next = session_->next_deadline();
  for (const auto& engine : engines_) next = std::min(next, engine->next_deadline(now));
  for (const Order& order : orders_) next = std::min(next, order.done_at);
  if (session_->wants_links()) next = std::min(next, links_at_);
  if (ready_ < trainers_.size()) return next;
  for (const auto& trainer : trainers_) next = std::min(next, trainer->next_deadline());
  return next;
}

}  // namespace gradplane::sim
