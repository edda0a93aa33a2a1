// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Gathering under loss bounds makes no forbidden call: a root and three leaves sum thousands of
// rounds of a bucket, lose packets, close early, and carry what did not enter and what int8 rounds
// away.
#include <array>
#include <cstdio>
#include <memory>
#include <vector>

#include "dataplane/aggregate/bucket.h"
#include "dataplane/base/fixed_queue.h"
#include "dataplane/engine/local_plan.h"
#include "dataplane/job/node.h"
#include "tests/perf/forbidden_calls.h"
#include "tests/support/engine_host.h"
#include "tests/support/hosts.h"

using namespace gradplane;

namespace {

constexpr std::uint16_t kNodes = 4;
constexpr std::uint32_t kBlocks = 64;
constexpr std::size_t kRoundBytes = kBlocks * kMinBlockBytes;
constexpr std::uint32_t kElements = kRoundBytes / sizeof(float);
constexpr std::uint32_t kWarmUpRounds = 50;
constexpr std::uint32_t kRounds = 3000;
constexpr std::uint64_t kLoseOneOf = 19;
constexpr int kMaxSteps = 1'000'000;  // in milliseconds

struct Datagram {
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  std::uint32_t length_bytes = 0;
  std::array<std::byte, kMaxHeaderBytes + 2 * kMinBlockBytes> bytes;
};

struct Host {
  Host(std::uint16_t self, const api::Plan& plan)
      : arena(kRoundSlots * kRoundBytes), node(self, {}) {
    job::JobConfig config;
    config.job = config.epoch = 1;
    config.self = self;
    config.block_bytes = kMinBlockBytes;
    config.round_bytes = kRoundBytes;
    config.compensation = Compensation::kCarry;
    config.stall_after = job::kMinStall;
    config.close_limits = {.strict_rounds = 1, .slack = Duration::ms(2)};
    config.local_ranks = {{.arena = arena.data(), .rank = self}};
    engine::fill_local_plan(config, plan, self, {});
    aggregate::BucketConfig table;
    table.geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes, 1);
    table.tensors = {{0, kElements / 8, 0},
                     {kElements / 8, kElements - kElements / 8, 0.1F, false, WireType::kInt8}};
    table.epoch = config.epoch;
    if (self == 0) table.gathered = {{.tree = 0, .sources = testing::hosts_as_sources({1, 2, 3})}};
    table.limits = config.close_limits;
    table.keeps_residual = self != 0;
    bucket = std::make_unique<aggregate::Bucket>(table);
    job = std::make_unique<job::Job>(std::move(config));
    ready = job->add_bucket(bucket.get()) && node.add(job.get()) == JobRefusal::kNone;
  }

  std::vector<std::byte> arena;
  std::unique_ptr<aggregate::Bucket> bucket;
  std::unique_ptr<job::Job> job;
  job::Node node;
  std::uint32_t submitted = 0;
  std::uint32_t completed = 0;
  bool ready = false;
};

class Network {
 public:
  Network() {
    const api::Plan plan = testing::star_of(kNodes);
    for (std::uint16_t n = 0; n < kNodes; ++n) hosts_.push_back(std::make_unique<Host>(n, plan));
  }

  /// Runs until every rank has completed `rounds` rounds. Returns false if that does not happen.
  bool run_until(std::uint32_t rounds) {
    for (int step = 0; step < kMaxSteps; ++step) {
      bool all = true;
      for (std::uint16_t n = 0; n < kNodes; ++n) all = turn(n, rounds) && all;
      if (all) return true;
      deliver();
    }
    return false;
  }
  bool ready() const {
    for (const auto& host : hosts_) {
      if (!host->ready) return false;
    }
    return true;
  }
  const aggregate::Bucket& root_bucket() const { return *hosts_[0]->bucket; }
  /// Whether the root's reports and counters have the same number of missing blocks.
  bool reports_are_complete() const {
    return reported_missing_ == hosts_[0]->job->counters().blocks_missing;
  }

 private:
  bool turn(std::uint16_t n, std::uint32_t rounds) {
    Host& host = *hosts_[n];
    host.node.tick(now_);
    while (host.submitted < rounds && host.submitted == host.completed &&
           host.job->submit(0, host.submitted, kElements, ElementType::kFloat32, 1) ==
               job::SubmitResult::kAccepted) {
      ++host.submitted;
    }
    while (host.node.sum_local(kBlocks)) {
    }
    job::Event event;
    while (host.job->poll_event(event)) ++host.completed;
    while (host.job->poll_report(report_)) reported_missing_ += report_.missing_blocks;
    while (const auto packet = host.node.poll_transmit(out_.bytes, now_)) {
      out_.from = n;
      out_.to = packet->node;
      out_.length_bytes = packet->length_bytes;
      if (++sent_ % kLoseOneOf != 0) (void)flying_.push(out_);
    }
    return host.completed == rounds;
  }

  void deliver() {
    now_ = now_ + Duration::ms(1);
    for (std::size_t n = flying_.size(); n > 0; --n) {
      const Datagram& d = flying_.front();
      (void)hosts_[d.to]->node.handle(d.from, std::span(d.bytes).first(d.length_bytes), false,
                                      {.at = now_, .waited = {}});
      flying_.pop();
    }
  }

  std::vector<std::unique_ptr<Host>> hosts_;
  FixedQueue<Datagram> flying_{8192};
  Datagram out_;
  std::uint64_t sent_ = 0;
  RoundReport report_;
  std::uint64_t reported_missing_ = 0;
  Instant now_ = Instant::from_ns(1'000'000'000);
};

}  // namespace

int main() {
  Network network;
  bool right = network.ready() && network.run_until(kWarmUpRounds);
  testing::count_forbidden_calls();
  right = right && network.run_until(kRounds);
  const bool none = testing::no_forbidden_calls();
  right = right && network.reports_are_complete();
  const aggregate::Bucket& bucket = network.root_bucket();
  const std::uint64_t early = bucket.closes(CloseReason::kEarly);
  std::printf("%u rounds, %llu closed early, %llu blocks missing%s\n", kRounds,
              static_cast<unsigned long long>(early),
              static_cast<unsigned long long>(bucket.missing_blocks(1)),
              right ? "" : "; it stood still, or lost a report");
  return none && right && early > 0 && bucket.missing_blocks(1) > 0 ? 0 : 1;
}
