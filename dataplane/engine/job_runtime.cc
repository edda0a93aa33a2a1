// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/engine/job_runtime.h"

#include <algorithm>

#include "dataplane/base/assert.h"
#include "dataplane/ipc/doorbell.h"

namespace gradplane::engine {
namespace {

job::JobConfig with_arenas(job::JobConfig config, const std::vector<std::uint16_t>& ranks,
                           const std::vector<std::shared_ptr<RankChannel>>& channels) {
  for (std::size_t i = 0; i < channels.size(); ++i) {
    GP_ASSERT(channels[i]->channel.sizes().slot_bytes == config.round_bytes);
    GP_ASSERT(channels[i]->channel.sizes().slot_count == kRoundSlots);
    GP_ASSERT(channels[i]->channel.sizes().core_count == config.core.count);
    config.local_ranks.push_back({.arena = channels[i]->channel.slot(0).data(), .rank = ranks[i]});
  }
  return config;
}

bool is_valid(const api::BucketBounds& bounds, std::size_t round_bytes) {
  if (bounds.bucket == 0 || bounds.bucket > kMaxBuckets || !is_floating(bounds.type) ||
      bounds.elements == 0 || bounds.elements > round_bytes / element_bytes(bounds.type) ||
      bounds.tensors.size() > kMaxTensorsPerBucket) {
    return false;
  }
  std::uint32_t end = 0;
  for (const api::BoundedTensor& t : bounds.tensors) {
    if (t.elements == 0 || t.offset_elements < end || t.offset_elements > bounds.elements ||
        t.elements > bounds.elements - t.offset_elements) {
      return false;
    }
    if (!(t.bound >= 0 && t.bound <= kMaxBound)) return false;
    end = t.offset_elements + t.elements;
  }
  return true;
}

std::size_t bytes_of(const Geometry& geometry) {
  return std::size_t{geometry.elements} * element_bytes(geometry.type);
}

/// True if exchanges of buckets are under bounded staleness. All other rounds are then exact.
bool has_streams(const job::PlanConfig& plan, const job::JobConfig& job) {
  return job.staleness_steps > 0 && !plan.selections.empty();
}

/// The trees in which this node has children, with the hosts below each of them.
std::vector<aggregate::GatheredTree> gathered_in(const job::PlanConfig& plan,
                                                 const job::JobConfig& job) {
  std::vector<aggregate::GatheredTree> gathered;
  const bool streams = has_streams(plan, job);
  for (std::size_t t = 0; t < plan.trees.size(); ++t) {
    const aggregate::TreeConfig& tree = plan.trees[t];
    if (!tree.member || tree.children.empty() || !job.core.has_tree(t)) continue;
    for (const aggregate::ChildConfig& child : tree.children) {
      if (streams || &child == &tree.children.front()) {
        gathered.push_back({.tree = static_cast<std::uint8_t>(t),
                            .sources = {},
                            .share = static_cast<double>(tree.height) / tree.tree_height,
                            .is_root = tree.is_root(),
                            .is_stream = streams});
      }
      aggregate::GatherSource& source = gathered.back().sources.emplace_back();
      for (const std::uint16_t host : child.hosts) {
        source.hosts.push_back({.node = plan.hosts[host].node, .host = host});
        source.relays |= plan.hosts[host].node != plan.peers[child.peer.index()].node;
      }
    }
  }
  return gathered;
}

}  // namespace

JobRuntime::JobRuntime(job::JobConfig config, std::vector<std::uint16_t> ranks,
                       std::vector<std::shared_ptr<RankChannel>> channels)
    : job_(with_arenas(std::move(config), ranks, channels)), plans_{job_.config()} {
  for (std::shared_ptr<RankChannel>& channel : channels) {
    ipc::RingConsumer<ipc::Submission> submissions(channel->channel.submissions(core()));
    ipc::RingProducer<ipc::Completion> completions(channel->channel.completions(core()));
    ranks_.push_back({.channel = std::move(channel),
                      .submissions = submissions,
                      .completions = completions,
                      .held = std::nullopt,
                      .rounds = ipc::RoundsInFlight(kMaxInFlightRounds, job_.config().first_round),
                      .fault = std::nullopt});
  }
}

std::unique_ptr<aggregate::Bucket> JobRuntime::make_bucket(const api::BucketBounds& bounds) {
  const job::JobConfig& job = job_.config();
  if (!is_valid(bounds, job.round_bytes)) return nullptr;
  aggregate::BucketConfig config;
  config.geometry = Geometry::of(bounds.type, bounds.elements, job.block_bytes,
                                 static_cast<std::uint16_t>(bounds.bucket));
  for (const api::BoundedTensor& t : bounds.tensors) {
    config.tensors.push_back({.offset_elements = t.offset_elements,
                              .elements = t.elements,
                              .bound = t.bound,
                              .is_learned = t.why == api::BoundReason::kLearned,
                              .wire = t.wire});
  }
  const bool narrows = !aggregate::wire_types_of(config.geometry, config.tensors).empty();
  config.limits = job.close_limits;
  config.epoch = plans_[0].epoch;
  config.gathered = gathered_in(plans_[0], job);
  config.keeps_residual = std::any_of(plans_.begin(), plans_.end(), [&](const auto& plan) {
    return needs_residual(plan, narrows);
  });
  if (config.keeps_residual && !take_residual_bytes(config.geometry)) return nullptr;
  config.has_inbox = job.staleness_steps > 0;
  if (config.has_inbox && !take_inbox_bytes(config.geometry)) return nullptr;
  auto bucket = std::make_unique<aggregate::Bucket>(config);
  for (std::size_t p = 1; p < plans_.size(); ++p) {
    bucket->keep_plan(bucket->make_gathers(plans_[p].epoch, gathered_in(plans_[p], job)));
  }
  buckets_.push_back(bucket.get());
  return bucket;
}

/// A node needs a residual if it pushes and carries what does not enter, or if it is a root that
/// rounds results. Streams need none: a late update is in a later result anyway.
bool JobRuntime::needs_residual(const job::PlanConfig& plan, bool narrows) const {
  const job::JobConfig& job = job_.config();
  if (job.compensation != Compensation::kCarry) return false;
  if (has_streams(plan, job)) return false;
  return std::any_of(plan.trees.begin(), plan.trees.end(), [&](const aggregate::TreeConfig& tree) {
    return tree.is_root() ? narrows : tree.member && !job.local_ranks.empty();
  });
}

bool JobRuntime::take_residual_bytes(const Geometry& geometry) {
  const std::size_t bytes = bytes_of(geometry);
  if (bytes > job_.config().residual_bytes - residual_bytes_) return false;
  residual_bytes_ += bytes;
  return true;
}

bool JobRuntime::take_inbox_bytes(const Geometry& geometry) {
  const std::size_t bytes = aggregate::Inbox::bytes_for(geometry);
  const std::size_t most = std::min(job_.config().inbox_bytes, allowed_inbox_bytes_);
  if (inbox_bytes_ > most || bytes > most - inbox_bytes_) return false;
  inbox_bytes_ += bytes;
  return true;
}

std::unique_ptr<job::Plan> JobRuntime::make_plan(const job::PlanConfig& config) {
  if (!has_room_for_plan()) return nullptr;
  auto plan = std::make_unique<job::Plan>(config, job_.config());
  for (aggregate::Bucket* bucket : buckets_) {
    job::Plan::BucketPart part{
        .bucket = bucket,
        .gathers = bucket->make_gathers(config.epoch, gathered_in(config, job_.config())),
        .residual = nullptr};
    if (needs_residual(config, bucket->narrows()) && !bucket->has_residual()) {
      if (!take_residual_bytes(bucket->geometry())) {
        destroy_plan(plan.release());
        return nullptr;
      }
      part.residual = bucket->make_residual();
    }
    plan->add_bucket(std::move(part));
  }
  plans_.push_back(config);
  return plan;
}

void JobRuntime::destroy_plan(job::Plan* plan) {
  const std::unique_ptr<job::Plan> owned(plan);
  std::erase_if(plans_, [&](const job::PlanConfig& p) { return p.epoch == owned->epoch(); });
  for (job::Plan::BucketPart& part : owned->bucket_parts()) {
    if (part.residual == nullptr) continue;  // the bucket has it
    part.bucket->take_back(std::move(part.residual));
    residual_bytes_ -= bytes_of(part.bucket->geometry());
  }
}

bool JobRuntime::commit(std::uint32_t epoch, std::uint32_t activation) {
  const bool joins = job_.is_joining();
  if (!job_.commit(epoch, activation)) return false;
  for (Rank& rank : ranks_) {
    if (joins) rank.rounds = ipc::RoundsInFlight(kMaxInFlightRounds, activation);
  }
  return true;
}

/// A rank that submits a round too early has written over a result that another rank may still
/// lack. No rank may lead by more than kMaxLeadRounds, and the rules for the end of a round rely on
/// it.
std::optional<RankFault> JobRuntime::fault_of(const ipc::Submission& s, const Rank& rank) {
  const bool is_sane = s.round == rank.rounds.next() && s.elements > 0 &&
                       is_element_type(s.element_type) && is_operation(s.operation) &&
                       s.bucket <= kMaxBuckets && is_reduction(s.reduction) && s.unused == 0;
  if (!is_sane) return RankFault::kBadSubmission;
  if (rank.rounds.full()) return RankFault::kTooManyRounds;
  return std::nullopt;
}

/// The next submission, as a checked copy.
std::optional<ipc::Submission> JobRuntime::take_next(Rank& rank) {
  ipc::Submission submission;
  if (rank.held) return rank.held;
  if (!rank.submissions.pop(submission)) {
    if (rank.submissions.broken()) rank.fail(RankFault::kBadRingIndex);
    return std::nullopt;
  }
  if (const auto fault = fault_of(submission, rank)) {
    rank.fail(*fault);
    return std::nullopt;
  }
  return submission;
}

bool JobRuntime::take_submissions() {
  // A rank may learn its first round before the commit has reached this engine.
  if (job_.is_joining()) return false;
  bool moved = false;
  for (std::size_t i = 0; i < ranks_.size(); ++i) moved = take_from(i, ranks_[i]) || moved;
  return moved;
}

bool JobRuntime::take_from(std::size_t index, Rank& rank) {
  bool moved = false;
  for (std::size_t n = 0; n < kRoundSlots && !rank.fault; ++n) {
    rank.held = take_next(rank);
    if (!rank.held) break;
    const job::SubmitResult result =
        job_.submit(index, rank.held->round,
                    {.type = static_cast<ElementType>(rank.held->element_type),
                     .elements = rank.held->elements,
                     .bucket = rank.held->bucket,
                     .operation = static_cast<Operation>(rank.held->operation),
                     .source = rank.held->source,
                     .reduction = static_cast<Reduction>(rank.held->reduction)});
    if (result == job::SubmitResult::kBusy) break;
    rank.held.reset();
    rank.rounds.submit();
    moved = true;
    if (result == job::SubmitResult::kRejected) rank.fail(RankFault::kBadSubmission);
  }
  return moved;
}

std::optional<JobRuntime::BrokenRank> JobRuntime::take_broken() {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!ranks_[i].fault || ranks_[i].fault_told) continue;
    ranks_[i].fault_told = true;
    return BrokenRank{.local_rank = static_cast<std::uint16_t>(i), .fault = *ranks_[i].fault};
  }
  return std::nullopt;
}

