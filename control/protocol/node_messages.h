// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "control/protocol/job_key.h"
#include "control/protocol/parsed.h"
#include "dataplane/model/limits.h"
#include "dataplane/model/loss_bounds.h"

/// What daemons tell each other about jobs. A message is small, binary, in network order, and
/// travels reliably and in order over a PeerLink, which also authenticates its sender.
///
/// Before a plan is in force a node's part in a job is named by the `attempt` that the node itself
/// counts; from the plan on, by the plan's epoch. So an answer to what a node wanted earlier is
/// never taken for an answer to what it wants now.
namespace gradplane::protocol {

inline constexpr std::size_t kMaxNodeMessageBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxNodeTextBytes = 512;
/// Part of a bucket's table. Short, so that it never keeps other messages of a link waiting long.
inline constexpr std::size_t kMaxBucketPartBytes = std::size_t{16} << 10;
/// What is left for an encoded plan beside the other members of Prepare.
inline constexpr std::size_t kMaxPlanBytes = kMaxNodeMessageBytes - 1024;
static_assert(kMaxNodeTextBytes + 64 < 1024, "a Prepare with the longest plan and label fits");
static_assert(kMaxRanks * 2 + kMaxNodeTextBytes + 64 < kMaxNodeMessageBytes,
              "every message that lists ranks fits");

/// Node to coordinator: these ranks of the job are attached here. The whole list, each time it
/// changes; an empty list withdraws.
struct Join {
  JobKey key{};
  std::uint32_t attempt = 0;
  std::uint32_t user = 0;  // of these ranks, as the kernel of their node says
  std::uint32_t world_size = 0;
  std::vector<std::uint16_t> ranks;  // at most kMaxLocalRanks
  std::string label;
};
/// Coordinator to a node that joined: who is still missing.
struct WaitingFor {
  JobKey key{};
  std::uint32_t attempt = 0;
  std::uint32_t missing_count = 0;
  std::vector<std::uint16_t> missing;  // the first of them
};
/// Coordinator to a node that joined: these ranks cannot take part.
struct Refused {
  JobKey key{};
  std::uint32_t attempt = 0;
  std::vector<std::uint16_t> ranks;
  std::string reason;
};
/// What all members of a job must have alike, or they drop each other's packets, or their sums mean
/// something else. Each node has it from its own configuration.
struct JobSettings {
  std::uint32_t block_bytes = kDefaultBlockBytes;      // block.bytes, `auto` resolved
  std::uint32_t round_bytes = kMaxRoundBytes;          // rounds.bytes
  bool authenticate = true;                            // security.authenticate
  Compensation compensation = Compensation::kRescale;  // gather.compensation
  std::uint32_t strict_rounds = 10;                    // gather.strict_rounds
  std::uint32_t floor_ppm = 500000;                    // gather.floor, in millionths
  std::uint64_t slack_ns = 0;                          // gather.slack; 0: learned
  std::uint64_t absent_after_ns = 0;                   // gather.absent_after; 0: never
  bool grants = false;                                 // grants.enabled
  bool operator==(const JobSettings&) const = default;
};
/// Coordinator to every member: install this plan. Who has other settings answers Failed.
struct Prepare {
  JobKey key{};
  std::uint32_t attempt = 0;  // 0: this member hosts no rank
  std::uint32_t epoch = 0;
  std::uint32_t world_size = 0;
  JobSettings settings;  // of the coordinator
  std::string label;
  std::vector<std::byte> plan;  // control/session/plan_codec.h
  bool learn_bounds = false;    // the coordinator's gather.preset is auto: roots measure for it
};
/// Member to coordinator: it is installed.
struct Prepared {
  JobKey key{};
  std::uint32_t epoch = 0;
};
/// Coordinator to every member: all have it; begin.
struct Commit {
  JobKey key{};
  std::uint32_t epoch = 0;
};
/// Member to coordinator: a rank is gone; `clean`: in order.
struct Leave {
  JobKey key{};
  std::uint32_t epoch = 0;
  std::uint16_t rank = 0;
  bool clean = false;
};
/// Either way: the job cannot go on.
struct Failed {
  JobKey key{};
  std::uint32_t epoch = 0;
  std::string reason;
};
/// Coordinator to every member: every rank has left in order.
struct Finished {
  JobKey key{};
  std::uint32_t epoch = 0;
};
/// The member that hosts rank 0 to the coordinator: some tensors of a bucket, in order.
struct DescribeBucket {
  JobKey key{};
  std::uint32_t epoch = 0;
  std::vector<std::byte> part;  // control/session/bucket_tables.h
};
/// Coordinator to every member: some tensors of a bucket with their bounds, in order.
struct BucketBounds {
  JobKey key{};
  std::uint32_t epoch = 0;
  float learn_budget = 0;       // share of all elements that learned bounds may add up to
  std::vector<std::byte> part;  // control/session/bucket_tables.h
};
using NodeMessage = std::variant<Join, WaitingFor, Refused, Prepare, Prepared, Commit, Leave,
                                 Failed, Finished, DescribeBucket, BucketBounds>;

/// The bytes of a message, at most kMaxNodeMessageBytes: texts and lists are cut to their bounds
/// (a plan is not: the caller keeps it within kMaxPlanBytes).
std::vector<std::byte> encode(const NodeMessage& message);

/// Checks every field's range; bytes that are left over are an error.
Parsed<NodeMessage> parse_node_message(std::span<const std::byte> bytes);

}  // namespace gradplane::protocol
