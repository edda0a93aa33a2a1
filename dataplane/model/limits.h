// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

/// Limits on which more than one folder relies, and assertions on how they relate.
namespace gradplane {

/// The most nodes of a cluster, which is also the length of every per-peer table.
inline constexpr std::size_t kMaxNodes = 1024;
/// The most jobs that one daemon serves at a time.
inline constexpr std::size_t kMaxJobs = 64;
/// The most ranks of a job.
inline constexpr std::size_t kMaxRanks = 1024;
/// The most ranks of a job on one node: one for each core of a large host.
inline constexpr std::size_t kMaxLocalRanks = 64;
/// The most ranks of all jobs on one node. A rank in three process groups counts three times.
inline constexpr std::size_t kMaxRanksOfNode = 1024;
/// Some of a node's ranks of a job, a bit for each.
using LocalRankBits = std::uint64_t;
/// The bits of all ranks of a node that has `count` of them.
constexpr LocalRankBits all_local_ranks(std::size_t count) {
  return count == 0 ? 0 : ~LocalRankBits{0} >> (kMaxLocalRanks - count);
}
/// The most trees of a plan.
inline constexpr std::size_t kMaxTrees = 64;
/// The most plans of a job that a node holds at a time: that of its older rounds, and either that
/// of its newer rounds or a prepared one.
inline constexpr std::size_t kMaxLivePlans = 2;
/// The most auxiliary routes from one node to another, and the most relays on one of them. Relays
/// and receiver fill the one word that is free beside a full block at an MTU of 1500.
inline constexpr std::size_t kMaxRoutes = 2;
inline constexpr std::size_t kMaxRelays = 2;
/// The paths to a peer: the direct one, which is path 0, the routes, and the group.
inline constexpr std::size_t kMaxPaths = 2 + kMaxRoutes;
/// The most peers that a node sounds under one plan because no tree uses the links to them, and the
/// most such soundings of a plan. A plan message has room for them beside its trees.
inline constexpr std::size_t kMaxSoundedPeers = 8;
inline constexpr std::size_t kMaxSoundings = 512;
/// The most rounds after the newest one that may still be opened while a further plan is prepared.
/// They cover the time until the nodes have agreed on its activation. If rounds are slow, fewer of
/// them suffice (job::RoundPace).
inline constexpr std::uint32_t kMaxActivationMarginRounds = 32;
/// The largest payload of a block, in bytes: the largest multiple of 64 that fits a 9000-byte MTU.
inline constexpr std::size_t kMaxBlockBytes = 8832;
/// The payload of a block at an MTU of 1500, in bytes.
inline constexpr std::size_t kDefaultBlockBytes = 1408;
/// A block payload is a multiple of this, so that no element is ever split.
inline constexpr std::size_t kBlockAlignBytes = 64;
/// The most senders to which a node grants: pairs of job and peer.
inline constexpr std::size_t kMaxGrantSources = 4 * kMaxNodes;
/// The rounds of a job that a node holds open at a time. A power of two: slot = round % this.
inline constexpr std::size_t kRoundSlots = 16;
/// The most rounds that a rank may have in flight. It submits round r only after it has completed
/// round r - kMaxInFlightRounds and all earlier ones.
inline constexpr std::size_t kMaxInFlightRounds = kRoundSlots / 2;
/// Let f be the oldest round that some rank lacks. No rank completes round f + kMaxLeadRounds. A
/// round that closes with a contribution of every host cannot run further ahead, since the rank
/// that lacks f has not submitted it. From the activation of a plan that leaves a host out, the
/// others wait for that host's last round (PlanTable::may_submit). Before a root closes a round
/// without an absent host, it makes sure that every round has ended that is at least kMaxLeadRounds
/// older (Rounds::may_leave_behind).
inline constexpr std::size_t kMaxLeadRounds = kMaxInFlightRounds;
/// The most bytes of a round in one rank's arena. Larger buckets are cut into several rounds.
inline constexpr std::size_t kMaxRoundBytes = std::size_t{4} << 20;
/// The smallest block size that a configuration may choose, in bytes, and the most blocks of a
/// round at this size.
inline constexpr std::size_t kMinBlockBytes = 512;
inline constexpr std::size_t kMaxBlocksPerRound = kMaxRoundBytes / kMinBlockBytes;
/// The most bytes of a block's datagram besides the block, without a coverage set.
inline constexpr std::size_t kMaxHeaderBytes = 56;
/// The longest payload of a datagram: what fits a 9000-byte MTU.
inline constexpr std::size_t kMaxDatagramBytes = 8972;
/// The longest body of a control message in one datagram.
inline constexpr std::size_t kMaxControlBytes = 1280;
/// The longest payload that fits every MTU.
inline constexpr std::size_t kMinMtuPayloadBytes = kMaxHeaderBytes + kMaxControlBytes;

/// The bytes that a partial block needs to name its hosts: one bit each, in 64-bit words.
constexpr std::size_t coverage_bytes(std::size_t hosts) {
  return (hosts + 63) / 64 * 8;
}
/// The largest block that fits datagrams with this payload. `hosts`: the number of hosts if blocks
/// may be partial; otherwise 0.
constexpr std::size_t max_block_bytes(std::size_t mtu_payload_bytes, std::size_t hosts) {
  const std::size_t room = mtu_payload_bytes - kMaxHeaderBytes - coverage_bytes(hosts);
  const std::size_t aligned = room / kBlockAlignBytes * kBlockAlignBytes;
  return aligned < kMaxBlockBytes ? aligned : kMaxBlockBytes;
}

static_assert(kMaxLocalRanks == 8 * sizeof(LocalRankBits));
static_assert(kMaxLocalRanks <= kMaxRanks && kMaxLocalRanks <= kMaxRanksOfNode);
static_assert(kMaxBlockBytes % kBlockAlignBytes == 0);
static_assert(kDefaultBlockBytes % kBlockAlignBytes == 0);
static_assert(kMinBlockBytes % kBlockAlignBytes == 0);
static_assert(kMaxGrantSources >= kMaxNodes, "one job of all nodes has a source for each");
static_assert((kRoundSlots & (kRoundSlots - 1)) == 0, "slot = round % kRoundSlots");
static_assert(
    kMaxActivationMarginRounds >= kRoundSlots,
    "a node whose rounds begin all at once does not hold back those that others have open");
static_assert(kMaxLeadRounds >= kMaxInFlightRounds,
              "a round that all hosts contribute to is never held back");
static_assert(kMaxLeadRounds + kMaxInFlightRounds <= kRoundSlots,
              "nobody completes round f + kMaxLeadRounds, so nobody submits round f + kRoundSlots: "
              "every arena still holds the results from round f on");
static_assert(kMinMtuPayloadBytes <= 1472, "a control message fits a 1500-byte MTU");
static_assert(max_block_bytes(1472, 64) == kDefaultBlockBytes,
              "up to 64 hosts fit beside a block at an MTU of 1500");
static_assert(max_block_bytes(1472, 65) < kDefaultBlockBytes, "more need smaller blocks");
static_assert(max_block_bytes(kMaxDatagramBytes, 640) == kMaxBlockBytes);
static_assert(max_block_bytes(kMinMtuPayloadBytes, kMaxNodes) >= kMinBlockBytes,
              "every cluster has a block size at which its blocks may be partial");

}  // namespace gradplane
