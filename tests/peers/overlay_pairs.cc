// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <stdexcept>

#include "tests/peers/overlay.h"

namespace gradplane::peers {
namespace {

/// TSEngine's and GeoMX's MAX_GREED_RATE: the largest probability of taking the fastest known path
/// while there are untried ones.
constexpr double kMaxGreed = 0.9;

}  // namespace

PairScheduler::PairScheduler(std::uint32_t world, std::uint32_t root, std::uint64_t seed)
    : world_(world), root_(root), random_(seed), speeds_(std::size_t{world} * world) {}

void PairScheduler::begin(std::uint32_t chunks) {
  chunks_.assign(chunks, Chunk{.waiting = {}, .served = std::vector<bool>(world_)});
  started_ns_.assign(std::size_t{chunks} * world_ * world_, 0);
  served_count_ = 0;
}

std::vector<PairScheduler::Transfer> PairScheduler::partial_ready(std::uint32_t chunk,
                                                                  std::uint32_t rank,
                                                                  std::uint32_t merged,
                                                                  std::uint64_t now_ns) {
  Chunk& c = chunks_.at(chunk);
  if (merged == world_) {
    c.served[rank] = true;
    ++served_count_;
    return serve_next(chunk, rank, now_ns);
  }
  if (c.waiting.empty()) {
    c.waiting.push_back(rank);
    return {};
  }
  const std::uint32_t other = c.waiting.front();
  c.waiting.pop_front();
  // The root keeps its partial sum. Other pairs use the faster direction.
  bool rank_sends = speed(rank, other) > speed(other, rank);
  if (rank == root_ || other == root_) rank_sends = other == root_;
  const Transfer pair = rank_sends ? Transfer{rank, other, false} : Transfer{other, rank, false};
  return {start(chunk, pair, now_ns)};
}

std::vector<PairScheduler::Transfer> PairScheduler::result_received(std::uint32_t chunk,
                                                                    std::uint32_t from,
                                                                    std::uint32_t to,
                                                                    std::uint64_t now_ns) {
  ++served_count_;
  auto next = serve_next(chunk, to, now_ns);
  const auto more = serve_next(chunk, from, now_ns);
  next.insert(next.end(), more.begin(), more.end());
  return next;
}

void PairScheduler::measured(std::uint32_t chunk, std::uint32_t from, std::uint32_t to,
                             std::uint64_t now_ns) {
  const std::uint64_t began = started_ns_.at((std::size_t{chunk} * world_ + from) * world_ + to);
  speed(from, to) = 1e9 / static_cast<double>(std::max<std::uint64_t>(1, now_ns - began));
}

PairScheduler::Transfer PairScheduler::start(std::uint32_t chunk, Transfer transfer,
                                             std::uint64_t now_ns) {
  started_ns_.at((std::size_t{chunk} * world_ + transfer.from) * world_ + transfer.to) = now_ns;
  return transfer;
}

std::vector<PairScheduler::Transfer> PairScheduler::serve_next(std::uint32_t chunk,
                                                               std::uint32_t from,
                                                               std::uint64_t now_ns) {
  Chunk& c = chunks_.at(chunk);
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    if (!c.served[rank]) candidates.push_back(rank);
  }
  if (candidates.empty()) return {};
  const std::uint32_t to = choose(from, candidates);
  c.served[to] = true;
  return {start(chunk, {from, to, true}, now_ns)};
}

/// Chooses the fastest with a probability that is the known share, and at most kMaxGreed. Otherwise
/// chooses an untried one.
std::uint32_t PairScheduler::choose(std::uint32_t from,
                                    const std::vector<std::uint32_t>& candidates) {
  std::vector<std::uint32_t> unknown;
  std::uint32_t fastest = candidates.front();
  for (const std::uint32_t rank : candidates) {
    if (speed(from, rank) == 0) unknown.push_back(rank);
    if (speed(from, rank) > speed(from, fastest)) fastest = rank;
  }
  if (unknown.empty()) return fastest;
  const double known =
      1 - static_cast<double>(unknown.size()) / static_cast<double>(candidates.size());
  if (std::uniform_real_distribution<double>()(random_) < std::min(known, kMaxGreed))
    return fastest;
  return unknown[std::uniform_int_distribution<std::size_t>(0, unknown.size() - 1)(random_)];
}

