// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/site_network.h"

#include <algorithm>
#include <utility>

#include "dataplane/base/assert.h"

namespace gradplane::sim {
namespace {

/// Bytes of Ethernet, IP and UDP headers. The link adds Ethernet's preamble, checksum and gap.
constexpr std::size_t kFrameHeaderBytes = 42;
constexpr double kMillion = 1e6;

bool same_shape(const plan::Network& a, const plan::Network& b) {
  return a.sites.size() == b.sites.size() && a.nodes.size() == b.nodes.size() &&
         std::equal(a.links.begin(), a.links.end(), b.links.begin(), b.links.end(),
                    [](const plan::Link& x, const plan::Link& y) {
                      return x.from == y.from && x.to == y.to;
                    });
}

}  // namespace

SiteNetwork::SiteNetwork(std::vector<SitesAt> networks, Queues queues)
    : networks_(std::move(networks)), queues_(queues) {
  GP_ASSERT(!networks_.empty() && "there is a first network");
  for (const SitesAt& later : networks_) {
    GP_ASSERT(same_shape(later.network, network()) && "a change adds and removes nothing");
    GP_ASSERT(plan::validate(later.network).ok() && "planners could work with the network");
  }
  pipes_.resize(node_up(static_cast<std::uint16_t>(network().nodes.size())));
  adopt();
}

SiteNetwork::Pipe SiteNetwork::site_up(plan::SiteId site) const {
  return static_cast<Pipe>(network().links.size() + 2u * site);
}

SiteNetwork::Pipe SiteNetwork::node_up(std::uint16_t node) const {
  return static_cast<Pipe>(network().links.size() + 2 * network().sites.size() + 2u * node);
}

void SiteNetwork::advance(Instant now) {
  while (in_force_ + 1 < networks_.size() && networks_[in_force_ + 1].at <= now) {
    ++in_force_;
    adopt();
  }
}

void SiteNetwork::adopt() {
  const plan::Network& in_force = network();
  routes_.emplace(in_force);
  paths_.clear();
  for (std::size_t l = 0; l < in_force.links.size(); ++l) {
    const plan::Link& link = in_force.links[l];
    set(static_cast<Pipe>(l), link.bits_per_s, link.rtt, link.loss_ppm);
  }
  for (std::size_t s = 0; s < in_force.sites.size(); ++s) {
    const Pipe up = site_up(static_cast<plan::SiteId>(s));
    set(up, in_force.sites[s].access, true);
    set(up + 1, in_force.sites[s].access, false);
  }
  for (std::size_t n = 0; n < in_force.nodes.size(); ++n) {
    const Pipe up = node_up(static_cast<std::uint16_t>(n));
    set(up, in_force.nodes[n].access, true);
    set(up + 1, in_force.nodes[n].access, false);
  }
}

void SiteNetwork::set(Pipe pipe, const plan::Access& access, bool up) {
  set(pipe, up ? access.up_bits_per_s : access.down_bits_per_s, access.rtt, access.loss_ppm);
}

void SiteNetwork::set(Pipe pipe, std::uint64_t bits_per_s, Duration rtt, std::uint32_t loss_ppm) {
  State& state = pipes_[pipe];
  const bool is_limited = bits_per_s != plan::kUnlimited;
  state.is_dead = bits_per_s == 0;
  state.does_nothing = !is_limited && rtt == Duration{} && loss_ppm == 0;
  const double filled = is_limited ? static_cast<double>(bits_per_s) / 8 * rtt.to_seconds() : 0;
  const double queue = std::max(filled, static_cast<double>(queues_.least_bytes));
  lab::LinkSettings settings;
  settings.rate_bits_per_second = is_limited ? static_cast<std::int64_t>(bits_per_s) : 0;
  settings.delay = rtt / 2;
  settings.queue_bytes = is_healed_ ? INT64_MAX : static_cast<std::int64_t>(queue);
  settings.ecn_threshold_bytes = static_cast<std::int64_t>(queues_.mark_bytes);
  settings.loss.random = is_healed_ ? 0 : loss_ppm / kMillion;
  state.link.set(settings);
}

void SiteNetwork::heal() {
  is_healed_ = true;
  adopt();
}

std::shared_ptr<const SiteNetwork::Path> SiteNetwork::path(std::uint16_t from, std::uint16_t to,
                                                           Instant now) {
  advance(now);
  const auto [known, is_new] = paths_.try_emplace(from * std::uint32_t{1 << 16} + to);
  if (is_new) known->second = find_path(from, to);
  return known->second;
}

std::shared_ptr<const SiteNetwork::Path> SiteNetwork::find_path(std::uint16_t from,
                                                                std::uint16_t to) {
  const plan::Way& way = routes_->between_nodes(from, to);
  if (!way.open) return nullptr;
  Path path;
  const auto add = [&](Pipe pipe) {
    if (!pipes_[pipe].does_nothing) path.push_back(pipe);
  };
  const plan::SiteId source = network().nodes[from].site;
  const plan::SiteId sink = network().nodes[to].site;
  add(node_up(from));
  if (source != sink) {
    add(site_up(source));
    for (const plan::ResourceId resource : way.resources) {
      if (resource < network().links.size()) add(resource);
    }
    add(site_up(sink) + 1);
  }
  add(node_up(to) + 1);
  return std::make_shared<const Path>(std::move(path));
}

std::optional<SiteNetwork::Passage> SiteNetwork::pass(Pipe pipe, std::size_t payload_bytes,
                                                      Instant now, lab::Rng& random) {
  advance(now);
  State& state = pipes_[pipe];
  if (state.is_dead) return std::nullopt;
  const lab::Passage passage =
      state.link.offer(now, payload_bytes + kFrameHeaderBytes, true, random);
  if (passage.arrival_count == 0) return std::nullopt;
  return Passage{passage.arrivals[0], passage.mark};
}

}  // namespace gradplane::sim
