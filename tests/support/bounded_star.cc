// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/support/bounded_star.h"

#include <algorithm>

#include "dataplane/base/assert.h"
#include "tests/support/hosts.h"

namespace gradplane::testing {

bool is_push_of(const Sent& packet, std::initializer_list<std::uint32_t> blocks) {
  const SeenPacket h = packet.seen();
  return h.type == wire::PacketType::kPush &&
         std::find(blocks.begin(), blocks.end(), h.block) != blocks.end();
}

job::JobConfig BoundedStar::config_of(std::uint16_t node, const StarOptions& options) const {
  job::JobConfig config;
  config.job = config.epoch = 1;
  config.self = node;
  config.world_size = static_cast<std::uint16_t>(kLeaves - 1 + options.ranks_of_last);
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = kBlocks * kMinBlockBytes;
  config.compensation = options.compensation;
  config.grants = options.grants;
  config.close_limits = {
      .strict_rounds = 0, .slack = Duration::ms(30), .absent_after = options.absent_after};
  aggregate::TreeConfig tree{.member = true, .children = {}, .share = {0, 1}};
  if (node == 0) {
    config.peers = {{.node = 1}, {.node = 2}};
    tree.children = {{.peer = hop::PeerIndex(0), .ranks = 1, .hosts = {0}},
                     {.peer = hop::PeerIndex(1), .ranks = options.ranks_of_last, .hosts = {1}}};
  } else {
    config.peers = {{.node = 0}};
    tree.parent = hop::PeerIndex(0);
    const std::uint16_t ranks = node == kLeaves ? options.ranks_of_last : 1;
    for (std::uint16_t r = 0; r < ranks; ++r) {
      config.local_ranks.push_back(
          {.arena = nullptr, .rank = static_cast<std::uint16_t>(node - 1 + r)});
    }
  }
  config.hosts = {{.node = 1, .ranks = 1}, {.node = 2, .ranks = options.ranks_of_last}};
  config.trees = {tree};
  return config;
}

BoundedStar::BoundedStar(const StarOptions& options) {
  for (std::uint16_t n = 0; n <= kLeaves; ++n) {
    job::JobConfig config = config_of(n, options);
    aggregate::BucketConfig bucket;
    bucket.geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes, kBucket);
    bucket.tensors = {{0, kElements / 2, 0}, {kElements / 2, kElements / 2, 0.2F}};
    bucket.tensors[1].wire = options.wire;
    bucket.epoch = config.epoch;
    if (n == 0) bucket.gathered = {{.tree = 0, .sources = hosts_as_sources({1, 2})}};
    bucket.limits = config.close_limits;
    bucket.keeps_residual = (n != 0 || options.wire != WireType::kElements) &&
                            options.compensation == Compensation::kCarry;
    buckets_.push_back(std::make_unique<aggregate::Bucket>(bucket));
    nodes_.push_back(std::make_unique<CoreNode>(std::move(config)));
    GP_ASSERT(nodes_.back()->job().add_bucket(buckets_.back().get()));
  }
}

job::SubmitResult BoundedStar::submit(std::uint16_t leaf, std::uint32_t round, float value,
                                      std::size_t local_rank) {
  for (std::uint32_t e = 0; e < kElements; ++e) *nodes_[leaf]->at(local_rank, round, e) = value;
  return nodes_[leaf]->job().submit(local_rank, round, kElements, ElementType::kFloat32, kBucket);
}

void BoundedStar::pass(Duration time, const Loses& loses) {
  const Instant end = now_ + time;
  while (now_ < end) {
    std::vector<std::pair<std::uint16_t, Sent>> flying;
    for (std::uint16_t n = 0; n < nodes_.size(); ++n) {
      nodes_[n]->node().tick(now_);
      for (Sent& sent : nodes_[n]->drain(now_)) {
        if (!loses(n, sent)) flying.emplace_back(n, std::move(sent));
      }
      for (const job::Event& event : nodes_[n]->events()) done_[n] = event;
    }
    now_ = now_ + Duration::ms(1);
    for (const auto& [from, sent] : flying) nodes_[sent.to]->deliver(from, sent.bytes, now_);
  }
}

void BoundedStar::learn() {
  for (std::uint16_t leaf = 1; leaf <= kLeaves; ++leaf) {
    const std::size_t ranks = nodes_[leaf]->job().config().local_ranks.size();
    for (std::size_t r = 0; r < ranks; ++r) {
      GP_ASSERT(submit(leaf, 0, 0, r) == job::SubmitResult::kAccepted);
    }
  }
  pass(Duration::ms(20));
  GP_ASSERT(done(1) && done(2) && event(1).round == 0);
  done_.clear();
  (void)reports();
}

float BoundedStar::result(std::uint16_t leaf, std::uint32_t round, std::uint32_t block,
                          std::size_t local_rank) {
  return *nodes_[leaf]->at(local_rank, round, block * 128 + 5);
}

std::vector<RoundReport> BoundedStar::reports() {
  std::vector<RoundReport> out;
  RoundReport report;
  while (nodes_[0]->job().poll_report(report)) out.push_back(report);
  return out;
}

}  // namespace gradplane::testing
