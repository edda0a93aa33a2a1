// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/cluster.h"

#include <algorithm>
#include <bit>

#include "dataplane/base/siphash.h"
#include "dataplane/engine/local_plan.h"
#include "tests/sim/flip_coordinator.h"
#include "tests/sim/tolerance_checker.h"
#include "tests/sim/trainer.h"

namespace gradplane::sim {
namespace {

Ipv4 address_of(std::uint16_t node) {
  return {0x0a000001U + node};
}

/// One host: its engine on a simulated port, its job, its trainers.
struct Host {
  std::unique_ptr<SimPort> port;
  std::vector<std::unique_ptr<aggregate::Bucket>> buckets;
  api::CommandQueue commands{api::kQueueEntries};
  api::EventQueue events{api::kQueueEntries};
  api::ReportQueue reports{api::kReportQueueEntries};
  std::unique_ptr<engine::JobRuntime> runtime;
  std::unique_ptr<engine::Engine> engine;
  std::vector<std::unique_ptr<Trainer>> trainers;
};

class Simulation {
 public:
  explicit Simulation(const Scenario& scenario)
      : scenario_(scenario),
        network_(scenario.link, scenario.seed),
        world_(world_of(scenario.plan)),
        checker_(scenario, static_cast<std::uint32_t>(world_)),
        installations_(installations_of(scenario)),
        coordinator_(scenario, [this](const api::Plan& plan, api::NodeId node) {
          return engine::local_plan(plan, node, rates(), scenario_.grants);
        }) {
    for (std::size_t m = 0; m < scenario.plan.members.size(); ++m) {
      network_.add_host(address_of(static_cast<std::uint16_t>(m)));
    }
    for (const api::Member& member : scenario.plan.members) add_host(member);
  }

  Outcome run() {
    while (outcome_.failure.empty() && !settled()) {
      if (at_gate()) open_gate();
      Instant next = network_.next_event();
      if (installed_ < installations_.size()) {
        next = std::min(next, Instant() + installations_[installed_].after);
      }
      if (changed_ < changes().size()) {
        next = std::min(next, Instant() + changes()[changed_].after);
      }
      next = std::min(next, coordinator_.next_deadline());
      for (const auto& host : hosts_) next = std::min(next, wake_time(*host));
      now_ = std::max(now_, next);
      if (now_ > Instant() + scenario_.limit) {
        outcome_.failure = "I3: no end after " + std::to_string(scenario_.limit.to_seconds()) +
                           " s; " + progress();
        break;
      }
      network_.run_until(now_, [](std::uint16_t) {});
      install_due();
      change_due();
      flip_due();
      for (const auto& host : hosts_) {
        if (due(*host)) turn(*host);
      }
    }
    conclude();
    return outcome_;
  }

 private:
  job::JobConfig config_of(const api::Member& member) const {
    job::JobConfig config;
    config.job = 42;
    config.epoch = scenario_.plan.epoch;
    config.self = member.node;
    config.authenticate = scenario_.authenticate;
    config.block_bytes = scenario_.block_bytes;
    config.round_bytes = scenario_.round_bytes;
    config.compensation = scenario_.tolerance.compensation;
    config.close_limits = {.floor = scenario_.tolerance.floor,
                           .strict_rounds = scenario_.tolerance.strict_rounds,
                           .slack = scenario_.tolerance.slack,
                           .absent_after = scenario_.tolerance.absent_after};
    config.congestion = scenario_.congestion;
    config.grants = scenario_.grants;
    config.forward_order = scenario_.forward_order;
    config.stall_after = scenario_.stall_after;
    engine::fill_local_plan(config, scenario_.plan, member.node, rates());
    return config;
  }

  std::uint64_t rate() const { return scenario_.paced ? scenario_.link.bits_per_second : 0; }
  std::vector<std::uint64_t> rates() const {
    return std::vector<std::uint64_t>(scenario_.plan.members.size(), rate());
  }

  void add_host(const api::Member& member) {
    auto host = std::make_unique<Host>();
    std::vector<std::shared_ptr<engine::RankChannel>> channels;
    for (const std::uint16_t rank : member.ranks) {
      auto channel =
          ipc::Channel::create({.slot_count = kRoundSlots, .slot_bytes = scenario_.round_bytes});
      channels.push_back(std::make_shared<engine::RankChannel>(
          engine::RankChannel{std::move(channel.value()), {}}));
      host->trainers.push_back(std::make_unique<Trainer>(
          scenario_, rank, static_cast<std::uint32_t>(world_), channels.back(), checker_));
    }
    host->runtime =
        std::make_unique<engine::JobRuntime>(config_of(member), member.ranks, std::move(channels));
    host->port = std::make_unique<SimPort>(network_, member.node, address_of(member.node), now_);
    engine::EngineOptions options;
    options.self = member.node;
    options.link = {.bits_per_second = rate(),
                    .buffer_bytes = scenario_.buffer_known ? scenario_.link.queue_bytes : 0};
    for (std::size_t n = 0; n < scenario_.plan.members.size(); ++n) {
      options.nodes.push_back(address_of(static_cast<std::uint16_t>(n)));
    }
    host->engine = std::make_unique<engine::Engine>(std::move(options), host->port->queue(0),
                                                    host->commands, host->events, host->reports);
    api::Command add;
    add.kind = api::Command::Kind::kAddJob;
    add.job = host->runtime.get();
    (void)host->commands.push(add);
    coordinator_.add_host(*host->runtime, host->commands);
    hosts_.push_back(std::move(host));
  }

