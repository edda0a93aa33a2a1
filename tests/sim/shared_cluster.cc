// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/shared_cluster.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "dataplane/engine/engine.h"
#include "dataplane/engine/local_plan.h"
#include "tests/sim/agenda.h"
#include "tests/sim/cluster.h"

namespace gradplane::sim {
namespace {

Ipv4 address_of(std::uint16_t node) {
  return {0x0a000001U + node};
}

float value_of(std::uint32_t round, std::uint32_t rank) {
  return static_cast<float>((round * 5 + rank * 3) % 16);
}

/// A rank of a job: it computes, submits the buckets, waits for their sums, and repeats that.
class SharedRank {
 public:
  SharedRank(const SharedJob& job, std::uint32_t rank, std::uint32_t world, std::uint64_t seed,
             std::shared_ptr<engine::RankChannel> channel, SharedOutcome& outcome,
             std::size_t job_index)
      : job_(job),
        rank_(rank),
        world_(world),
        channel_(std::move(channel)),
        outcome_(outcome),
        index_(job_index),
        submissions_(channel_->channel.submissions()),
        completions_(channel_->channel.completions()),
        random_(seed * 1000003 + job_index),  // the same compute times on all ranks of a job
        own_random_(seed * 7919 + rank),
        next_at_(Instant() + job.start) {}

  bool done() const { return iteration_ == job_.iterations; }
  Instant next_deadline() const {
    return submitted_ == job_.buckets || done() ? Instant::never() : next_at_;
  }

  bool step(Instant now) {
    bool any = false;
    ipc::Completion completion;
    while (completions_.pop(completion)) {
      any = true;
      take(completion, now);
    }
    while (next_deadline() <= now) {
      any = true;
      submit(now);
    }
    return any;
  }

 private:
  static double varied(double deviation, std::mt19937_64& random) {
    if (deviation <= 0) return 1;  // std::normal_distribution takes no such deviation
    std::normal_distribution<double> noise(0, deviation);
    return std::max(0.0, 1 + noise(random));
  }
  static Duration scaled(Duration time, double factor) {
    return Duration::ns(static_cast<std::int64_t>(static_cast<double>(time.count_ns()) * factor));
  }

  void submit(Instant now) {
    auto& iterations = outcome_.iterations[index_];
    auto& ends = outcome_.bucket_ends[index_];
    if (iterations.size() == iteration_) {
      iterations.push_back({now, now});
      ends.emplace_back(job_.buckets);
    }
    const std::uint32_t round = iteration_ * job_.buckets + submitted_;
    const float value = value_of(round, rank_);
    std::byte* at = channel_->channel.slot(round).data();
    for (std::uint32_t e = 0; e < job_.elements; ++e) {
      std::memcpy(at + e * sizeof value, &value, sizeof value);
    }
    ++submitted_;
    (void)submissions_.push({.round = round,
                             .elements = job_.elements,
                             .element_type = static_cast<std::uint8_t>(ElementType::kFloat32),
                             .bucket = static_cast<std::uint16_t>(submitted_)});
    next_at_ = now + scaled(job_.bucket_gap, varied(job_.skew, own_random_));
  }

  void take(const ipc::Completion& completion, Instant now) {
    float expected = 0;
    for (std::uint32_t r = 0; r < world_; ++r) expected += value_of(completion.round, r);
    const std::byte* at = channel_->channel.slot(completion.round).data();
    for (std::uint32_t e = 0; e < job_.elements; ++e) {
      float got;
      std::memcpy(&got, at + e * sizeof got, sizeof got);
      if (got != expected) outcome_.failure = "a wrong sum";
    }
    Instant& ended = outcome_.bucket_ends[index_][iteration_][completion.round % job_.buckets];
    ended = std::max(ended, now);
    if (++completed_ < job_.buckets) return;
    Instant& end = outcome_.iterations[index_][iteration_].end;
    end = std::max(end, now);
    ++iteration_;
    submitted_ = completed_ = 0;
    next_at_ = now + scaled(job_.compute, varied(job_.jitter, random_));
  }

  const SharedJob& job_;
  std::uint32_t rank_;
  std::uint32_t world_;
  std::shared_ptr<engine::RankChannel> channel_;
  SharedOutcome& outcome_;
  std::size_t index_;
  ipc::RingProducer<ipc::Submission> submissions_;
  ipc::RingConsumer<ipc::Completion> completions_;
  std::mt19937_64 random_;
  std::mt19937_64 own_random_;
  Instant next_at_;
  std::uint32_t iteration_ = 0;
  std::uint32_t submitted_ = 0;  // buckets
  std::uint32_t completed_ = 0;  // buckets
};

struct Host {
  std::unique_ptr<SimPort> port;
  api::CommandQueue commands{api::kQueueEntries};
  api::EventQueue events{api::kQueueEntries};
  api::ReportQueue reports{api::kReportQueueEntries};
  std::vector<std::unique_ptr<engine::JobRuntime>> runtimes;
  std::unique_ptr<engine::Engine> engine;
  std::vector<std::unique_ptr<SharedRank>> ranks;
  Instant next_poll;
};

class SharedCluster {
 public:
  explicit SharedCluster(const SharedScenario& scenario)
      : s_(scenario), network_(scenario.link, scenario.seed), plan_(star(scenario.workers)) {
    outcome_.iterations.resize(s_.jobs.size());
    outcome_.bucket_ends.resize(s_.jobs.size());
    plan_.soundings = s_.soundings;
    for (const api::Member& member : plan_.members) network_.add_host(address_of(member.node));
    for (const api::Member& member : plan_.members) add_host(member);
  }

