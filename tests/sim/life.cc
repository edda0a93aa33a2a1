// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/life.h"

#include <algorithm>

#include "dataplane/base/siphash.h"
#include "tests/sim/engine_watch.h"

namespace gradplane::sim {
namespace {

/// In jobs with kManyNodes, invariants are checked after one turn in so many.
constexpr std::uint64_t kTurnsPerCheck = 8;

/// The number of ranks in all plans.
std::size_t world_of(const Scenario& scenario) {
  std::size_t world = 0;
  for (const api::Member& member : everybody(scenario)) world += member.ranks.size();
  return world;
}

/// All installations, in the order of their times.
std::vector<Installation> installations_of(const Scenario& scenario) {
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

/// `start + after`, where Duration::max() stands for never.
Instant at(Instant start, Duration after) {
  return after == Duration::max() ? Instant::never() : start + after;
}

}  // namespace

Machines::Machines(const Scenario& scenario) : network(scenario.link, scenario.seed) {
  for (const api::Member& member : everybody(scenario)) {
    hosts.push_back(std::make_unique<Host>(network, scenario, member.node, now));
  }
}

Life::Life(Machines& machines, const Scenario& scenario)
    : machines_(machines),
      scenario_(scenario),
      start_(machines.now),
      world_(world_of(scenario)),
      checker_(scenario, static_cast<std::uint32_t>(world_)),
      installations_(installations_of(scenario)),
      coordinator_(scenario, actions()),
      watch_(scenario, start_),
      agenda_(machines.hosts.size()),
      progress_(scenario.rounds.size(), world_),
      completed_(world_),
      gate_(scenario.rounds.size() - scenario.tolerance.closing_rounds) {
  for (std::size_t h = 0; h < machines_.hosts.size(); ++h) {
    Host& host = *machines_.hosts[h];
    host.trainers.clear();
    const api::Member* member = member_of(scenario.plan, host.node());
    if (member == nullptr) continue;
    host.begin_job(scenario, scenario.plan, false, world_, checker_);
    coordinator_.set_host(host);
    agenda_.wake(h);
  }
  const auto all = static_cast<std::uint32_t>(scenario.rounds.size());
  outcome_.rank_ends.assign(world_, std::vector<Instant>(all, Instant::never()));
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    if (member_with(scenario.plan, rank) != nullptr) continue;
    progress_.on_rank(0, all, 0);
    completed_[rank] = all;
  }
}

bool Life::is_over() const {
  if (!outcome_.failure.empty()) return true;
  if (is_lost()) {
    return watch_.all_noticed() && std::none_of(machines_.hosts.begin(), machines_.hosts.end(),
                                                [](const auto& host) { return host->has_job(); });
  }
  return progress_.all_done() && at_rest() && has_ended_plans();
}

Outcome Life::run() {
  while (!is_over()) {
    const bool is_gate_next = gate_ < scenario_.rounds.size() && progress_.first_lacked() >= gate_;
    if (is_gate_next && !is_lost() && at_rest()) open_gate();
    machines_.now = std::max(machines_.now, next_time());
    if (machines_.now > start_ + scenario_.limit) {
      fail("I3: no end after " + std::to_string(scenario_.limit.to_seconds()) + " s; " +
           progress_text());
      break;
    }
    step();
  }
  conclude();
  return outcome_;
}

Instant Life::next_time() const {
  Instant next = std::min(machines_.network.next_event(), agenda_.next());
  if (installed_ < installations_.size()) {
    next = std::min(next, at(start_, installations_[installed_].after));
  }
  const std::vector<BoundChange>& changes = scenario_.tolerance.changes;
  if (changed_ < changes.size()) next = std::min(next, start_ + changes[changed_].after);
  return std::min({next, coordinator_.next_deadline(), watch_.next_event()});
}

void Life::step() {
  machines_.network.run_until(machines_.now, [this](std::uint16_t host) { agenda_.wake(host); });
  note_round_ends();
  install_due();
  change_due();
  flip_due();
  crash_due();
  for (const std::size_t h : agenda_.take_due(machines_.now)) turn(*machines_.hosts[h]);
}

void Life::install_due() {
  while (installed_ < installations_.size() &&
         at(start_, installations_[installed_].after) <= machines_.now) {
    const Installation& it = installations_[installed_++];
    Host& host = *machines_.hosts[it.member];
    if (is_lost() || !host.has_job()) continue;
    install(host, it.bucket);
    turn(host);
  }
}

void Life::install(Host& host, std::uint32_t id) {
  for (std::size_t c = 0; c < host.cores(); ++c) install(host, c, id);
}

void Life::note_round_ends() {
  outcome_.round_ends.resize(progress_.first_lacked(), machines_.now);
}

void Life::flip_due() {
  if (scenario_.flips.empty()) return;
  const std::uint32_t completed = progress_.first_lacked();
  const std::size_t known = coordinator_.activations().size();
  if (!coordinator_.step(completed, machines_.now)) return;
  if (coordinator_.activations().size() > known) {
    on_activation(scenario_.index_of(coordinator_.activations()[known]),
                  known == 0 ? scenario_.plan : scenario_.flips[known - 1], scenario_.flips[known]);
  }
  for (const auto& host : machines_.hosts) turn(*host);
}

void Life::change(const BoundChange& change) {
  checker_.on_change(change, machines_.now);
  for (const auto& host : machines_.hosts) {
    for (const auto& bucket : host->buckets) {
      if (bucket->id() == change.bucket) bucket->set_bound(change.tensor, change.bound);
    }
  }
}

void Life::change_due() {
  const std::vector<BoundChange>& changes = scenario_.tolerance.changes;
  while (changed_ < changes.size() && start_ + changes[changed_].after <= machines_.now) {
    change(changes[changed_++]);
  }
}

void Life::crash_due() {
  if (watch_.is_due(machines_.now)) crash();
  for (const std::size_t h : watch_.take_noticed(machines_.now)) lose_job(*machines_.hosts[h]);
}

void Life::crash() {
  watch_.on_crash(machines_.now);
  coordinator_.stop();
  const std::uint16_t host = scenario_.crashes[0].host;
  machines_.network.set_up(host, false);
  machines_.hosts[host]->crash();
}

/// Ends the job on a host. As in a daemon, the session tells the engine and the ranks. Each rank
/// once more takes completions, because the engine may have completed rounds before it gave the job
/// up.
void Life::lose_job(Host& host) {
  for (const auto& trainer : host.trainers) trainer->leave();
  if (host.has_job()) host.leave_job();
  turn(host);
}

/// Begins a closing round. From now on nothing may be lost, and all ranks take part.
void Life::open_gate() {
  machines_.network.heal();
  changed_ = scenario_.tolerance.changes.size();
  for (const api::BucketBounds& table : scenario_.tolerance.buckets) {
    for (std::size_t t = 0; t < table.tensors.size(); ++t) {
      change({.after = {}, .bucket = table.bucket, .tensor = t, .bound = 0});
    }
  }
  ++gate_;
  for (std::size_t h = 0; h < machines_.hosts.size(); ++h) {
    for (const auto& trainer : machines_.hosts[h]->trainers) trainer->open_gate();
    agenda_.wake(h);
  }
}

bool Life::at_rest() const {
  return std::all_of(machines_.hosts.begin(), machines_.hosts.end(),
                     [](const auto& host) { return host->at_rest(); });
}

void Life::turn(Host& host) {
  poll(host);
  if (host.is_up()) hear_events(host);
  for (const auto& trainer : host.trainers) {
    if (!trainer->failure().empty()) fail(trainer->failure());
  }
  note_progress(host);
  check_lead();
  check_invariants(host);
  if (!coordinator_.failure().empty()) fail(coordinator_.failure());
  agenda_.set(host.node(), host.wake_time(machines_.now));
}

void Life::poll(Host& host) {
  bool worked = true;
  for (std::size_t turns = 0; worked; ++turns) {
    worked = false;
    for (const auto& trainer : host.trainers) worked = trainer->step(machines_.now) || worked;
    if (!host.is_up()) continue;
    for (std::size_t c = 0; c < host.cores(); ++c) {
      {
        const Running engine(Running::Code::kEngine);
        worked = host.engine(c).poll_once(machines_.now) || worked;
      }
      hear_reports(host, c);
    }
    if (turns > kMaxTurns) return fail("an engine never comes to rest");
  }
}

/// Passes the reports of rounds that a host has closed as their root to the checker.
void Life::hear_reports(Host& host, std::size_t core) {
  while (const api::JobRoundReport* heard = host.reports(core).front()) {
    const std::string wrong = checker_.on_report(host.node(), *heard, machines_.now);
    if (!wrong.empty()) fail(wrong);
    host.reports(core).pop();
  }
}

void Life::hear_events(Host& host) {
  for (std::size_t c = 0; c < host.cores(); ++c) {
    while (const api::Event* event = host.events(c).front()) {
      hear(host, *event);
      host.events(c).pop();
    }
  }
}

void Life::hear(Host& host, const api::Event& event) {
  switch (event.kind) {
    case api::Event::Kind::kControl:
      return;
    case api::Event::Kind::kStalled:
      return give_up(host, event);
    case api::Event::Kind::kJobRemoved:
      if (host.is_last_removed()) end_job(host);
      return;
    default:
      if (!coordinator_.on_event(host.node(), event, machines_.now)) {
        fail("node " + std::to_string(host.node()) + " reports trouble of kind " +
             std::to_string(static_cast<int>(event.kind)));
      }
  }
}

void Life::give_up(const Host& by, const api::Event& event) {
  if (is_lost()) return watch_.on_stall(machines_.now);
  outcome_.given_up = {by.node(), event.node, event.round, event.stall};
  fail("I3: node " + std::to_string(by.node()) + " gives round " + std::to_string(event.round) +
       " up because of node " + std::to_string(event.node) + ", reason " +
       std::to_string(static_cast<int>(event.stall.reason)) + "; " + progress_text());
}

void Life::note_progress(const Host& host) {
  const auto all = static_cast<std::uint32_t>(scenario_.rounds.size());
  for (const auto& trainer : host.trainers) {
    if (!trainer->has_begun()) continue;
    std::uint32_t& known = completed_[trainer->rank()];
    const std::uint32_t completed =
        trainer->completed() < trainer->end() ? trainer->completed() : all;
    for (std::uint32_t round = known; round < trainer->completed(); ++round)
      outcome_.rank_ends[trainer->rank()][round] = machines_.now;
    progress_.on_rank(known, completed, trainer->completed_end());
    known = completed;
  }
}

/// Checks the lead of ranks (I6). If a rank is further ahead of another one when the job is lost,
/// its arena no longer has the oldest result that the other lacks. Exchanges do not wait for every
/// rank, so they do not limit the lead (docs/protocol.md, section 10).
void Life::check_lead() {
  if (!scenario_.plan.selections.empty()) return;
  if (progress_.end() <= progress_.first_lacked() + kMaxLeadRounds) return;
  fail("I6: a rank has completed round " + std::to_string(progress_.end() - 1) +
       " while another lacks round " + std::to_string(progress_.first_lacked()));
}

void Life::check_invariants(const Host& host) {
  const bool checks_all = machines_.hosts.size() < kManyNodes;
  if (!host.has_job() || (++turns_ % kTurnsPerCheck != 0 && !checks_all)) return;
  for (std::size_t c = 0; c < host.cores(); ++c) {
    const char* broken = host.runtime(c).job().broken_invariant();
    if (broken != nullptr) fail("node " + std::to_string(host.node()) + ": " + broken);
  }
}

void Life::fail(std::string what) {
  if (outcome_.failure.empty()) outcome_.failure = std::move(what);
}

std::string Life::progress_text() const {
  std::string text;
  for (const std::uint32_t completed : completed_) text += std::to_string(completed) + " ";
  return "rounds completed per rank: " + text + "of " + std::to_string(scenario_.rounds.size());
}

std::uint32_t Life::end_of_submitted() const {
  std::uint32_t end = 0;
  for (const auto& host : machines_.hosts) {
    for (const auto& trainer : host->trainers) end = std::max(end, trainer->submitted());
  }
  return end;
}

void Life::conclude() {
  outcome_.ended = machines_.now;
  note_round_ends();
  outcome_.packets = machines_.network.sent();
  outcome_.packets_dropped = machines_.network.dropped();
  if (const SiteNetwork* sites = machines_.network.sites()) {
    for (SiteNetwork::Pipe link = 0; link < sites->network().links.size(); ++link)
      outcome_.site_links.push_back(sites->counters(link));
  }
  outcome_.tolerance = checker_.totals();
  outcome_.activations = coordinator_.activations();
  if (outcome_.failure.empty() && is_lost()) {
    outcome_.failure = check_recovery(scenario_, machines_.hosts);
  }
  if (!is_lost()) {
    for (const auto& host : machines_.hosts) {
      if (!host->has_job()) continue;
      for (std::size_t c = 0; c < host->cores(); ++c)
        outcome_.counters.add(host->runtime(c).job().counters());
      outcome_.links.push_back(host->links());
      for (const auto& bucket : host->buckets) checker_.add_counts(*bucket);
    }
    compare_replicas();
    if (outcome_.failure.empty()) outcome_.failure = checker_.conclude(outcome_.counters);
  }
}

void Life::compare_replicas() {
  const std::vector<std::uint64_t>* first = nullptr;
  std::vector<std::optional<std::uint64_t>> known(scenario_.rounds.size());
  for (const auto& host : machines_.hosts) {
    for (const auto& trainer : host->trainers) {
      if (first == nullptr) first = &trainer->results();
      for (std::uint32_t r = 0; r < known.size(); ++r) {
        if (!trainer->has_completed(r)) continue;
        if (!known[r]) known[r] = trainer->results()[r];
        if (*known[r] != trainer->results()[r]) fail("I1: two replicas hold different bits");
      }
    }
  }
  const std::array<std::uint64_t, 3> facts = {static_cast<std::uint64_t>(machines_.now.count_ns()),
                                              outcome_.packets, outcome_.packets_dropped};
  outcome_.trace =
      siphash24({}, std::as_bytes(std::span(facts)),
                first ? std::as_bytes(std::span(*first)) : std::span<const std::byte>());
}

}  // namespace gradplane::sim