  void install_due() {
    while (installed_ < installations_.size() &&
           Instant() + installations_[installed_].after <= now_) {
      const Installation& it = installations_[installed_++];
      Host& host = *hosts_[it.member];
      auto bucket = host.runtime->make_bucket(scenario_.tolerance.bucket(it.bucket));
      if (bucket == nullptr) continue;  // of whole numbers: always exact
      for (std::size_t c = 0; c < changed_; ++c) change(*bucket, changes()[c]);
      host.buckets.push_back(std::move(bucket));
      api::Command add;
      add.kind = api::Command::Kind::kAddBucket;
      add.job = host.runtime.get();
      add.bucket = host.buckets.back().get();
      (void)host.commands.push(add);
      turn(host);
    }
  }

  std::uint32_t completed_everywhere() const {
    auto completed = static_cast<std::uint32_t>(scenario_.rounds.size());
    for (const auto& host : hosts_) {
      for (const auto& one : host->trainers) completed = std::min(completed, one->completed());
    }
    return completed;
  }

  void flip_due() {
    if (scenario_.flips.empty()) return;
    const std::uint32_t completed = completed_everywhere();
    outcome_.round_ends.resize(completed, now_);
    if (!coordinator_.step(completed, now_)) return;
    for (const auto& host : hosts_) turn(*host);
  }

  const std::vector<BoundChange>& changes() const { return scenario_.tolerance.changes; }

  static void change(aggregate::Bucket& bucket, const BoundChange& c) {
    if (bucket.id() == c.bucket) bucket.set_bound(c.tensor, c.bound);
  }

  void change_due() {
    while (changed_ < changes().size() && Instant() + changes()[changed_].after <= now_) {
      const BoundChange& due = changes()[changed_++];
      checker_.on_change(due, now_);
      for (const auto& host : hosts_) {
        for (const auto& bucket : host->buckets) change(*bucket, due);
      }
    }
  }

  /// Tells the checker what a host says of the rounds that it has closed as their root.
  void hear_reports(Host& host) {
    while (const api::JobRoundReport* heard = host.reports.front()) {
      const std::string wrong = checker_.on_report(index_of(host), heard->report, now_);
      if (!wrong.empty()) outcome_.failure = wrong;
      host.reports.pop();
    }
  }

  bool at_gate() const {
    for (const auto& host : hosts_) {
      for (const auto& trainer : host->trainers) {
        if (!trainer->at_gate()) return false;
      }
    }
    return at_rest();
  }

  /// A closing round begins: nothing may be lost any more, and all ranks are there.
  void open_gate() {
    network_.heal();
    changed_ = changes().size();
    for (const api::BucketBounds& table : scenario_.tolerance.buckets) {
      for (std::size_t t = 0; t < table.tensors.size(); ++t) {
        const BoundChange exact{.after = {}, .bucket = table.bucket, .tensor = t, .bound = 0};
        checker_.on_change(exact, now_);
        for (const auto& host : hosts_) {
          for (const auto& bucket : host->buckets) change(*bucket, exact);
        }
      }
    }
    for (const auto& host : hosts_) {
      for (const auto& trainer : host->trainers) trainer->open_gate();
    }
  }

  static std::uint16_t index_of(const Host& host) {
    return static_cast<std::uint16_t>(host.port->address().value - address_of(0).value);
  }

  /// When a host has something to do of its own accord.
  Instant wake_time(const Host& host) const {
    Instant next = host.engine->next_deadline(now_);
    for (const auto& trainer : host.trainers) next = std::min(next, trainer->next_deadline());
    return next;
  }

  bool due(Host& host) {
    return !network_.inbox(index_of(host)).empty() || wake_time(host) <= now_;
  }

  void turn(Host& host) {
    bool worked = true;
    for (std::size_t turns = 0; worked; ++turns) {
      worked = false;
      for (const auto& trainer : host.trainers) worked = trainer->step(now_) || worked;
      worked = host.engine->poll_once(now_) || worked;
      hear_reports(host);
      if (turns > kMaxTurns) {
        outcome_.failure = "an engine never comes to rest";
        return;
      }
    }
    while (const api::Event* event = host.events.front()) {
      if (event->kind == api::Event::Kind::kStalled) {
        give_up(index_of(host), *event);
      } else if (event->kind != api::Event::Kind::kControl &&
                 !coordinator_.on_event(index_of(host), *event, now_)) {
        outcome_.failure = "an engine reported trouble";
      }
      host.events.pop();
    }
    for (const auto& trainer : host.trainers) {
      if (!trainer->failure().empty()) outcome_.failure = trainer->failure();
    }
    check_lead();
    check_invariants(host);
    if (!coordinator_.failure().empty()) outcome_.failure = coordinator_.failure();
  }