  SharedOutcome run() {
    while (outcome_.failure.empty() && !settled()) {
      Instant next = network_.next_event();
      for (std::size_t h = 0; h < hosts_.size(); ++h) next = std::min(next, due(h));
      now_ = std::max(now_, next);
      if (now_ > Instant() + s_.limit) {
        outcome_.failure = "no end";
        break;
      }
      network_.run_until(now_, [](std::uint16_t) {});
      look();
      for (std::size_t h = 0; h < hosts_.size(); ++h) {
        if (due(h) <= now_) turn(*hosts_[h]);
      }
    }
    outcome_.dropped = network_.dropped();
    for (const auto& host : hosts_) {
      outcome_.links.push_back(host->engine->links());
      for (const auto& runtime : host->runtimes) outcome_.counters.add(runtime->job().counters());
    }
    outcome_.end = now_;
    return std::move(outcome_);
  }

 private:
  void add_host(const api::Member& member) {
    auto host = std::make_unique<Host>();
    const std::uint64_t rate = s_.paced ? s_.link.bits_per_second : 0;
    host->port = std::make_unique<SimPort>(network_, member.node, address_of(member.node), now_);
    engine::EngineOptions options;
    options.self = member.node;
    options.link = {.bits_per_second = rate,
                    .buffer_bytes = s_.buffer_known ? s_.link.queue_bytes : 0};
    options.grants = s_.grant_settings;
    for (const api::Member& other : plan_.members) options.nodes.push_back(address_of(other.node));
    host->engine = std::make_unique<engine::Engine>(std::move(options), host->port->queue(0),
                                                    host->commands, host->events, host->reports);
    for (std::size_t j = 0; j < s_.jobs.size(); ++j) add_job(*host, member, j, rate);
    hosts_.push_back(std::move(host));
  }

  void add_job(Host& host, const api::Member& member, std::size_t j, std::uint64_t rate) {
    job::JobConfig config;
    config.job = static_cast<std::uint32_t>(j + 1);
    config.epoch = plan_.epoch;
    config.self = member.node;
    config.round_bytes = s_.round_bytes;
    config.congestion = s_.jobs[j].congestion;
    config.grants = s_.grants && !s_.jobs[j].shares;
    config.weight = s_.jobs[j].weight;
    config.forward_order = s_.forward_order;
    config.stall_after = job::kMinStall;
    engine::fill_local_plan(config, plan_, member.node,
                            std::vector<std::uint64_t>(plan_.members.size(), rate));
    std::vector<std::shared_ptr<engine::RankChannel>> channels;
    for (const std::uint16_t rank : member.ranks) {
      auto channel =
          ipc::Channel::create({.slot_count = kRoundSlots, .slot_bytes = s_.round_bytes});
      channels.push_back(std::make_shared<engine::RankChannel>(
          engine::RankChannel{std::move(channel.value()), {}}));
      host.ranks.push_back(std::make_unique<SharedRank>(s_.jobs[j], rank, s_.workers, s_.seed,
                                                        channels.back(), outcome_, j));
    }
    host.runtimes.push_back(
        std::make_unique<engine::JobRuntime>(std::move(config), member.ranks, std::move(channels)));
    api::Command add;
    add.kind = api::Command::Kind::kAddJob;
    add.job = host.runtimes.back().get();
    (void)host.commands.push(add);
  }

  void look() {
    if (!s_.look || now_ < next_look_) return;
    next_look_ = now_ + s_.look_every;
    std::vector<const awareness::IncomingLinks*> links;
    for (const auto& host : hosts_) links.push_back(&host->engine->links());
    s_.look(now_, links);
  }

  Instant due(std::size_t h) {
    const bool got = !network_.inbox(static_cast<std::uint16_t>(h)).empty();
    return std::max(got ? Instant() : wake_time(*hosts_[h]), hosts_[h]->next_poll);
  }

  Instant wake_time(const Host& host) const {
    Instant next = host.engine->next_deadline(now_);
    for (const auto& rank : host.ranks) next = std::min(next, rank->next_deadline());
    return next;
  }

  void turn(Host& host) {
    host.next_poll = now_ + s_.nap;
    bool worked = true;
    for (std::size_t turns = 0; worked; ++turns) {
      worked = false;
      for (const auto& rank : host.ranks) worked = rank->step(now_) || worked;
      worked = host.engine->poll_once(now_) || worked;
      if (turns > kMaxTurns) {
        outcome_.failure = "an engine never comes to rest";
        return;
      }
    }
    while (const api::Event* event = host.events.front()) {
      if (event->kind != api::Event::Kind::kControl) outcome_.failure = "an engine is in trouble";
      host.events.pop();
    }
  }

  bool settled() const {
    for (const auto& host : hosts_) {
      for (const auto& rank : host->ranks) {
        if (!rank->done()) return false;
      }
    }
    return true;
  }

  const SharedScenario& s_;
  Network network_;
  api::Plan plan_;
  Instant now_;
  Instant next_look_;
  std::vector<std::unique_ptr<Host>> hosts_;
  SharedOutcome outcome_;
};

}  // namespace

SharedOutcome run(const SharedScenario& scenario) {
  return SharedCluster(scenario).run();
}

}  // namespace gradplane::sim
