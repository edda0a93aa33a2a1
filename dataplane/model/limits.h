// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

/// Every bound that more than one folder relies on. How they relate is asserted here.
namespace gradplane {

/// Nodes of one cluster, and so the length of every per-peer table.
inline constexpr std::size_t kMaxNodes = 1024;
/// Jobs that one daemon serves at a time.
inline constexpr std::size_t kMaxJobs = 16;
/// Ranks of one job.
inline constexpr std::size_t kMaxRanks = 1024;
/// Ranks of one job on one node.
inline constexpr std::size_t kMaxLocalRanks = 16;
/// Trees of one plan.
inline constexpr std::size_t kMaxTrees = 64;
/// Plans of one job that a node holds at a time: the one of its older rounds, and the one of its
/// newer rounds or one that is prepared.
inline constexpr std::size_t kMaxLivePlans = 2;
/// Auxiliary routes from one node to another, at most, and the nodes between the two that relay a
/// packet on one of them. Relays and receiver fill the one word that is free beside a full block at
/// an MTU of 1500.
inline constexpr std::size_t kMaxRoutes = 2;
inline constexpr std::size_t kMaxRelays = 2;
/// The ways to a peer: the direct one, which is path 0, the routes, and the group of its parent's
/// results.
inline constexpr std::size_t kMaxPaths = 2 + kMaxRoutes;
/// Peers that one node sounds under one plan because no tree uses the links to them, and such
/// soundings of one plan. The message of a plan has room for them beside its trees.
inline constexpr std::size_t kMaxSoundedPeers = 8;
inline constexpr std::size_t kMaxSoundings = 512;
/// While a further plan is prepared, so many rounds after the newest one may still be opened at
/// most. They cover the time until the nodes have agreed on the round from which on the plan is
/// used. Where rounds are slow, fewer of them do (job::RoundPace).
inline constexpr std::uint32_t kMaxActivationMarginRounds = 32;
/// Payload of one block, in bytes: the largest multiple of 64 that fits a 9000-byte MTU.
inline constexpr std::size_t kMaxBlockBytes = 8832;
/// Payload of one block at an MTU of 1500.
inline constexpr std::size_t kDefaultBlockBytes = 1408;
/// A block payload is a multiple of this, so that no element is ever split.
inline constexpr std::size_t kBlockAlignBytes = 64;
/// Senders that one node grants to: pairs of job and peer.
inline constexpr std::size_t kMaxGrantSources = 4 * kMaxNodes;
/// Rounds of one job that a node holds open at a time. A power of two: slot = round % this.
inline constexpr std::size_t kRoundSlots = 16;
/// Rounds that one rank may have in flight: it submits round r only when it has completed round
/// r - kMaxInFlightRounds and all before it.
inline constexpr std::size_t kMaxInFlightRounds = kRoundSlots / 2;
/// Let f be the oldest round that some rank lacks. No rank completes round f + kMaxLeadRounds. A
/// round that closes with a contribution of every host cannot run further ahead, since the rank
/// that lacks f has not submitted it. From the activation of a plan that leaves a host out, the
/// others wait for that host's last round (PlanTable::may_submit). A root that closes a round
/// without an absent host first makes sure that every round has ended that is kMaxLeadRounds or
/// more before it (Rounds::may_leave_behind).
inline constexpr std::size_t kMaxLeadRounds = kMaxInFlightRounds;
/// Bytes of one round in one rank's arena, at most. Larger buckets are cut into several rounds.
inline constexpr std::size_t kMaxRoundBytes = std::size_t{4} << 20;
/// Blocks of one round at the smallest block size that a configuration may choose (512 bytes).
inline constexpr std::size_t kMinBlockBytes = 512;
inline constexpr std::size_t kMaxBlocksPerRound = kMaxRoundBytes / kMinBlockBytes;
/// What a block's datagram has before and behind the block, without a coverage set.
inline constexpr std::size_t kMaxHeaderBytes = 56;
/// A datagram handed to a port: what fits a 9000-byte MTU.
inline constexpr std::size_t kMaxDatagramBytes = 8972;
/// A control message body inside one datagram.
inline constexpr std::size_t kMaxControlBytes = 1280;
/// The largest datagram that every MTU carries.
inline constexpr std::size_t kMinMtuPayloadBytes = kMaxHeaderBytes + kMaxControlBytes;

/// What a partial block needs to name the hosts that are in it: one bit each, in 64-bit words.
constexpr std::size_t coverage_bytes(std::size_t hosts) {
  return (hosts + 63) / 64 * 8;
}
/// The largest block that fits datagrams of so many bytes. `hosts`: those with ranks, where blocks
/// may be partial; else 0.
constexpr std::size_t max_block_bytes(std::size_t mtu_payload_bytes, std::size_t hosts) {
  const std::size_t room = mtu_payload_bytes - kMaxHeaderBytes - coverage_bytes(hosts);
  const std::size_t aligned = room / kBlockAlignBytes * kBlockAlignBytes;
  return aligned < kMaxBlockBytes ? aligned : kMaxBlockBytes;
}

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
