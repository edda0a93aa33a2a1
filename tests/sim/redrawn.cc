// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/redrawn.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "tests/sim/agenda.h"
#include "tests/sim/dice.h"
#include "tests/sim/progress.h"
#include "tests/sim/tolerance_checker.h"

namespace gradplane::sim {
namespace {

constexpr Duration kAllAttachWithin = Duration::ms(50);
/// Time limit in which all nodes must have the same plan when no more rounds come, and in which the
/// job must be gone when all ranks have left.
constexpr Duration kSettleWithin = Duration::seconds(60);

class RedrawnRun {
 public:
  explicit RedrawnRun(const RedrawnScenario& scenario);
  RedrawnOutcome run();

 private:
  void attach_due();
  void step();
  Instant next_time() const;
  bool run_until(const std::function<bool()>& done, Duration limit, const char* what);
  void note_progress(const SessionNode& node);
  void note_pause();
  void check_pause();
  void strike();
  void mend_due();
  void mend();
  void wake(std::size_t node) { agenda_.wake(node); }
  void start(std::size_t node) {
    nodes_[node]->start(dice_.below(UINT64_MAX) | 1);
    wake(node);
  }
  bool agrees() const;
  bool nobody_has_job() const;
  void fail(const std::string& what) {
    if (outcome_.failure.empty()) outcome_.failure = what;
  }
  RedrawnMark mark() const;
  void ask();
  void run_closing_rounds();
  void open_gate();
  bool has_all_tables() const;
  void rest();
  void compare_replicas();
  std::string text() const;
  void conclude();

