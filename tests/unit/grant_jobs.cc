// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Two jobs that gather at one node: how many blocks each may have in flight, by policy, weight and
// progress.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "dataplane/job/node.h"
#include "tests/support/catch.h"
#include "tests/support/hosts.h"
#include "tests/support/packet.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000);
constexpr std::uint32_t kBlocks = 8;
constexpr std::uint32_t kElements = kBlocks * kMinBlockBytes / 4;
constexpr std::uint16_t kSender = 1;

job::JobConfig root_of(std::uint32_t job, double weight) {
  job::JobConfig config;
  config.job = job;
  config.epoch = 1;
  config.self = 0;
  config.world_size = 1;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = kBlocks * kMinBlockBytes;
  config.grants = true;
  config.weight = weight;
  config.peers = {{.node = kSender}};
  config.trees = {{.member = true,
                   .parent = hop::kNoPeer,
                   .children = {{hop::PeerIndex(0), 1}},
                   .share = {0, 1}}};
  testing::name_hosts(config);
  return config;
}

/// Node 0 gathers for two jobs with one sender each. It has 1 Gbit/s and room for 160 blocks. Three
/// quarters of the room are for blocks that need no grant.
class TwoJobs {
 public:
  explicit TwoJobs(const GrantSettings& settings, double first_weight = 1, double second_weight = 1)
      : TwoJobs(settings, root_of(1, first_weight), root_of(2, second_weight)) {}
  TwoJobs(const GrantSettings& settings, job::JobConfig first, job::JobConfig second)
      : node_(0,
              {.bits_per_second = 1'000'000'000,
               .buffer_bytes = 160 * (kMinBlockBytes + hop::kWireOverheadBytes),
               .block_bytes = kMinBlockBytes},
              settings),
        jobs_{std::make_unique<job::Job>(std::move(first)),
              std::make_unique<job::Job>(std::move(second))} {
    for (const auto& job : jobs_) REQUIRE(node_.add(job.get()) == JobRefusal::kNone);
  }

  /// Lets `count` more blocks of the job's round arrive. The last one says that the sender has
  /// more, so the job stays one that sends.
  void come(std::size_t job, std::uint32_t round, std::uint32_t count, bool more = true) {
    const PacketBuilder::Round r{
        .job = static_cast<std::uint32_t>(job + 1),
        .epoch = 1,
        .id = round,
        .geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes, 0)};
    for (std::uint32_t n = 0; n < count; ++n) {
      const std::uint32_t block = sent_[job]++ % kBlocks;
      const auto bytes = PacketBuilder::block(wire::PacketType::kPush, r, block)
                             .sender(kSender)
                             .demand(sent_[job], more || n + 1 < count ? 4 : 0)
                             .bytes();
      (void)node_.handle(kSender, bytes, false, {.at = now_, .waited = {}});
    }
  }

  /// The credit that the job's sender has not used.
  std::uint32_t credit(std::size_t job) const {
    const auto view = node_.grants().view(jobs_[job]->sources()[0]);
    return view.total_blocks - view.sent_blocks;
  }
  void send_all() {
    std::array<std::byte, 2048> out{};
    while (node_.poll_transmit(out, now_)) {
    }
  }
  void advance(Duration time) { now_ = now_ + time; }
  std::uint32_t sent(std::size_t job) const { return sent_[job]; }

  /// Returns how many blocks the job's sender may have in flight without a grant.
  std::uint32_t unscheduled(std::size_t job) const {
    return node_.grants().unscheduled_blocks(jobs_[job]->sources()[0]);
  }

 private:
  job::Node node_;
  std::array<std::unique_ptr<job::Job>, 2> jobs_;
  std::array<std::uint32_t, 2> sent_{};
  Instant now_ = kStart;
};

GrantSettings by(GrantPolicy policy) {
  return {.policy = policy, .mltcp = {}};
}

double share_of_first(const TwoJobs& jobs) {
  return static_cast<double>(jobs.unscheduled(0)) / (jobs.unscheduled(0) + jobs.unscheduled(1));
}