PairRank::PairRank(const MeshPlaces& places, std::uint32_t rank, std::size_t chunk_bytes,
                   std::uint32_t root)
    : OverlayRank(places, rank, chunk_bytes),
      root_(root),
      scheduler_(mesh_.world(), root, places.port) {
  if (root >= mesh_.world()) throw std::runtime_error("the root is no rank");
}

void PairRank::begin() {
  is_over_ = false;
  merged_.assign(chunk_count(), 1);
  if (mesh_.rank() == root_) scheduler_.begin(chunk_count());
  for (std::uint32_t i = 0; i < chunk_count(); ++i) tell_ready(i, mesh_.rank());
}

/// `from` is the rank whose partial sum this rank has merged last, or this rank.
void PairRank::tell_ready(std::uint32_t chunk, std::uint32_t from) {
  // Both counts fit into 16 bits, because a mesh has at most 64 ranks.
  const MeshHeader report{.from = mesh_.rank(),
                          .seed = seed(),
                          .kind = kReady,
                          .chunk = chunk,
                          .argument = merged_[chunk] << 16 | from};
  if (merged_[chunk] == mesh_.world()) count_result();
  if (mesh_.rank() == root_) return schedule(report);
  mesh_.send(root_, report, {});
}

void PairRank::tell_received(std::uint32_t chunk, std::uint32_t from) {
  count_result();
  mesh_.send(root_, {.seed = seed(), .kind = kReceived, .chunk = chunk, .argument = from}, {});
}

/// Handles a rank's report at the root.
void PairRank::schedule(const MeshHeader& report) {
  const std::uint32_t from = report.argument & 0xffffU;
  const std::uint64_t now = now_ns();
  if (from >= mesh_.world()) throw std::runtime_error("a report of no rank's transfer");
  if (from != report.from) scheduler_.measured(report.chunk, from, report.from, now);
  const auto transfers =
      report.kind == kReceived
          ? scheduler_.result_received(report.chunk, from, report.from, now)
          : scheduler_.partial_ready(report.chunk, report.from, report.argument >> 16, now);
  for (const auto& next : transfers) order(report.chunk, next);
  if (!scheduler_.is_over()) return;
  is_over_ = true;
  for (std::uint32_t rank = 0; rank < mesh_.world(); ++rank) {
    if (rank != root_) mesh_.send(rank, {.seed = seed(), .kind = kOver}, {});
  }
}

void PairRank::order(std::uint32_t chunk, const PairScheduler::Transfer& next) {
  if (next.from == root_) return transfer(chunk, next.to, next.is_result);
  const std::uint32_t argument = next.to << 1 | (next.is_result ? 1U : 0U);
  mesh_.send(next.from, {.seed = seed(), .kind = kOrder, .chunk = chunk, .argument = argument}, {});
}

void PairRank::transfer(std::uint32_t index, std::uint32_t to, bool is_result) {
  if (to >= mesh_.world() || to == mesh_.rank()) throw std::runtime_error("an order to nobody");
  const MeshHeader header{.seed = seed(),
                          .kind = is_result ? kResult : kPartial,
                          .chunk = index,
                          .argument = merged_[index]};
  mesh_.send(to, header, chunk(index));
}

void PairRank::take(const MeshHeader& header, std::span<const float> payload) {
  switch (header.kind) {
    case kPartial:
      add_to(chunk(header.chunk), payload);
      merged_[header.chunk] += header.argument;
      return tell_ready(header.chunk, header.from);
    case kResult:
      copy_to(chunk(header.chunk), payload);
      return tell_received(header.chunk, header.from);
    case kReady:
    case kReceived:
      if (mesh_.rank() == root_) return schedule(header);
      break;
    case kOrder:
      return transfer(header.chunk, header.argument >> 1, (header.argument & 1U) != 0);
    case kOver:
      is_over_ = true;
      return;
    default:
      break;
  }
  throw std::runtime_error("a message of an unknown kind");
}

}  // namespace gradplane::peers
