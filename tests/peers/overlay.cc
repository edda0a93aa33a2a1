// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/peers/overlay.h"

#include <stdexcept>

namespace gradplane::peers {

OverlayRank::OverlayRank(const MeshPlaces& places, std::uint32_t rank, std::size_t chunk_bytes)
    : mesh_(places, rank), chunk_elements_(chunk_bytes / sizeof(float)) {}

nlohmann::json OverlayRank::run_round(const Round& round) {
  expect_kind(round, {RoundKind::kAllReduce});
  RoundClock clock;
  seed_ = round.seed;
  results_ = 0;
  data_.resize(round.bytes / sizeof(float));
  chunks_ = {data_.size(), chunk_elements_};
  fill(data_, round.seed, mesh_.rank());
  const Segments before = mesh_.segments();
  clock.start(round.at_ns);
  begin();
  bool is_ended = false;
  while (true) {
    if (has_all() && !is_ended) {
      clock.end();
      is_ended = true;
    }
    if (is_ended && is_over()) break;
    mesh_.step(seed_, [this](const MeshHeader& header, std::span<const float> payload) {
      if (header.chunk >= chunk_count()) throw std::runtime_error("there is no such chunk");
      take(header, payload);
    });
  }
  const Segments after = mesh_.segments();
  if (round.spoil) data_[0] += 1;
  const bool is_correct = is_sum(data_, round.seed, mesh_.world());
  nlohmann::json answer = round_answer(mesh_.rank(), clock, is_correct, data_);
  answer["segments"] = after.sent - before.sent;
  answer["retransmitted_segments"] = after.retransmitted - before.retransmitted;
  return answer;
}

TreePlace place_in(const std::vector<std::uint32_t>& parents, std::uint32_t rank) {
  TreePlace place{.parent = parents.at(rank), .children = {}};
  for (std::uint32_t child = 0; child < parents.size(); ++child) {
    std::uint32_t at = child;
    std::size_t steps = 0;
    while (parents.at(at) != at && steps <= parents.size()) {
      at = parents[at];
      ++steps;
    }
    if (steps > parents.size()) throw std::runtime_error("the parents go round in a circle");
    if (child != rank && parents[child] == rank) place.children.push_back(child);
  }
  std::size_t roots = 0;
  for (std::uint32_t i = 0; i < parents.size(); ++i) roots += parents[i] == i ? 1 : 0;
  if (roots != 1) throw std::runtime_error("a tree has one root");
  return place;
}

TreeRank::TreeRank(const MeshPlaces& places, std::uint32_t rank, std::size_t chunk_bytes,
                   const std::vector<std::vector<std::uint32_t>>& trees)
    : OverlayRank(places, rank, chunk_bytes) {
  for (const auto& parents : trees) {
    if (parents.size() != mesh_.world()) throw std::runtime_error("a tree has every rank in it");
    trees_.push_back(place_in(parents, rank));
  }
  if (trees_.empty()) throw std::runtime_error("there is no tree");
}

void TreeRank::begin() {
  missing_.clear();
  for (std::uint32_t i = 0; i < chunk_count(); ++i) {
    missing_.push_back(static_cast<std::uint32_t>(place(i).children.size()));
  }
  for (std::uint32_t i = 0; i < chunk_count(); ++i) {
    if (missing_[i] == 0) pass_on(i);
  }
}

void TreeRank::take(const MeshHeader& header, std::span<const float> payload) {
  if (header.kind == kResult) {
    // The payload of this rank's sum may be overwritten, because the result contains that sum.
    copy_to(chunk(header.chunk), payload);
    spread(header.chunk);
    return;
  }
  if (header.kind != kPush || missing_[header.chunk] == 0) {
    throw std::runtime_error("a message that no child sends");
  }
  add_to(chunk(header.chunk), payload);
  if (--missing_[header.chunk] == 0) pass_on(header.chunk);
}

/// The sum over this rank and all ranks below it is complete.
void TreeRank::pass_on(std::uint32_t index) {
  const std::uint32_t parent = place(index).parent;
  if (parent == mesh_.rank()) return spread(index);
  mesh_.send(parent, {.seed = seed(), .kind = kPush, .chunk = index}, chunk(index));
}

void TreeRank::spread(std::uint32_t index) {
  count_result();
  for (const std::uint32_t child : place(index).children) {
    mesh_.send(child, {.seed = seed(), .kind = kResult, .chunk = index}, chunk(index));
  }
}

}  // namespace gradplane::peers
