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

/// For this time after its measurement a value counts as much as its confidence says. Then it
/// counts less and less, until it is forgotten. A link that no tree uses keeps its value for some
/// minutes: if it were forgotten at once, the next plan would use a link that has just been found
/// slow.
inline constexpr Duration kMeasuredFreshFor = Duration::seconds(30);
inline constexpr Duration kMeasuredForgottenAfter = Duration::seconds(300);
/// A measurement makes a link at most so many times as fast as the file says. A higher rate is
/// taken for a mistake or a lie.
inline constexpr double kMostOverConfigured = 10;
/// No measurement makes a link slower than this. Only the file can say that a link is dead.
inline constexpr std::uint64_t kLeastMeasuredBitsPerSecond = 1000;
/// Two rates are taken for equal if they differ by at most this share of the higher one.
inline constexpr double kSameRate = 0.2;
/// In a configured network without links, a round trip or loss above these is not explained by the
/// accesses, so each pair of sites becomes a link.
inline constexpr Duration kNearRtt = Duration::ms(1);
inline constexpr std::uint32_t kLittleLossPpm = 1000;
/// The largest number of sites of which all pairs can be links.
inline constexpr std::size_t kMaxMeshSites = 256;
static_assert(kMaxMeshSites * (kMaxMeshSites - 1) <= kMaxLinks);
static_assert(kMaxBitsPerSecond == protocol::kMaxLinkBitsPerSecond,
              "every rate that a report may have is one of a network");
static_assert(kMaxRtt == Duration::us(protocol::kMaxLinkRttUs));

/// How much a value of this confidence and age counts, from 0 to 1.
double weight_of(std::uint8_t confidence_percent, std::uint32_t age_ms);

/// The network as it is configured and measured. `configured` is valid, or empty if no file
/// describes the network. Samples of unknown nodes, and of two nodes of one site, count nothing.
/// The result is valid, or empty if neither the file nor a sample says anything.
///
/// - A sample over one link replaces the link's rate, round trip and loss, as far as the sample
///   counts: the rate is between the configured and the measured one, on a scale of ratios. Of
///   several samples over one link the fastest counts, because other traffic makes a measurement
///   slower and hardly anything makes it faster.
/// - A lower bound raises a rate, and never lowers it.
/// - A sample over several links is a lower bound of the rate of each. If it was slower than all of
///   them, and nothing else explains it, one link is lowered: the one with the least measurements,
///   and of equal ones the slowest. Round trip and loss of the sample count nothing, because they
///   belong to no single link.
/// - A rate says nothing of a link when an access explains it: when the samples of all traffic
///   through this access add up to its rate, within kSameRate, each is a share of the access. Such
///   a sample is a lower bound. In the same way a link that several samples cross explains a sample
///   over several links.
/// - Which way a sample has taken follows from the configured routing and rates.
/// - A configured network without links stays without links as long as its accesses explain the
///   samples. Otherwise each pair of sites becomes a link. A pair without a sample is as fast as
///   its two ends: as their accesses, or as the best rates at which the one has sent and the other
///   has received, or else as the median of all pairs. The accesses stay as they are. When nothing
///   is configured, the nodes become such a network.
/// - Above kMaxMeshSites sites, samples over a configured network without links change nothing.
///   Without a configured network each node then has an access with the best rates that it has
///   shown.
std::optional<Network> measured_network(const std::optional<Network>& configured,
                                        const std::vector<std::string>& node_names,
                                        std::span<const protocol::LinkSample> samples);

}  // namespace gradplane::plan
