// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/mesh.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "control/plan/measured.h"

namespace gradplane::plan {
namespace {

using protocol::LinkSample;

/// What samples say of one pair, or of all pairs together.
struct Shown {
  double exact = 0;
  double exact_weight = 0;
  double bound = 0;
  std::optional<std::uint32_t> rtt_us;
  std::optional<std::uint32_t> loss_ppm;
  double loss_weight = 0;

  double rate() const { return std::max(exact, bound); }
};

template <typename Value>
Value median(std::vector<Value> values, Value otherwise) {
  if (values.empty()) return otherwise;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The rate at which all nodes of each site together can send or receive, as far as the file says.
std::vector<double> access_limits(const Network& network, std::uint64_t Access::*rate) {
  std::vector<double> limits(network.sites.size(), 0);
  for (const Node& node : network.nodes)
    if (node.site != kNoSite) limits[node.site] += static_cast<double>(node.access.*rate);
  for (std::size_t s = 0; s < limits.size(); ++s)
    limits[s] = std::min(limits[s], static_cast<double>(network.sites[s].access.*rate));
  return limits;
}

/// What the samples say of pairs and of their ends.
class Ends {
 public:
  Ends(const Network& start, std::span<const LinkSample> samples)
      : start_(start),
        limit_out_(access_limits(start, &Access::up_bits_per_s)),
        limit_in_(access_limits(start, &Access::down_bits_per_s)) {
    best_out_.assign(start.sites.size(), 0);
    best_in_.assign(start.sites.size(), 0);
    for (const LinkSample& sample : samples) add(sample);
    std::vector<double> rates;
    std::vector<std::uint32_t> rtts;
    std::vector<std::uint32_t> losses;
    for (const auto& [pair, shown] : pairs_) {
      if (shown.rate() > 0) rates.push_back(shown.rate());
      if (shown.rtt_us) rtts.push_back(*shown.rtt_us);
      if (shown.loss_ppm) losses.push_back(*shown.loss_ppm);
      best_out_[pair.first] = std::max(best_out_[pair.first], shown.rate());
      best_in_[pair.second] = std::max(best_in_[pair.second], shown.rate());
    }
    rate_ = median(std::move(rates), 0.0);
    rtt_us_ = median<std::uint32_t>(std::move(rtts), 0);
    loss_ppm_ = median<std::uint32_t>(std::move(losses), 0);
  }

  bool knows_rates() const { return rate_ > 0; }
  double out(std::size_t site) const { return end_of(limit_out_[site], best_out_[site]); }
  double in(std::size_t site) const { return end_of(limit_in_[site], best_in_[site]); }

  Link link(SiteId from, SiteId to) const {
    const auto found = pairs_.find({from, to});
    const Shown shown = found == pairs_.end() ? Shown() : found->second;
    const double otherwise = std::min(out(from), in(to));
    double rate = otherwise;
    if (shown.exact > 0)
      rate = std::exp((1 - shown.exact_weight) * std::log(otherwise) +
                      shown.exact_weight * std::log(shown.exact));
    rate = std::clamp(std::max(rate, shown.bound), static_cast<double>(kLeastMeasuredBitsPerSecond),
                      static_cast<double>(kMaxBitsPerSecond));
    return {from, to, static_cast<std::uint64_t>(std::llround(rate)),
            Duration::us(shown.rtt_us.value_or(rtt_us_)),
            std::min(kMaxLossPpm, shown.loss_ppm.value_or(loss_ppm_))};
  }

 private:
  double end_of(double limit, double best) const {
    if (limit > 0 && limit <= static_cast<double>(kMaxBitsPerSecond)) return limit;
    return best > 0 ? best : rate_;
  }

  void add(const LinkSample& sample) {
    const SiteId from = start_.nodes[sample.from].site;
    const SiteId to = start_.nodes[sample.to].site;
    Shown& shown = pairs_[{from, to}];
    const double weight = weight_of(sample.rate_confidence, sample.rate_age_ms);
    const auto rate = static_cast<double>(sample.bits_per_s);
    if (weight > 0 && sample.is_lower_bound) shown.bound = std::max(shown.bound, rate);
    if (weight > 0 && !sample.is_lower_bound && rate > shown.exact) {
      shown.exact = rate;
      shown.exact_weight = weight;
    }
    if (sample.rtt_us > 0 && weight_of(protocol::kFullConfidence, sample.rtt_age_ms) > 0)
      shown.rtt_us = std::min(shown.rtt_us.value_or(sample.rtt_us), sample.rtt_us);
    const double loss_weight = weight_of(sample.loss_confidence, sample.loss_age_ms);
    if (loss_weight > shown.loss_weight) {
      shown.loss_weight = loss_weight;
      shown.loss_ppm = sample.loss_ppm;
    }
  }

  const Network& start_;
  const std::vector<double> limit_out_;  // by site
  const std::vector<double> limit_in_;
  std::map<std::pair<SiteId, SiteId>, Shown> pairs_;
  std::vector<double> best_out_;  // by site; 0: nothing was shown
  std::vector<double> best_in_;
  double rate_ = 0;
  std::uint32_t rtt_us_ = 0;
  std::uint32_t loss_ppm_ = 0;
};

}  // namespace

std::optional<Network> mesh_shown(const Network& start, std::span<const LinkSample> samples) {
  const Ends ends(start, samples);
  if (!ends.knows_rates()) return std::nullopt;
  Network mesh = start;
  const auto sites = static_cast<SiteId>(start.sites.size());
  mesh.links.reserve(std::size_t{sites} * sites);
  for (SiteId from = 0; from < sites; ++from)
    for (SiteId to = 0; to < sites; ++to)
      if (from != to) mesh.links.push_back(ends.link(from, to));
  return mesh;
}

std::optional<Network> accesses_shown(const Network& start, std::span<const LinkSample> samples) {
  const Ends ends(start, samples);
  if (!ends.knows_rates()) return std::nullopt;
  Network network = start;
  for (Node& node : network.nodes) {
    if (node.site == kNoSite) continue;
    node.access.up_bits_per_s = static_cast<std::uint64_t>(ends.out(node.site));
    node.access.down_bits_per_s = static_cast<std::uint64_t>(ends.in(node.site));
  }
  return network;
}

}  // namespace gradplane::plan
