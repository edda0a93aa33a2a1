// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <bit>
#include <cstring>

#include "dataplane/base/assert.h"
#include "dataplane/job/job.h"

namespace gradplane::job {
namespace {

/// Summing is worth an accumulator only where more than one contribution meets: a leaf with one
/// rank sends that rank's bytes as they are.
bool needs_sums(const JobConfig& config, const TreeConfig& tree) {
  if (!tree.member) return false;
  return tree.parent == kNoPeer || !tree.children.empty() || config.local_ranks.size() != 1;
}

/// Trees whose rounds may close here without all blocks.
std::size_t gathering_trees(const JobConfig& config) {
  return static_cast<std::size_t>(
      std::count_if(config.trees.begin(), config.trees.end(), [](const TreeConfig& tree) {
        return tree.member && tree.flat && tree.parent == kNoPeer && !tree.children.empty();
      }));
}

/// A prime: successive rounds begin far from each other in a bucket of any size.
constexpr std::uint32_t kRotationStride = 7919;

std::vector<std::uint16_t> peer_table(const JobConfig& config) {
  std::uint16_t highest = config.self;
  for (const PeerConfig& peer : config.peers) highest = std::max(highest, peer.node);
  std::vector<std::uint16_t> table(std::size_t{highest} + 1, kNoPeer);
  for (std::size_t p = 0; p < config.peers.size(); ++p) {
    table[config.peers[p].node] = static_cast<std::uint16_t>(p);
  }
  return table;
}

}  // namespace

Job::Job(JobConfig config)
    : config_(std::move(config)),
      total_weight_(config_.total_weight()),
      edges_(config_),
      peer_of_node_(peer_table(config_)),
      rounds_(kRoundSlots),
      buckets_(kMaxBuckets + 1),
      marks_(config_.peers.size()),
      urgent_acks_(std::max<std::size_t>(1, edges_.in.size()) * kRoundSlots * 2),
      delayed_acks_(std::max<std::size_t>(1, edges_.in.size()) * kRoundSlots * 2),
      local_work_(std::max<std::size_t>(1, config_.local_ranks.size()) * kRoundSlots *
                  config_.trees.size()),
      events_(std::max<std::size_t>(1, config_.local_ranks.size()) * kRoundSlots * 2 + 2),
      reports_(std::max<std::size_t>(1, gathering_trees(config_)) * kRoundSlots),
      ack_(std::make_unique<hop::BlockReceiver::Ack>()),
      watch_(config_.stall_after) {
  GP_ASSERT(config_.local_ranks.size() <= kMaxLocalRanks && config_.trees.size() <= kMaxTrees);
  GP_ASSERT(config_.block_bytes % kBlockAlignBytes == 0 && config_.block_bytes <= kMaxBlockBytes);
  // Or an ack of the round would not fit its packet.
  GP_ASSERT(config_.block_bytes > 0 && config_.max_blocks() <= kMaxBlocksPerRound);
  for (const TreeConfig& tree : config_.trees) sums_in_tree_.push_back(needs_sums(config_, tree));
  for (std::uint32_t n = 0; n < kRoundSlots; ++n) {
    Round& round = slot_of(config_.first_round + n);
    round.id = config_.first_round + n;
    round.local_left.resize(config_.trees.size());
    for (std::size_t t = 0; t < config_.trees.size(); ++t) {
      const std::size_t capacity = sums_in(t)
                                       ? max_blocks_of_tree(config_.trees[t].share.weight,
                                                            total_weight_, config_.max_blocks())
                                       : 0;
      round.accumulators.emplace_back(capacity, config_.block_bytes);
    }
  }
  for (const PeerConfig& peer : config_.peers) {
    flows_.emplace_back(
        hop::Flow::Limits{.rate_bits_per_second = peer.rate_bits_per_second,
                          .block_wire_bytes = config_.block_bytes + kWireOverheadBytes,
                          .congestion = config_.congestion});
    const std::uint64_t share = peer.unscheduled_bits_per_second;
    credits_.emplace_back(share, share > 0 ? peer.rate_bits_per_second / share : 1);
  }
  sources_.reserve(config_.peers.size());
  if (config_.congestion.mltcp || config_.forward_order) iteration_.emplace(config_.peers.size());
  if (config_.grants) incoming_.emplace(1);
}

BlockRange Job::range_of(std::size_t tree, std::uint32_t round, const Geometry& geometry) const {
  const std::size_t first = round % config_.trees.size();
  return blocks_of_tree(config_.trees[tree].share, config_.trees[first].share.begin, total_weight_,
                        geometry.blocks);
}

bool Job::geometry_fits(const Geometry& g) const {
  return g.elements > 0 && std::size_t{g.elements} * element_bytes(g.type) <= config_.round_bytes &&
         g.blocks <= config_.max_blocks();
}

void Job::open_round(Round& round, const Geometry& geometry) {
  round.open = true;
  ++open_rounds_;
  round.geometry = geometry;
  round.submitted = 0;
  round.results_awaited = 0;
  round.results_unacked = 0;
  round.pushes_unsettled = 0;
  round.partial_blocks = 0;
  round.told = false;
  round.bucket = bounds_of(geometry);
  round.lossy_trees = 0;
  round.min_contributors = config_.world_size;
  const std::size_t slot = round.id % kRoundSlots;
  for (std::size_t t = 0; t < config_.trees.size(); ++t) {
    const TreeConfig& tree = config_.trees[t];
    if (!tree.member) continue;
    const BlockRange range = range_of(t, round.id, geometry);
    round.results_awaited += range.size();
    if (!sums_in(t)) continue;
    const std::size_t sources = tree.children.size() + config_.local_ranks.size();
    round.accumulators[t].open(geometry, range, static_cast<std::uint16_t>(sources));
    round.local_left[t] = range.size() * static_cast<std::uint32_t>(config_.local_ranks.size());
  }
  for (OutEdge& edge : edges_.out) {
    const BlockRange range = range_of(edge.tree, round.id, geometry);
    // The same order at every sender, so that blocks complete one after the other at the root, and
    // another order in every round, so that the tail is never the same blocks.
    const bool is_push = edge.type == wire::PacketType::kPush;
    edge.senders[slot].open(
        range, round.id * kRotationStride,
        is_push && round.bucket != nullptr ? &round.bucket->critical() : nullptr);
    edge.backoff[slot] = 0;
    const auto bit = static_cast<std::uint16_t>(1U << slot);
    edge.held = static_cast<std::uint16_t>(is_push ? 0 : edge.held | bit);
    if (range.size() > 0) ++(is_push ? round.pushes_unsettled : round.results_unacked);
  }
  for (InEdge& edge : edges_.in) {
    edge.receivers[slot].open(range_of(edge.tree, round.id, geometry));
  }
  announce_round(round);
  open_gathers(round);
}

void Job::announce_round(const Round& round) {
  const std::size_t slot = round.id % kRoundSlots;
  if (incoming_) {
    incoming_->on_round(slot, round.geometry.bucket);
    for (const InEdge& edge : edges_.in) {
      incoming_->on_announced(0, edge.receivers[slot].range().size());
    }
    note_come(slot, 0);
  }
  if (!iteration_) return;
  const bool begins = iteration_->on_round(slot, round.geometry.bucket);
  for (const OutEdge& edge : edges_.out) {
    iteration_->on_announced(edge.peer, edge.senders[slot].range().size());
  }
  if (!begins) return;
  for (hop::Flow& flow : flows_) flow.on_phase(0);
}

SubmitResult Job::submit(std::size_t local_rank, std::uint32_t id, std::uint32_t elements,
                         ElementType type, std::uint32_t bucket) {
  if (bucket > kMaxBuckets) return SubmitResult::kRejected;
  const Geometry geometry =
      Geometry::of(type, elements, config_.block_bytes, static_cast<std::uint16_t>(bucket));
  if (!geometry_fits(geometry)) return SubmitResult::kRejected;
  Round& round = slot_of(id);
  const std::uint32_t bit = std::uint32_t{1} << local_rank;
  if (round.id != id) {
    return static_cast<std::int32_t>(id - round.id) > 0 ? SubmitResult::kBusy
                                                        : SubmitResult::kRejected;
  }
  // Opened now, it would be gathered exactly: its bucket still gathers another round.
  if (!round.open && !is_free(bounds_of(geometry), id)) return SubmitResult::kBusy;
  if (!round.open) open_round(round, geometry);
  if ((round.submitted & bit) != 0) return SubmitResult::kRejected;
  if (round.geometry != geometry) {
    report_mismatch(config_.self, round, geometry);
    return SubmitResult::kMismatch;
  }
  if (!is_free(round.bucket, id)) return SubmitResult::kBusy;
  if (round.bucket != nullptr) round.bucket->take_in_hand(id);
  round.submitted |= bit;
  watch_.moved();
  if (local_rank == 0) restore_residual(round);
  contribute(round, local_rank);
  return SubmitResult::kAccepted;
}

void Job::contribute(Round& round, std::size_t local_rank) {
  const std::size_t slot = round.id % kRoundSlots;
  for (std::size_t t = 0; t < config_.trees.size(); ++t) {
    const BlockRange range = range_of(t, round.id, round.geometry);
    if (!config_.trees[t].member || range.size() == 0) continue;
    if (sums_in(t)) {
      const bool queued = local_work_.push({.round = round.id,
                                            .local_rank = static_cast<std::uint16_t>(local_rank),
                                            .tree = static_cast<std::uint8_t>(t),
                                            .block = range.begin});
      GP_ASSERT(queued);
    } else {
      OutEdge& edge = edges_.out[edges_.push_out_of_tree[t]];
      edge.senders[slot].offer_all();
      refresh(edge, slot);
    }
  }
}

bool Job::sum_local(std::size_t max_blocks) {
  for (std::size_t n = 0; n < max_blocks && !local_work_.empty(); ++n) {
    LocalWork& work = local_work_.front();
    Round& round = slot_of(work.round);
    GP_ASSERT(round.open && round.id == work.round);
    const std::uint32_t block = work.block;
    const std::size_t tree = work.tree;
    const LocalRank& rank = config_.local_ranks[work.local_rank];
    const std::byte* bytes = rank.arena + (work.round % kRoundSlots) * config_.round_bytes +
                             round.geometry.offset_bytes(block);
    if (++work.block == range_of(tree, work.round, round.geometry).end) local_work_.pop();
    --round.local_left[tree];
    watch_.moved();
    note_energy(round, block, {bytes, round.geometry.bytes_in(block)});
    if (round.accumulators[tree].add(block, {bytes, round.geometry.bytes_in(block)}, 1)) {
      block_gathered(round, tree, block);
    }
    close_if_full(round, tree);
  }
  return !local_work_.empty();
}

void Job::block_gathered(Round& round, std::size_t tree, std::uint32_t block) {
  aggregate::Accumulator& sums = round.accumulators[tree];
  const std::span<const std::byte> bytes = sums.seal(block);
  if (config_.trees[tree].parent == kNoPeer) {
    note_sum_energy(round, block, bytes);
    result_known(round, tree, block, bytes, sums.contributors(block));
    return;
  }
  OutEdge& edge = edges_.out[edges_.push_out_of_tree[tree]];
  edge.senders[round.id % kRoundSlots].offer(block);
  refresh(edge, round.id % kRoundSlots);
}

void Job::result_known(Round& round, std::size_t tree, std::uint32_t block,
                       std::span<const std::byte> bytes, std::uint16_t contributors) {
  const std::size_t slot = round.id % kRoundSlots;
  keep_contribution(round, tree, block);
  round.partial_blocks += contributors < config_.world_size ? 1 : 0;
  for (const LocalRank& rank : config_.local_ranks) {
    std::memcpy(rank.arena + slot * config_.round_bytes + round.geometry.offset_bytes(block),
                bytes.data(), bytes.size());
  }
  round.min_contributors = std::min(round.min_contributors, contributors);
  for (const std::uint16_t index : edges_.results_out_of_tree[tree]) {
    edges_.out[index].senders[slot].offer(block);
    refresh(edges_.out[index], slot);
  }
  GP_ASSERT(round.results_awaited > 0);
  --round.results_awaited;
  tell_if_done(round);
}

/// A round is done here when every result has come, and it is known what of ours is in them: the
/// next gradient of the bucket needs to know.
void Job::tell_if_done(Round& round) {
  if (round.told || round.results_awaited > 0 || round.pushes_unsettled > 0) return;
  round.told = true;
  if (round.bucket != nullptr && round.bucket->round_in_hand() == round.id) {
    round.bucket->put_down();
  }
  ++counters_.rounds_completed;
  counters_.payload_bytes_reduced +=
      std::size_t{round.geometry.elements} * element_bytes(round.geometry.type);
  for (std::size_t r = 0; r < config_.local_ranks.size(); ++r) {
    const bool queued = events_.push({.kind = Event::Kind::kRoundDone,
                                      .local_rank = static_cast<std::uint16_t>(r),
                                      .contributors = round.min_contributors,
                                      .partial_blocks = round.partial_blocks,
                                      .node = config_.self,
                                      .round = round.id,
                                      .ours = round.geometry,
                                      .theirs = {}});
    GP_ASSERT(queued);
  }
  finish_if_done(round);
}

void Job::finish_if_done(Round& round) {
  if (!round.open || !round.told || round.results_unacked > 0) return;
  const std::size_t slot = round.id % kRoundSlots;
  for (OutEdge& edge : edges_.out) {
    flows_[edge.peer].on_forgotten(edge.senders[slot].close());
    refresh(edge, slot);
  }
  round.open = false;
  --open_rounds_;
  round.id += kRoundSlots;
}

void Job::report_mismatch(std::uint16_t node, const Round& round, const Geometry& theirs) {
  counters_.drop(Drop::kMismatch);
  if (mismatch_reported_) return;  // the job ends with the first
  mismatch_reported_ = true;
  const bool queued = events_.push({.kind = Event::Kind::kMismatch,
                                    .local_rank = 0,
                                    .contributors = 0,
                                    .partial_blocks = 0,
                                    .node = node,
                                    .round = round.id,
                                    .ours = round.geometry,
                                    .theirs = theirs});
  GP_ASSERT(queued);
}

Job::Waiting Job::waiting() const {
  Waiting w;
  const Round* oldest = nullptr;
  for (const Round& round : rounds_) {
    if (!round.open || round.results_awaited == 0) continue;
    ++w.open_rounds;
    if (oldest == nullptr || static_cast<std::int32_t>(round.id - oldest->id) < 0) oldest = &round;
  }
  if (oldest == nullptr) return w;
  w.any = true;
  w.round = oldest->id;
  const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << config_.local_ranks.size()) - 1);
  w.local_missing = all & ~oldest->submitted;
  for (const InEdge& edge : edges_.in) {
    if (edge.type != wire::PacketType::kPush) continue;
    const hop::BlockReceiver& receiver = edge.receivers[oldest->id % kRoundSlots];
    const std::uint16_t node = config_.peers[edge.peer].node;
    if (receiver.arrived() > 0 || receiver.range().size() == 0) continue;
    const auto named = std::min<std::size_t>(w.silent_count, kMaxSilentNamed);
    const auto end = w.silent_nodes.begin() + static_cast<std::ptrdiff_t>(named);
    if (std::find(w.silent_nodes.begin(), end, node) != end) continue;
    if (named < kMaxSilentNamed) w.silent_nodes[named] = node;
    ++w.silent_count;
  }
  return w;
}

}  // namespace gradplane::job
