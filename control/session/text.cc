// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string_view>

#include "control/session/views.h"
#include "dataplane/base/siphash.h"

namespace gradplane::session {

namespace {

/// "rank 3", "ranks 0, 1 and 2". Of many only the first are named.
template <typename Name>
std::string list_text(const char* word, std::size_t count, Name name) {
  constexpr std::size_t kNamed = 8;
  std::string text = word;
  text += count == 1 ? " " : "s ";
  const std::size_t named = std::min(count, kNamed);
  for (std::size_t i = 0; i < named; ++i) {
    const bool last = i + 1 == count;
    if (i > 0) text += last ? " and " : ", ";
    text += name(i);
  }
  if (count > named) text += " and " + std::to_string(count - named) + " more";
  return text;
}

std::string name_of(const SessionConfig& config, api::NodeId node) {
  return node < config.node_names.size() ? config.node_names[node] : std::to_string(node);
}

}  // namespace

std::string node_text(const SessionConfig& config, api::NodeId node) {
  return "node " + name_of(config, node);
}

std::string ranks_text(const std::vector<std::uint16_t>& ranks) {
  return list_text("rank", ranks.size(), [&](std::size_t i) { return std::to_string(ranks[i]); });
}

std::string nodes_text(const SessionConfig& config, const std::vector<api::NodeId>& nodes) {
  return list_text("node", nodes.size(), [&](std::size_t i) { return name_of(config, nodes[i]); });
}

std::string waiting_text(const SessionConfig& config, const std::vector<std::uint16_t>& missing,
                         std::uint32_t world_size, const std::vector<api::NodeId>& unheard) {
  const std::string text =
      "waiting for " + ranks_text(missing) + " of " + std::to_string(world_size) + " to attach";
  if (unheard.empty()) return text;
  return text + "; no word has come from " + nodes_text(config, unheard) +
         ": if ranks have attached there, see the logs of the daemons";
}

std::string plan_text(const SessionConfig& config, const api::Plan& plan, const std::string& note) {
  std::vector<api::NodeId> roots;
  for (const api::Tree& tree : plan.trees)
    if (std::find(roots.begin(), roots.end(), tree.root) == roots.end()) roots.push_back(tree.root);
  const std::string trees =
      roots.size() == plan.trees.size() ? "" : std::to_string(plan.trees.size()) + " trees, ";
  const std::string selections =
      plan.selections.empty() ? "" : std::to_string(plan.selections.size()) + " selections, ";
  return std::string(plan_kind_name(plan.kind)) + ", " + (note.empty() ? "" : note + ", ") +
         selections + trees +
         list_text("root", roots.size(), [&](std::size_t i) { return name_of(config, roots[i]); });
}

std::string size_text(const std::vector<api::Member>& members, std::uint32_t world_size) {
  std::size_t ranks = 0;
  for (const api::Member& member : members) ranks += member.ranks.size();
  const std::string some = ranks == world_size ? "" : std::to_string(ranks) + " of ";
  return some + std::to_string(world_size) + (world_size == 1 ? " rank on " : " ranks on ") +
         std::to_string(members.size()) + (members.size() == 1 ? " node" : " nodes");
}

std::string job_text(const std::string& label, std::uint32_t job_id) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id;
  for (int shift = 28; shift >= 0; shift -= 4) id += kDigits[job_id >> shift & 15];
  return label.empty() ? "job " + id : "job " + label + " (" + id + ")";
}

std::string_view job_state_name(JobState state) {
  switch (state) {
    case JobState::kWaiting:
      return "waiting";
    case JobState::kPrepared:
      return "prepared";
    case JobState::kReady:
      return "ready";
  }
  return "?";
}

PacketKey packet_key_of(const ClusterKey& cluster, const protocol::JobKey& job,
                        std::uint32_t epoch) {
  struct Input {
    char purpose[16] = {"gp packet key  "};
    protocol::JobKey job{};
    std::uint32_t epoch = 0;
    std::uint32_t half = 0;
  };
  static_assert(sizeof(Input) == 40, "hashed as bytes: no padding");
  std::array<std::uint64_t, 2> halves{};
  for (std::uint32_t half = 0; half < 2; ++half) {
    Input input;
    input.job = job;
    input.epoch = epoch;
    input.half = half;
    halves[half] = siphash24(cluster, std::as_bytes(std::span(&input, 1)));
  }
  return std::bit_cast<PacketKey>(halves);
}

}  // namespace gradplane::session
