// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "control/protocol/node_messages.h"
#include "dataplane/model/core_part.h"
#include "dataplane/model/staleness.h"

/// The fields of every node message, in the order of the wire, listed once for both directions. The
/// archive gets each field with the range of values that are accepted. Only a reader checks it.
namespace gradplane::protocol {

template <typename M, typename Message>
concept Of = std::same_as<std::remove_const_t<M>, Message>;

inline constexpr std::uint32_t kMaxFloorPpm = 1000000;
/// An hour: more than any time that a configuration may have.
inline constexpr std::uint64_t kMaxSettingNs = 3600000000000;

/// A 32-bit number that is never zero: attempts and epochs are counted from 1.
template <typename Archive>
void counted(Archive& a, const char* name, auto& number) {
  a.number(name, number, 1, UINT32_MAX);
}

template <typename Archive>
void fields(Archive& a, Of<Join> auto& m) {
  counted(a, "attempt", m.attempt);
  // UINT32_MAX stands for no user, but a rank always has one.
  a.number("user", m.user, 0, UINT32_MAX - 1);
  a.number("world_size", m.world_size, 1, kMaxRanks);
  a.numbers("ranks", m.ranks, kMaxLocalRanks, kMaxRanks);
  a.text("label", m.label);
  a.flag("may_grant", m.may_grant);
}

template <typename Archive>
void fields(Archive& a, Of<WaitingFor> auto& m) {
  counted(a, "attempt", m.attempt);
  a.number("missing_count", m.missing_count, 0, kMaxRanks);
  a.numbers("missing", m.missing, kMaxRanks, kMaxRanks);
  a.numbers("unheard", m.unheard, kMaxNodes, kMaxNodes);
}

template <typename Archive>
void fields(Archive& a, Of<Refused> auto& m) {
  counted(a, "attempt", m.attempt);
  a.numbers("ranks", m.ranks, kMaxLocalRanks, kMaxRanks);
  a.text("reason", m.reason);
}

template <typename Archive>
void fields(Archive& a, Of<JobSettings> auto& s) {
  a.number("block_bytes", s.block_bytes, kMinBlockBytes, kMaxBlockBytes);
  a.number("round_bytes", s.round_bytes, kMinBlockBytes, kMaxRoundBytes);
  a.flag("authenticate", s.authenticate);
  a.choice("compensation", s.compensation, Compensation::kCarry);
  a.number("strict_rounds", s.strict_rounds, 0, UINT32_MAX);
  a.number("floor", s.floor_ppm, 0, kMaxFloorPpm);
  a.number("slack", s.slack_ns, 0, kMaxSettingNs);
  a.number("absent_after", s.absent_after_ns, 0, kMaxSettingNs);
  a.choice("grants", s.grants, GrantChoice::kFalse);
  a.number("selections", s.selections, 0, kMaxSelections);
  a.number("average_every", s.average_every, 0, UINT32_MAX);
  a.number("staleness", s.staleness, 0, kMaxStalenessSteps);
  a.number("cores", s.cores, 1, kMaxCores);
}

template <typename Archive>
void fields(Archive& a, Of<Prepare> auto& m) {
  a.number("attempt", m.attempt, 0, UINT32_MAX);
  counted(a, "first_epoch", m.first_epoch);
  counted(a, "epoch", m.epoch);
  a.number("world_size", m.world_size, 1, kMaxRanks);
  fields(a, m.settings);
  a.text("label", m.label);
  a.blob("plan", m.plan, kMaxPlanBytes);
  a.flag("learn_bounds", m.learn_bounds);
  a.flag("grants", m.grants);
  a.numbers("shared_sections", m.shared_sections, kMaxSharedSections, UINT16_MAX + 1);
}

template <typename Archive>
void fields(Archive& a, Of<Prepared> auto& m) {
  counted(a, "epoch", m.epoch);
  a.flag("has_horizon", m.has_horizon);
  a.number("horizon", m.horizon, 0, UINT32_MAX);
}

template <typename Archive>
void fields(Archive& a, Of<PlanRefused> auto& m) {
  counted(a, "epoch", m.epoch);
  a.text("reason", m.reason);
}

template <typename Archive>
void fields(Archive& a, Of<Commit> auto& m) {
  counted(a, "epoch", m.epoch);
  a.number("activation_round", m.activation_round, 0, UINT32_MAX);
}

template <typename Archive>
void fields(Archive& a, Of<Abort> auto& m) {
  counted(a, "epoch", m.epoch);
  a.text("reason", m.reason);
}

template <typename Archive>
void fields(Archive& a, Of<PlanEnded> auto& m) {
  counted(a, "epoch", m.epoch);
}

template <typename Archive>
void fields(Archive& a, Of<EndPlan> auto& m) {
  counted(a, "epoch", m.epoch);
}

template <typename Archive>
void fields(Archive& a, Of<Dismiss> auto& m) {
  counted(a, "first_epoch", m.first_epoch);
}

template <typename Archive>
void fields(Archive& a, Of<Replan> auto& m) {
  counted(a, "ticket", m.ticket);
  a.choice("kind", m.kind, kLastPlanKind);
  a.numbers("roots", m.roots, kMaxTrees, kMaxNodes);
  a.numbers("without", m.without, kMaxNodes, kMaxNodes);
}

template <typename Archive>
void fields(Archive& a, Of<ReplanAnswer> auto& m) {
  counted(a, "ticket", m.ticket);
  a.flag("committed", m.committed);
  a.number("epoch", m.epoch, 0, UINT32_MAX);
  a.number("activation_round", m.activation_round, 0, UINT32_MAX);
  a.text("text", m.text);
}

template <typename Archive>
void fields(Archive& a, Of<Leave> auto& m) {
  counted(a, "first_epoch", m.first_epoch);
  a.number("rank", m.rank, 0, kMaxRanks - 1);
  a.flag("clean", m.clean);
}

template <typename Archive>
void fields(Archive& a, Of<Failed> auto& m) {
  counted(a, "first_epoch", m.first_epoch);
  a.text("reason", m.reason);
}

template <typename Archive>
void fields(Archive& a, Of<Finished> auto& m) {
  counted(a, "first_epoch", m.first_epoch);
}

template <typename Archive>
void fields(Archive& a, Of<DescribeBucket> auto& m) {
  counted(a, "first_epoch", m.first_epoch);
  a.blob("part", m.part, kMaxBucketPartBytes);
}

template <typename Archive>
void fields(Archive& a, Of<BucketBounds> auto& m) {
  counted(a, "first_epoch", m.first_epoch);
  a.share("learn_budget", m.learn_budget, kMaxBound);
  a.blob("part", m.part, kMaxBucketPartBytes);
}

template <typename Archive>
void fields(Archive& a, Of<LinkSample> auto& s) {
  a.number("from", s.from, 0, kMaxNodes - 1);
  a.number("bits_per_s", s.bits_per_s, 0, kMaxLinkBitsPerSecond);
  a.flag("is_lower_bound", s.is_lower_bound);
  a.number("rate_confidence", s.rate_confidence, 0, kFullConfidence);
  a.number("rate_age_ms", s.rate_age_ms, 0, kMaxLinkAgeMs);
  a.number("rtt_us", s.rtt_us, 0, kMaxLinkRttUs);
  a.number("rtt_age_ms", s.rtt_age_ms, 0, kMaxLinkAgeMs);
  a.number("loss_ppm", s.loss_ppm, 0, kMaxLinkLossPpm);
  a.number("loss_confidence", s.loss_confidence, 0, kFullConfidence);
  a.number("loss_age_ms", s.loss_age_ms, 0, kMaxLinkAgeMs);
}

template <typename Archive>
void fields(Archive& a, Of<ReportLinks> auto& m) {
  a.entries("links", m.links, kMaxReportedLinks);
}

template <typename Archive>
void fields(Archive& a, Of<Report> auto& m) {
  counted(a, "first_epoch", m.first_epoch);
  a.number("epoch", m.epoch, 0, UINT32_MAX);
  a.number("activation_round", m.activation_round, 0, UINT32_MAX);
  a.number("next_epoch", m.next_epoch, 0, UINT32_MAX);
  a.number("epoch_before", m.epoch_before, 0, UINT32_MAX);
  a.flag("ending", m.ending);
  a.flag("has_part", m.has_part);
  a.number("newest_epoch", m.newest_epoch, 0, UINT32_MAX);
  a.number("attempt", m.attempt, 0, UINT32_MAX);
  a.number("user", m.user, 0, UINT32_MAX);
  a.number("world_size", m.world_size, 0, kMaxRanks);
  a.number("table_parts", m.table_parts, 0, UINT32_MAX);
  a.text("label", m.label);
  a.flag("grants", m.grants);
}

template <typename Archive>
void fields(Archive& a, Of<AskReport> auto& m) {
  counted(a, "first_epoch", m.first_epoch);
}

template <typename Archive>
void fields(Archive& a, Of<AskPlan> auto& m) {
  counted(a, "first_epoch", m.first_epoch);
  counted(a, "epoch", m.epoch);
}

template <typename Archive>
void fields(Archive& a, Of<PlanIs> auto& m) {
  counted(a, "first_epoch", m.first_epoch);
  counted(a, "epoch", m.epoch);
  a.blob("plan", m.plan, kMaxPlanBytes);
}

template <typename Archive>
void fields(Archive& a, Of<AskTables> auto& m) {
  counted(a, "first_epoch", m.first_epoch);
}

}  // namespace gradplane::protocol