  const RedrawnScenario& scenario_;
  const std::uint32_t world_;
  Instant now_ = Instant::from_ns(1'000'000);
  Dice dice_;
  Network network_;
  ToleranceChecker checker_;
  SwitchWatch watch_;
  std::vector<std::unique_ptr<SessionNode>> nodes_;
  Agenda agenda_;
  Progress progress_;
  std::vector<std::uint32_t> completed_;  // by rank
  Instant progress_at_;
  std::vector<Instant> attach_at_;  // by member
  Instant late_at_ = Instant::never();
  std::size_t strikes_ = 0;  // number of strikes that were armed
  struct Fallen {
    api::NodeId node = api::kNoNode;
    Misfortune what = Misfortune::kDies;
    Instant back_at = Instant::never();
  };
  std::optional<Fallen> fallen_;
  std::optional<SwitchPhase> struck_in_;  // the phase of the last misfortune
  RedrawnOutcome outcome_;
};

std::uint32_t world_of(const api::Plan& plan) {
  std::size_t world = 0;
  for (const api::Member& member : plan.members) world += member.ranks.size();
  return static_cast<std::uint32_t>(world);
}

}  // namespace

RedrawnRun::RedrawnRun(const RedrawnScenario& scenario)
    : scenario_(scenario),
      world_(world_of(scenario.base.plan)),
      dice_(scenario.base.seed + 2),
      network_(scenario.base.link, scenario.base.seed),
      checker_(scenario.base, world_),
      watch_([this](std::uint32_t activation, const api::Plan& plan) {
        checker_.on_plan(scenario_.base.index_of(activation), plan);
      }),
      agenda_(scenario.config.cluster.nodes.size()),
      progress_(scenario.base.rounds.size(), world_),
      completed_(world_) {
  for (std::size_t n = 0; n < scenario.config.cluster.nodes.size(); ++n) {
    config::Config config = scenario.config;
    config.self = static_cast<api::NodeId>(n);
    nodes_.push_back(std::make_unique<SessionNode>(network_, std::move(config), scenario.pace,
                                                   watch_, checker_, now_));
    if (n != scenario.late) start(n);
  }
  if (scenario.late) late_at_ = now_ + scenario.late_by;
  for (std::size_t m = 0; m < scenario.base.plan.members.size(); ++m)
    attach_at_.push_back(now_ + dice_.between({}, kAllAttachWithin));
  if (!scenario.strikes.empty()) watch_.arm(scenario.strikes[strikes_++].when);
}

void RedrawnRun::attach_due() {
  for (std::size_t m = 0; m < attach_at_.size(); ++m) {
    if (attach_at_[m] > now_) continue;
    attach_at_[m] = Instant::never();
    const api::Member& member = scenario_.base.plan.members[m];
    for (const std::uint16_t rank : member.ranks)
      nodes_[member.node]->attach(scenario_.base, rank, world_, now_);
    agenda_.wake(member.node);
  }
  const auto is_over = [](Instant at) { return at == Instant::never(); };
  if (std::all_of(attach_at_.begin(), attach_at_.end(), is_over)) attach_at_.clear();
}

Instant RedrawnRun::next_time() const {
  Instant next = std::min(network_.next_event(), agenda_.next());
  for (const Instant at : attach_at_) next = std::min(next, at);
  if (fallen_) next = std::min(next, fallen_->back_at);
  return std::min(next, late_at_);
}

void RedrawnRun::step() {
  now_ = std::max(now_, next_time());
  network_.run_until(now_, [this](std::uint16_t node) { agenda_.wake(node); });
  attach_due();
  mend_due();
  for (const std::size_t n : std::vector<std::size_t>(agenda_.take_due(now_))) {
    SessionNode& node = *nodes_[n];
    node.turn(now_);
    note_progress(node);
    agenda_.set(n, node.wake_time(now_));
    if (watch_.has_struck()) {
      wake(n);
      strike();
    }
  }
  if (!watch_.failure().empty()) fail(watch_.failure());
}

void RedrawnRun::note_progress(const SessionNode& node) {
  if (!node.failure().empty()) fail(node.failure());
  const std::uint32_t before = progress_.first_lacked();
  for (const auto& trainer : node.trainers()) {
    std::uint32_t& known = completed_[trainer->rank()];
    progress_.on_rank(known, trainer->completed(), trainer->completed_end());
    known = trainer->completed();
  }
  if (progress_.first_lacked() > before) note_pause();
  if (progress_.first_lacked() > before || progress_at_ == Instant()) progress_at_ = now_;
  if (!scenario_.config.training.is_selective() &&  // exchanges do not limit the lead
      progress_.end() > progress_.first_lacked() + kMaxLeadRounds)
    fail("I6: a rank has completed round " + std::to_string(progress_.end() - 1) +
         " while another lacks round " + std::to_string(progress_.first_lacked()));
  outcome_.round_ends.resize(progress_.first_lacked(), now_);
}

/// A round has been completed at all ranks. progress_at_ is when that was so for the round before.
void RedrawnRun::note_pause() {
  if (progress_at_ == Instant() || progress_.first_lacked() <= 1) return;
  RedrawnTotals& totals = outcome_.totals;
  Duration& longest = struck_in_ ? totals.longest_after[static_cast<std::size_t>(*struck_in_)]
                                 : totals.longest_before;
  longest = std::max(longest, now_ - progress_at_);
}

/// Hits the coordinator with its misfortune, if it has no part in the job. If a member of the job
/// died, the job would end; other tests check that.
void RedrawnRun::strike() {
  const SwitchWatch::Struck struck = watch_.take_strike();
  const RedrawnStrike& strike = scenario_.strikes[strikes_ - 1];
  SessionNode& node = *nodes_[struck.coordinator];
  const auto& members = scenario_.base.plan.members;
  const bool has_part = scenario_.config.cluster.nodes[node.id()].aggregate ||
                        std::any_of(members.begin(), members.end(),
                                    [&](const auto& m) { return m.node == node.id(); });
  if (has_part || fallen_) {
    ++outcome_.totals.unstruck;
  } else {
    ++outcome_.totals
          .struck[static_cast<std::size_t>(struck.phase)][static_cast<std::size_t>(strike.what)];
    struck_in_ = struck.phase;
    if (strike.what != Misfortune::kDies) fallen_ = {node.id(), strike.what, now_ + strike.lasts};
    if (strike.what == Misfortune::kDies || strike.what == Misfortune::kRestarts) node.crash();
    if (strike.what == Misfortune::kPauses) node.set_paused(true);
    if (strike.what == Misfortune::kIsCutOff) network_.set_cut(node.id(), true);
  }
  agenda_.set(node.id(), node.wake_time(now_));
  if (strikes_ < scenario_.strikes.size()) watch_.arm(scenario_.strikes[strikes_++].when);
}

void RedrawnRun::mend_due() {
  if (fallen_ && fallen_->back_at <= now_) mend();
  if (late_at_ <= now_) start(*scenario_.late);
  if (late_at_ <= now_) late_at_ = Instant::never();
}

void RedrawnRun::mend() {
  SessionNode& node = *nodes_[fallen_->node];
  if (!node.lives()) start(node.id());
  if (fallen_->what == Misfortune::kPauses) node.set_paused(false);
  network_.set_cut(node.id(), false);
  agenda_.wake(node.id());
  fallen_.reset();
}

bool RedrawnRun::run_until(const std::function<bool()>& done, Duration limit, const char* what) {
  const Instant end = now_ + limit;
  while (outcome_.failure.empty() && !done()) {
    if (next_time() > end) {
      fail("I3: " + std::string(what) + " after " + std::to_string(limit.to_seconds()) + " s; " +
           text());
      break;
    }
    step();
    check_pause();
  }
  return outcome_.failure.empty();
}

void RedrawnRun::check_pause() {
  const bool is_running = progress_.first_lacked() > 0 && !progress_.all_done();
  if (!is_running || now_ <= progress_at_ + scenario_.longest_pause) return;
  fail("I3: no round for " + std::to_string(scenario_.longest_pause.to_seconds()) + " s; " +
       text());
}

std::string RedrawnRun::text() const {
  std::string text = std::to_string(progress_.first_lacked()) + " rounds of " +
                     std::to_string(scenario_.base.rounds.size()) + "; epochs";
  for (const auto& node : nodes_) text.append(" ").append(std::to_string(node->epoch()));
  return text;
}

/// Whether all nodes with the job have the same plan. The plan before must be gone if all of its
/// rounds are over.
bool RedrawnRun::agrees() const {
  std::uint32_t epoch = 0;
  for (const auto& node : nodes_) {
    if (node->epoch() == 0) continue;
    if (epoch != 0 && node->epoch() != epoch) return false;
    epoch = node->epoch();
    const daemon::InstalledJob& job = node->jobs().installed().front();
    const std::uint32_t activation = scenario_.base.index_of(job.plan.activation_round);
    if (job.plan_before && activation <= progress_.first_lacked()) return false;
  }
  return epoch != 0;
}

bool RedrawnRun::nobody_has_job() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    return !node->runs() || (node->jobs().empty() && node->session().jobs().empty());
  });
}

