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

std::string node_text(const SessionConfig& config, api::NodeId node) {
  if (node < config.node_names.size()) return "node " + config.node_names[node];
  return "node " + std::to_string(node);
}

std::string ranks_text(const std::vector<std::uint16_t>& ranks) {
  constexpr std::size_t kNamed = 8;
  if (ranks.size() == 1) return "rank " + std::to_string(ranks[0]);
  std::string text = "ranks ";
  const std::size_t named = std::min(ranks.size(), kNamed);
  for (std::size_t i = 0; i < named; ++i) {
    const bool last = i + 1 == ranks.size();
    if (i > 0) text += last ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (ranks.size() > named) text += " and " + std::to_string(ranks.size() - named) + " more";
  return text;
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
