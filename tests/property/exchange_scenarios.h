// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/sim/cluster.h"
#include "tests/sim/dice.h"

/// Exchanges for whole engines in virtual time.
namespace gradplane::sim {

inline constexpr std::uint32_t kBlockElements = kMinBlockBytes / 4;

inline RoundPlan exchange(std::uint32_t blocks, std::uint16_t selection = 0,
                          std::uint16_t bucket = 0) {
  return {ElementType::kFloat32, blocks * kBlockElements, bucket, Operation::kExchange, selection};
}

/// In selection s, each member sends to `receivers` others, beginning with the (s + 1)-th after it.
inline api::Plan ring_plan(std::uint16_t members, std::size_t selections, std::size_t receivers) {
  return with_selections(sharded(members), selections,
                         [=](std::size_t s, std::size_t from, std::size_t to) {
                           const std::size_t others = members - 1u;
                           const std::size_t after = (to + members - from - 1) % members;
                           return (after + others - s % others) % others < receivers;
                         });
}

/// Draws the nodes of the plan that follows one over `before`: some stay, some leave, some of the
/// `known` nodes come back, and new ones join.
inline std::vector<api::NodeId> draw_nodes(Dice& dice, const std::vector<api::NodeId>& before,
                                           std::uint16_t& known) {
  constexpr std::uint16_t kMostNodes = 9;
  std::vector<api::NodeId> nodes = {before[dice.below(before.size())]};
  for (std::uint16_t n = 0; n < known; ++n) {
    if (n != nodes[0] && dice.below(3) != 0) nodes.push_back(n);
  }
  while (known < kMostNodes && (nodes.size() < 2 || dice.below(3) == 0)) nodes.push_back(known++);
  for (std::size_t n = nodes.size() - 1; n > 0; --n) std::swap(nodes[n], nodes[dice.below(n + 1)]);
  return nodes;
}

/// Adds `plans` further plans with other members to a scenario, with selections like those of its
/// own.
template <typename Receives>
void draw_plans(Scenario& s, Dice& dice, std::size_t plans, const Receives& receives) {
  auto known = static_cast<std::uint16_t>(s.plan.members.size());
  std::vector<api::NodeId> nodes;
  for (const api::Member& member : s.plan.members) nodes.push_back(member.node);
  for (std::size_t p = 0; p < plans; ++p) {
    nodes = draw_nodes(dice, nodes, known);
    api::Plan next = with_selections(sharded_over(nodes), s.plan.selections.size(), receives);
    next.epoch = s.plan.epoch + 1 + static_cast<std::uint32_t>(p);
    s.flips.push_back(std::move(next));
  }
}

/// How many ranks have joined and left in a run.
struct Moves {
  std::size_t joined = 0;
  std::size_t left = 0;

  void add(const Scenario& s, const Outcome& outcome) {
    const api::Plan* before = &s.plan;
    for (std::size_t p = 0; p < outcome.activations.size(); ++p) {
      if (s.index_of(outcome.activations[p]) >= s.rounds.size()) return;
      for (const std::uint32_t rank : ranks_of(s.flips[p]))
        joined += member_with(*before, rank) == nullptr ? 1 : 0;
      for (const std::uint32_t rank : ranks_of(*before))
        left += member_with(s.flips[p], rank) == nullptr ? 1 : 0;
      before = &s.flips[p];
    }
  }
};

inline api::BucketBounds bucket_of(std::uint32_t blocks, float bound) {
  const std::uint32_t elements = blocks * kBlockElements;
  return {.bucket = 1,
          .type = ElementType::kFloat32,
          .elements = elements,
          .tensors = {{.name = "weight",
                       .offset_elements = 0,
                       .elements = elements,
                       .bound = bound,
                       .rule = {}}}};
}

}  // namespace gradplane::sim