void RedrawnRun::compare_replicas() {
  const std::vector<std::uint64_t>* first = nullptr;
  for (const auto& node : nodes_) {
    for (const auto& trainer : node->trainers()) {
      if (first == nullptr) first = &trainer->results();
      if (*first != trainer->results()) fail("I1: two replicas hold different bits");
    }
  }
}

RedrawnMark RedrawnRun::mark() const {
  RedrawnMark mark{now_, {}};
  for (const auto& node : nodes_) {
    mark.control.datagrams += node->control().datagrams;
    mark.control.bytes += node->control().bytes;
  }
  return mark;
}

void RedrawnRun::ask() {
  const auto reaches = [this](std::uint32_t round) {
    return [this, round] { return progress_.first_lacked() >= round; };
  };
  run_until(reaches(1), scenario_.base.limit, "there is no first round");
  outcome_.began = mark();
  run_until(reaches(scenario_.ask_at_round), scenario_.base.limit, "rounds are open");
  outcome_.asked = mark();
  SessionNode& coordinator = *nodes_[scenario_.config.cluster.coordinator];
  const std::uint32_t before = nodes_[scenario_.base.plan.members.front().node]->epoch();
  if (outcome_.failure.empty()) coordinator.replan(scenario_.ask, now_);
  wake(coordinator.id());
  const auto has_it = [before](const auto& node) { return node->epoch() != before; };
  run_until([&] { return std::all_of(nodes_.begin(), nodes_.end(), has_it); }, kSettleWithin,
            "not all nodes have another plan");
  outcome_.agreed = mark();
}

