// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/plan/network.h"
#include "control/protocol/link_sample.h"
#include "dataplane/base/time.h"

namespace gradplane::plan {

/// For so long after it was measured a value counts as much as its confidence says. Then it counts
/// less and less, until it is forgotten. A link that no tree uses keeps its value for some minutes:
/// if it were forgotten at once, a plan would go back to a link that has just been found slow.
inline constexpr Duration kMeasuredFreshFor = Duration::seconds(30);
inline constexpr Duration kMeasuredForgottenAfter = Duration::seconds(300);
/// A measurement makes a link at most so many times as fast as the file has it. More is taken for a
/// mistake or a lie.
inline constexpr double kMostOverConfigured = 10;
/// No measurement makes a link slower than this. Only the file can say that a link is dead.
inline constexpr std::uint64_t kLeastMeasuredBitsPerSecond = 1000;
/// Rates that agree as well as this are the same.
inline constexpr double kSameRate = 0.2;
/// Where there are no links, these make links of all pairs: a round trip and a loss that an access
/// of the file does not explain.
inline constexpr Duration kNearRtt = Duration::ms(1);
inline constexpr std::uint32_t kLittleLossPpm = 1000;
/// The most sites of which all pairs can be links.
inline constexpr std::size_t kMaxMeshSites = 256;
static_assert(kMaxMeshSites * (kMaxMeshSites - 1) <= kMaxLinks);
static_assert(kMaxBitsPerSecond == protocol::kMaxLinkBitsPerSecond,
              "every rate that a report may have is one of a network");
static_assert(kMaxRtt == Duration::us(protocol::kMaxLinkRttUs));

/// How much a value of this confidence (percent) and age counts, from 0 to 1.
double weight_of(std::uint8_t confidence_percent, std::uint32_t age_ms);

/// The network as it is configured and measured. `configured` is valid; nothing: no file describes
/// it. Samples of nodes that are not there, and of two nodes of one site, count nothing. The result
/// is valid. Nothing: neither the file nor a sample says anything.
///
/// - A sample over one link replaces the link's rate, round trip and loss, as far as the sample
///   counts: the rate is between the configured and the measured one, on a scale of ratios. Of
///   several samples over one link the fastest counts, because other traffic makes a measurement
///   slower and hardly anything makes it faster.
/// - A lower bound raises a rate, and never lowers it.
/// - What came through several links is a lower bound of each of them. If it was slower than all of
///   them, and nothing else explains it, the link is lowered that has been measured least, and of
///   equal ones the slowest. Its round trip and loss count nothing, as they are not of one link.
/// - A rate says nothing of a link when an access explains it: when the samples of all that goes
///   through this access add up to its rate, within kSameRate, each is a share of the access. Such
///   a sample is a lower bound. The links that several samples go through explain a sample over
///   several links in the same way.
/// - Which way a sample has taken follows from the configured routing and rates.
/// - A configured network without links keeps its shape as long as its accesses explain what was
///   measured. Otherwise each pair of sites becomes a link. Where nothing was measured it is as
///   fast as its two ends: as their accesses, or as the best rate at which the one has sent and the
///   other has received, or else as the median of all pairs. The accesses stay as they are. The
///   same is made of the nodes when nothing is configured.
/// - Above kMaxMeshSites sites, samples over a configured network without links change nothing, and
///   without a configured network each node has an access: the best that it has shown.
std::optional<Network> measured_network(const std::optional<Network>& configured,
                                        const std::vector<std::string>& node_names,
                                        std::span<const protocol::LinkSample> samples);

}  // namespace gradplane::plan