void JobRuntime::complete(const job::Event& event) {
  Rank& rank = ranks_[event.local_rank];
  // This comes before the rank can see the completion: what the rank submits next is then not too
  // early. A round is done here only after all ranks of this node have submitted it.
  const bool was_in_flight = rank.rounds.complete(event.round);
  GP_ASSERT(was_in_flight);
  const ipc::Completion completion{.round = event.round,
                                   .status = ipc::CompletionStatus::kOk,
                                   .contributors = event.contributors,
                                   .partial_blocks = event.partial_blocks};
  // A correct rank takes its completions, so there is room. A rank that does not take them loses
  // its session.
  if (!rank.completions.push(completion)) {
    rank.fail(rank.completions.broken() ? RankFault::kBadRingIndex
                                        : RankFault::kCompletionsNotTaken);
  }
  // To ring a doorbell is a system call, so it is rung only for a trainer that sleeps.
  if (ipc::is_asleep(rank.channel->channel.trainer_sleeps())) {
    ipc::ring_doorbell(rank.channel->wake_trainer.get());
  }
}

void JobRuntime::beat() {
  for (Rank& rank : ranks_) rank.channel->channel.beat(core());
}

void JobRuntime::announce_sleep() {
  for (Rank& rank : ranks_) ipc::announce_sleep(rank.channel->channel.daemon_sleeps(core()));
}

void JobRuntime::end_sleep() {
  for (Rank& rank : ranks_) ipc::end_sleep(rank.channel->channel.daemon_sleeps(core()));
}

bool JobRuntime::has_submissions() {
  if (job_.is_joining()) return false;  // nobody takes them before the commit
  for (Rank& rank : ranks_) {
    // A rank whose submission waits for its slot is not asked for the next one.
    if (!rank.fault && !rank.held && !rank.submissions.empty()) return true;
  }
  return false;
}

}  // namespace gradplane::engine