/// Runs the closing rounds, which show what residuals were left. Ranks begin each of them together.
void RedrawnRun::run_closing_rounds() {
  const auto rounds = static_cast<std::uint32_t>(scenario_.base.rounds.size());
  const auto closing = static_cast<std::uint32_t>(scenario_.base.tolerance.closing_rounds);
  for (std::uint32_t round = rounds - closing; round < rounds; ++round) {
    const auto may_begin = [this, round] {
      return progress_.first_lacked() >= round && has_all_tables() &&
             std::all_of(nodes_.begin(), nodes_.end(),
                         [](const auto& node) { return node->at_rest(); });
    };
    if (!run_until(may_begin, scenario_.base.limit, "closing rounds do not begin")) return;
    open_gate();
  }
}

/// From now on no packets are lost and every bound is 0.
void RedrawnRun::open_gate() {
  network_.heal();
  for (const api::BucketBounds& bucket : scenario_.base.tolerance.buckets) {
    for (std::size_t t = 0; t < bucket.tensors.size(); ++t)
      checker_.on_change({.after = {}, .bucket = bucket.bucket, .tensor = t, .bound = 0}, now_);
  }
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    nodes_[n]->make_exact();
    nodes_[n]->open_gate();
    wake(n);
  }
}

/// Whether every node with a part in the job has the bounds of every bucket.
bool RedrawnRun::has_all_tables() const {
  const auto& buckets = scenario_.base.tolerance.buckets;
  const auto described = static_cast<std::size_t>(
      std::count_if(buckets.begin(), buckets.end(), Tolerance::is_described));
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    return node->epoch() == 0 || node->tables() == described;
  });
}

void RedrawnRun::rest() {
  outcome_.finished = mark();
  const Instant until = now_ + scenario_.rests;
  while (outcome_.failure.empty() && next_time() < until) step();
  outcome_.rested = {until, mark().control};
}

void RedrawnRun::conclude() {
  outcome_.ended = now_;
  outcome_.switches = watch_.switches();
  outcome_.packets = network_.sent();
  outcome_.control = mark().control;
  for (const auto& node : nodes_) outcome_.counters.add(node->counters());
  if (!scenario_.base.tolerance.buckets.empty()) fail(checker_.conclude(outcome_.counters));
  RedrawnTotals& totals = outcome_.totals;
  totals.runs = 1;
  totals.redraws = outcome_.switches.size();
  const auto by_another = [this](const SwitchWatch::Switch& change) {
    return change.coordinator != scenario_.config.cluster.coordinator;
  };
  totals.redraws_after_takeover = static_cast<std::uint64_t>(
      std::count_if(outcome_.switches.begin(), outcome_.switches.end(), by_another));
  totals.unstruck += scenario_.strikes.size() - strikes_;
  totals.relayed = outcome_.counters.blocks_relayed;
  totals.tolerance = checker_.totals();
}

RedrawnOutcome RedrawnRun::run() {
  if (scenario_.ask_at_round > 0) ask();
  run_closing_rounds();
  run_until([this] { return progress_.all_done(); }, scenario_.base.limit, "rounds are open");
  if (fallen_) mend();
  run_until([this] { return agrees(); }, kSettleWithin, "nodes have different plans");
  compare_replicas();
  rest();
  const SessionNode& member = *nodes_[scenario_.base.plan.members.front().node];
  const bool is_other =
      member.session().term().term.coordinator != scenario_.config.cluster.coordinator;
  outcome_.totals.takeovers = is_other ? 1 : 0;
  outcome_.totals.late = scenario_.late && nodes_[*scenario_.late]->epoch() != 0 ? 1 : 0;
  for (std::size_t n = 0; n < nodes_.size() && outcome_.failure.empty(); ++n) {
    if (nodes_[n]->lives()) nodes_[n]->detach_all(now_);
    wake(n);
  }
  run_until([this] { return nobody_has_job(); }, kSettleWithin, "something is left of the job");
  conclude();
  return std::move(outcome_);
}

RedrawnOutcome run(const RedrawnScenario& scenario) {
  return RedrawnRun(scenario).run();
}

}  // namespace gradplane::sim