  void check_invariants(const Host& host) {
    if (++turns_ % kTurnsPerCheck != 0) return;
    const char* broken = host.runtime->job().broken_invariant();
    if (broken == nullptr) return;
    outcome_.failure = "node " + std::to_string(index_of(host)) + ": " + broken;
  }

  /// A rank that has run further ahead of another leaves it behind for good when the job is lost:
  /// its arena holds the oldest result that the other lacks no longer.
  void check_lead() {
    const std::uint32_t first_lacked = completed_everywhere();
    std::uint32_t end = 0;
    for (const auto& host : hosts_) {
      for (const auto& trainer : host->trainers) end = std::max(end, trainer->completed_end());
    }
    if (end <= first_lacked + kMaxLeadRounds || !outcome_.failure.empty()) return;
    outcome_.failure = "I6: a rank has completed round " + std::to_string(end - 1) +
                       " while another lacks round " + std::to_string(first_lacked);
  }

  void give_up(std::uint16_t by, const api::Event& event) {
    outcome_.given_up = {by, event.node, event.round, event.stall};
    outcome_.failure = "I3: node " + std::to_string(by) + " gives round " +
                       std::to_string(event.round) + " up because of node " +
                       std::to_string(event.node) + ", reason " +
                       std::to_string(static_cast<int>(event.stall.reason)) + "; " + progress();
  }

  /// All trainers are done and no engine waits for anything.
  bool settled() const {
    for (const auto& host : hosts_) {
      for (const auto& trainer : host->trainers) {
        if (!trainer->done()) return false;
      }
    }
    return at_rest();
  }

  /// No engine waits for anything.
  bool at_rest() const {
    for (const auto& host : hosts_) {
      for (const hop::Peer& peer : host->runtime->job().peers()) {
        if (peer.flow.in_flight() > 0) return false;
      }
      if (host->runtime->job().waiting().any) return false;
    }
    return true;
  }

  std::string progress() const {
    std::string text;
    for (const auto& host : hosts_) {
      for (const auto& trainer : host->trainers) {
        text += std::to_string(trainer->completed()) + " ";
      }
    }
    return "rounds completed per rank: " + text + "of " + std::to_string(scenario_.rounds.size());
  }

  void conclude() {
    outcome_.ended = now_;
    outcome_.packets = network_.sent();
    outcome_.packets_dropped = network_.dropped();
    outcome_.tolerance = checker_.totals();
    outcome_.activations = coordinator_.activations();
    const std::vector<std::uint64_t>* first = nullptr;
    for (const auto& host : hosts_) {
      outcome_.counters.add(host->runtime->job().counters());
      for (const auto& bucket : host->buckets) checker_.add_counts(*bucket);
      for (const auto& trainer : host->trainers) {
        if (first == nullptr) first = &trainer->results();
        if (outcome_.failure.empty() && *first != trainer->results()) {
          outcome_.failure = "I1: two replicas hold different bits";
        }
      }
    }
    if (outcome_.failure.empty()) outcome_.failure = checker_.conclude(outcome_.counters);
    const std::array<std::uint64_t, 3> facts = {static_cast<std::uint64_t>(now_.count_ns()),
                                                outcome_.packets, outcome_.packets_dropped};
    outcome_.trace =
        siphash24({}, std::as_bytes(std::span(facts)),
                  first ? std::as_bytes(std::span(*first)) : std::span<const std::byte>());
  }

  static constexpr std::size_t kMaxTurns = 1'000'000;
  /// A check takes about as long as a turn.
  static constexpr std::uint64_t kTurnsPerCheck = 8;

  static std::size_t world_of(const api::Plan& plan) {
    std::size_t world = 0;
    for (const api::Member& member : plan.members) world += member.ranks.size();
    return world;
  }

  /// In the order of their times.
  static std::vector<Installation> installations_of(const Scenario& scenario) {
    std::vector<Installation> all;
    for (std::size_t m = 0; m < scenario.plan.members.size(); ++m) {
      for (const api::BucketBounds& bucket : scenario.tolerance.buckets) {
        Installation one{.member = m, .bucket = bucket.bucket, .after = {}};
        for (const Installation& i : scenario.tolerance.installations) {
          if (i.member == m && i.bucket == bucket.bucket) one.after = i.after;
        }
        all.push_back(one);
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.after < b.after; });
    return all;
  }

  const Scenario& scenario_;
  Network network_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::size_t world_;
  ToleranceChecker checker_;
  std::vector<Installation> installations_;
  FlipCoordinator coordinator_;
  std::size_t installed_ = 0;
  std::size_t changed_ = 0;  // of scenario_.tolerance.changes
  Instant now_ = Instant::from_ns(1'000'000);
  Outcome outcome_;
  std::uint64_t turns_ = 0;
};

}  // namespace

Outcome run(const Scenario& scenario) {
  return Simulation(scenario).run();
}

}  // namespace gradplane::sim
