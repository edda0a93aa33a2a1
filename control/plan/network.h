// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"
#include "dataplane/base/time.h"
#include "dataplane/model/limits.h"

namespace gradplane::plan {

/// A site's index in Network::sites.
using SiteId = std::uint16_t;
inline constexpr SiteId kNoSite = 0xffff;

inline constexpr std::size_t kMaxSites = kMaxNodes;
/// A full mesh of 256 sites, or a sparse network of the most sites with 64 links each.
inline constexpr std::size_t kMaxLinks = std::size_t{1} << 16;
/// 10 Tbit/s. A faster link is a mistake in the file or in a measurement.
inline constexpr std::uint64_t kMaxBitsPerSecond = 10'000'000'000'000;
/// The rate of something that limits nothing.
inline constexpr std::uint64_t kUnlimited = UINT64_MAX;
inline constexpr Duration kMaxRtt = Duration::seconds(10);
/// A path that loses more than half of the packets carries no training.
inline constexpr std::uint32_t kMaxLossPpm = 500000;
static_assert(kMaxSites <= kNoSite, "kNoSite is no site");
static_assert(kMaxBitsPerSecond < kUnlimited);

/// The access of a node or a site, through which all its traffic passes. Traffic that a site only
/// forwards does not pass it.
struct Access {
  std::uint64_t up_bits_per_s = kUnlimited;
  std::uint64_t down_bits_per_s = kUnlimited;
  Duration rtt;                // there and back
  std::uint32_t loss_ppm = 0;  // in each direction
};

/// One direction of a link between two sites. A link of rate 0 is dead.
struct Link {
  SiteId from = kNoSite;
  SiteId to = kNoSite;
  std::uint64_t bits_per_s = 0;
  Duration rtt;  // there and back
  std::uint32_t loss_ppm = 0;
};

struct Site {
  std::string name;
  Access access;
};

/// A node without a site is not in the network.
struct Node {
  SiteId site = kNoSite;
  Access access;
  std::string name = {};  // for messages to people
};

/// Which way packets take between two sites.
enum class Routing : std::uint8_t {
  kFewestLinks,  // as in most networks; of equal ways the one with the least time per byte
  kFastest,      // the least time per byte, which is the sum of 1/rate; as in NetStorm
};

/// What planners know of the network. If it has links, traffic between sites uses only these. If it
/// has none, sites reach each other through a core that is never the bottleneck. In both cases the
/// accesses of sites and nodes limit the traffic. Inside a site only the nodes' accesses do.
struct Network {
  std::vector<Site> sites;
  std::vector<Node> nodes;  // by api::NodeId
  std::vector<Link> links;  // at most one for each direction between two sites
  Routing routing = Routing::kFewestLinks;
};

/// Whether planners can use the network. If not, the error names the first thing that is wrong. The
/// values need not be trusted.
Status validate(const Network& network);

/// A node in messages: "node paris0", or with its number if it has no name.
std::string node_text(const Network& network, api::NodeId node);

/// A network without links, in which each node is a site of its own with the given access.
Network network_of_accesses(const std::vector<Access>& nodes);

}  // namespace gradplane::plan