constexpr int kTurns = 5000;
constexpr Duration kTurn = Duration::us(20);  // of four blocks on the link
/// The blocks that job 1 sends in 100 ms, while `others` blocks of job 2, which has no grants,
/// arrive in each turn. Job 1 has a second sender, which is silent.
std::uint32_t sent_beside(std::uint32_t others) {
  job::JobConfig granted = root_of(1, 1);
  granted.world_size = 2;
  granted.hosts.clear();
  granted.peers.push_back({.node = kSender + 1});
  granted.trees[0].children.push_back({hop::PeerIndex(1), 1});
  testing::name_hosts(granted);
  job::JobConfig shared = root_of(2, 1);
  shared.grants = false;
  TwoJobs jobs({}, std::move(granted), std::move(shared));
  for (int turn = 0; turn < kTurns; ++turn) {
    jobs.come(1, 0, others);
    jobs.come(0, 0, std::max(1U, jobs.credit(0)));
    jobs.send_all();
    jobs.advance(kTurn);
  }
  return jobs.sent(0);
}

}  // namespace

TEST_CASE("blocks of a job without grants take their part of the link from what is granted") {
  constexpr double kLinkBlocks =
      kTurns * kTurn.to_seconds() * 1e9 / 8 / (kMinBlockBytes + hop::kWireOverheadBytes);
  constexpr std::uint32_t kOthers = 2;
  const auto alone = static_cast<double>(sent_beside(0));
  const auto beside = static_cast<double>(sent_beside(kOthers));
  INFO(kLinkBlocks << " blocks fit the link; " << alone << " and " << beside);
  CHECK(alone > 0.9 * kLinkBlocks);
  CHECK(beside < alone - 0.9 * kOthers * kTurns);
  CHECK(beside > alone - 1.1 * kOthers * kTurns);
}

TEST_CASE("the window before the downlink is counted in blocks of the job's size") {
  const TwoJobs jobs(by(GrantPolicy::kFair));
  CHECK(jobs.unscheduled(0) == 60);
  CHECK(jobs.unscheduled(1) == 60);
}

TEST_CASE("a job's weight counts where the policy asks for it") {
  const TwoJobs weighted(by(GrantPolicy::kWeighted), 3, 1);
  CHECK(weighted.unscheduled(0) == 90);
  CHECK(weighted.unscheduled(1) == 30);
  const TwoJobs fair(by(GrantPolicy::kFair), 3, 1);
  CHECK(share_of_first(fair) == 0.5);
}

TEST_CASE("under mltcp the job that is further in its iteration has more on its way") {
  TwoJobs jobs(by(GrantPolicy::kMltcp));
  jobs.come(1, 0, 1);
  jobs.come(0, 0, 4);
  const MltcpFunction f;
  const double expected = f.at(0.5) / (f.at(0.5) + f.at(1.0 / kBlocks));
  CHECK(std::abs(share_of_first(jobs) - expected) < 0.01);
}

TEST_CASE("mltcp's constants are those of the node") {
  TwoJobs jobs({.policy = GrantPolicy::kMltcp, .mltcp = {.slope = 0, .intercept = 1}});
  jobs.come(1, 0, 1);
  jobs.come(0, 0, 6);
  CHECK(share_of_first(jobs) == 0.5);
}

TEST_CASE("a job that begins an iteration is at its start again") {
  TwoJobs jobs(by(GrantPolicy::kMltcp));
  jobs.come(1, 0, 1);
  jobs.come(0, 0, kBlocks);
  const double ended = share_of_first(jobs);
  jobs.come(0, 1, 1);
  CHECK(ended > 0.7);
  CHECK(share_of_first(jobs) == 0.5);
}

TEST_CASE("a job that has nothing to send is told what one may have that begins") {
  TwoJobs jobs(by(GrantPolicy::kMltcp));
  jobs.come(1, 0, 4);
  jobs.come(0, 0, kBlocks, false);
  const MltcpFunction f;
  CHECK(std::abs(share_of_first(jobs) - f.at(0) / (f.at(0) + f.at(0.5))) < 0.01);
}

TEST_CASE("under strict all but a block is of the job with the most progress") {
  TwoJobs jobs(by(GrantPolicy::kStrict));
  CHECK(share_of_first(jobs) == 0.5);
  jobs.come(1, 0, 1);
  jobs.come(0, 0, 2);
  CHECK(jobs.unscheduled(0) >= 119);
  CHECK(jobs.unscheduled(1) == 1);
}
