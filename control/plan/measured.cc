// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/measured.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "control/plan/mesh.h"
#include "control/plan/routes.h"

namespace gradplane::plan {
namespace {

using protocol::LinkSample;

/// A sample is compared with another one if it counts at least half as much.
constexpr double kComparable = 0.5;
constexpr double kMillion = 1e6;

double between_rates(double configured, double measured, double weight) {
  return std::exp((1 - weight) * std::log(configured) + weight * std::log(measured));
}

double between(double configured, double measured, double weight) {
  return configured + weight * (measured - configured);
}

/// A round trip counts fully as soon as there is one, because it is the smallest of a minute.
double rtt_weight_of(const LinkSample& sample) {
  return sample.rtt_us == 0 ? 0 : weight_of(protocol::kFullConfidence, sample.rtt_age_ms);
}

/// A sample, and the way that it has taken.
struct Travelled {
  LinkSample sample;
  double rate_weight = 0;
  bool exact = false;                 // the rate is no lower bound
  std::vector<ResourceId> resources;  // on the way, those with a limit
  std::vector<ResourceId> links;      // the links among the resources
};

/// All samples over one link, folded to one value each.
struct Folded {
  double rate_weight = 0;  // of the exact samples
  double rate = 0;
  double bound = 0;
  double bound_weight = 0;
  double rtt_weight = 0;
  double rtt_s = 0;
  double loss_weight = 0;
  double loss_ppm = 0;
};

class Folder {
 public:
  Folder(const Network& network, std::span<const LinkSample> samples)
      : network_(network), routes_(network), folded_(network.links.size()) {
    for (std::size_t l = 0; l < network.links.size(); ++l)
      link_between_[{network.links[l].from, network.links[l].to}] = static_cast<ResourceId>(l);
    for (const LinkSample& sample : samples) add(sample);
    explain();
  }

  Network run() {
    for (const Travelled& t : travelled_)
      if (t.links.size() == 1) fold_one(t, folded_[t.links.front()]);
    Network measured = network_;
    for (std::size_t l = 0; l < folded_.size(); ++l) apply(folded_[l], measured.links[l], l);
    for (const Travelled& t : travelled_)
      if (t.links.size() > 1) raise_all(t, measured);
    for (const Travelled& t : travelled_)
      if (t.links.size() > 1) lower_one(t, measured);
    return measured;
  }

  /// Whether something was measured that the accesses do not explain.
  bool contradicts_accesses() const {
    return std::any_of(travelled_.begin(), travelled_.end(), [](const Travelled& t) {
      const bool far =
          rtt_weight_of(t.sample) > kComparable && Duration::us(t.sample.rtt_us) > kNearRtt;
      const bool lossy = weight_of(t.sample.loss_confidence, t.sample.loss_age_ms) > kComparable &&
                         t.sample.loss_ppm > kLittleLossPpm;
      return far || lossy || (t.exact && t.rate_weight > kComparable);
    });
  }

  const std::vector<Travelled>& travelled() const { return travelled_; }

 private:
  void add(const LinkSample& sample) {
    const auto& nodes = network_.nodes;
    if (sample.from >= nodes.size() || sample.to >= nodes.size()) return;
    const SiteId from = nodes[sample.from].site;
    const SiteId to = nodes[sample.to].site;
    if (from == kNoSite || to == kNoSite || from == to) return;
    Travelled t;
    t.sample = sample;
    t.rate_weight =
        sample.bits_per_s == 0 ? 0 : weight_of(sample.rate_confidence, sample.rate_age_ms);
    t.exact = t.rate_weight > 0 && !sample.is_lower_bound;
    const Way& way = routes_.between_nodes(sample.from, sample.to);
    if (way.open) {
      t.resources = way.resources;
      std::copy_if(way.resources.begin(), way.resources.end(), std::back_inserter(t.links),
                   [this](ResourceId r) { return r < network_.links.size(); });
    } else if (const auto link = link_between_.find({from, to}); link != link_between_.end()) {
      t.resources = t.links = {link->second};  // the link is not dead, although the file says so
    } else {
      return;
    }
    take_accesses_off(t.sample);
    travelled_.push_back(std::move(t));
  }

  /// Subtracts the round trip and the loss of the accesses, so that those of the links remain.
  void take_accesses_off(LinkSample& sample) const {
    std::int64_t rtt_us = sample.rtt_us;
    double kept = 1 - sample.loss_ppm / kMillion;
    for (const api::NodeId node : {sample.from, sample.to}) {
      const Node& end = network_.nodes[node];
      for (const Access* access : {&end.access, &network_.sites[end.site].access}) {
        rtt_us -= access->rtt.count_ns() / Duration::us(1).count_ns();
        kept /= 1 - access->loss_ppm / kMillion;
      }
    }
    if (sample.rtt_us > 0)
      sample.rtt_us = static_cast<std::uint32_t>(std::max<std::int64_t>(rtt_us, 1));
    sample.loss_ppm = static_cast<std::uint32_t>(std::llround(std::max(0.0, 1 - kept) * kMillion));
  }

  /// Turns a sample into a lower bound if its rate is the rate of an access, or a share of what
  /// another resource carries.
  void explain() {
    // If a sample has crossed one link, this link cannot be a resource that it shares.
    const auto may_share = [this](const Travelled& t, ResourceId r) {
      return t.links.size() != 1 || r >= network_.links.size();
    };
    std::map<ResourceId, double> sums;
    for (const Travelled& t : travelled_) {
      if (!t.exact) continue;
      for (const ResourceId r : t.resources)
        if (may_share(t, r)) sums[r] += static_cast<double>(t.sample.bits_per_s);
    }
    for (Travelled& t : travelled_) {
      const auto own = static_cast<double>(t.sample.bits_per_s);
      const auto explains = [&](ResourceId r) {
        const auto rate = static_cast<double>(routes_.bits_per_s(r));
        return may_share(t, r) &&
               (std::abs(sums[r] - rate) <= kSameRate * rate || own >= (1 - kSameRate) * rate);
      };
      t.exact = t.exact && std::none_of(t.resources.begin(), t.resources.end(), explains);
    }
  }

  static void fold_one(const Travelled& t, Folded& folded) {
    const auto rate = static_cast<double>(t.sample.bits_per_s);
    if (t.exact) {
      const bool better = t.rate_weight * kComparable >= folded.rate_weight;
      const bool comparable = t.rate_weight >= folded.rate_weight * kComparable;
      if (better || (comparable && rate > folded.rate)) {
        folded.rate = rate;
        folded.rate_weight = t.rate_weight;
      }
    } else if (t.rate_weight > 0 && rate > folded.bound) {
      folded.bound = rate;
      folded.bound_weight = t.rate_weight;
    }
    const double rtt_weight = rtt_weight_of(t.sample);
    const double rtt_s = Duration::us(t.sample.rtt_us).to_seconds();
    if (rtt_weight > 0 && (folded.rtt_weight == 0 || rtt_s < folded.rtt_s)) {
      folded.rtt_s = rtt_s;
      folded.rtt_weight = rtt_weight;
    }
    const double loss_weight = weight_of(t.sample.loss_confidence, t.sample.loss_age_ms);
    if (loss_weight > folded.loss_weight) {
      folded.loss_ppm = t.sample.loss_ppm;
      folded.loss_weight = loss_weight;
    }
  }

  void apply(const Folded& folded, Link& link, std::size_t index) const {
    double rate = static_cast<double>(link.bits_per_s);
    if (folded.rate_weight > 0)
      rate = rate == 0 ? folded.rate : between_rates(rate, folded.rate, folded.rate_weight);
    set_rate(link, rate, index);
    raise(link, folded.bound, folded.bound_weight, index);
    if (folded.rtt_weight > 0) {
      const double rtt_s = between(link.rtt.to_seconds(), folded.rtt_s, folded.rtt_weight);
      link.rtt = std::min(kMaxRtt, Duration::us(std::llround(rtt_s * kMillion)));
    }
    if (folded.loss_weight > 0) {
      const double loss = between(link.loss_ppm, folded.loss_ppm, folded.loss_weight);
      link.loss_ppm = std::min(kMaxLossPpm, static_cast<std::uint32_t>(std::llround(loss)));
    }
  }

  void raise(Link& link, double bound, double weight, std::size_t index) const {
    const auto rate = static_cast<double>(link.bits_per_s);
    if (weight == 0 || bound <= rate) return;
    set_rate(link, rate == 0 ? bound : between_rates(rate, bound, weight), index);
  }

  void set_rate(Link& link, double rate, std::size_t index) const {
    const auto configured = static_cast<double>(network_.links[index].bits_per_s);
    if (rate == configured) return;
    const double most = configured == 0 ? static_cast<double>(kMaxBitsPerSecond)
                                        : std::min(static_cast<double>(kMaxBitsPerSecond),
                                                   configured * kMostOverConfigured);
    const double least = std::min(most, static_cast<double>(kLeastMeasuredBitsPerSecond));
    link.bits_per_s = static_cast<std::uint64_t>(std::llround(std::clamp(rate, least, most)));
  }

  void raise_all(const Travelled& t, Network& measured) const {
    for (const ResourceId l : t.links)
      raise(measured.links[l], static_cast<double>(t.sample.bits_per_s), t.rate_weight, l);
  }

  void lower_one(const Travelled& t, Network& measured) const {
    const auto rate = static_cast<double>(t.sample.bits_per_s);
    const auto rate_of = [&measured](ResourceId l) {
      return static_cast<double>(measured.links[l].bits_per_s);
    };
    const bool explained = !t.exact || std::any_of(t.links.begin(), t.links.end(), [&](auto l) {
      return rate >= (1 - kSameRate) * rate_of(l);
    });
    if (explained) return;
    const auto doubtful =
        *std::min_element(t.links.begin(), t.links.end(), [&](ResourceId a, ResourceId b) {
          const double one = folded_[a].rate_weight;
          const double other = folded_[b].rate_weight;
          return one != other ? one < other : rate_of(a) < rate_of(b);
        });
    if (folded_[doubtful].rate_weight >= t.rate_weight) return;
    set_rate(measured.links[doubtful], between_rates(rate_of(doubtful), rate, t.rate_weight),
             doubtful);
  }

  const Network& network_;
  Routes routes_;
  std::map<std::pair<SiteId, SiteId>, ResourceId> link_between_;
  std::vector<Travelled> travelled_;
  std::vector<Folded> folded_;  // by link
};

/// The samples between two sites, where rates that the accesses explain have become lower bounds.
std::vector<LinkSample> with_bounds(const Folder& folder) {
  std::vector<LinkSample> samples;
  for (const Travelled& t : folder.travelled()) {
    LinkSample& sample = samples.emplace_back(t.sample);
    sample.is_lower_bound = !t.exact;
  }
  return samples;
}

/// The samples of which some value is not forgotten yet.
std::vector<LinkSample> remembered(std::span<const LinkSample> samples) {
  std::vector<LinkSample> out;
  for (const LinkSample& sample : samples) {
    const std::uint32_t age_ms =
        std::min({sample.rate_age_ms, sample.rtt_age_ms, sample.loss_age_ms});
    if (Duration::ms(age_ms) < kMeasuredForgottenAfter) out.push_back(sample);
  }
  return out;
}

Network network_of_names(const std::vector<std::string>& node_names) {
  Network network = network_of_accesses(std::vector<Access>(node_names.size()));
  for (std::size_t n = 0; n < node_names.size(); ++n)
    network.sites[n].name = network.nodes[n].name = node_names[n];
  return network;
}

}  // namespace

double weight_of(std::uint8_t confidence_percent, std::uint32_t age_ms) {
  const double confidence = static_cast<double>(confidence_percent) / protocol::kFullConfidence;
  const double age_s = static_cast<double>(age_ms) / 1000;
  const double span_s = (kMeasuredForgottenAfter - kMeasuredFreshFor).to_seconds();
  const double fresh = (kMeasuredForgottenAfter.to_seconds() - age_s) / span_s;
  return std::min(confidence, 1.0) * std::clamp(fresh, 0.0, 1.0);
}

std::optional<Network> measured_network(const std::optional<Network>& configured,
                                        const std::vector<std::string>& node_names,
                                        std::span<const LinkSample> all_samples) {
  const std::vector<LinkSample> samples = remembered(all_samples);
  if (configured && !configured->links.empty()) return Folder(*configured, samples).run();
  const Network start = configured ? *configured : network_of_names(node_names);
  if (start.sites.empty()) return configured;
  Folder folder(start, samples);
  const std::vector<LinkSample> bounded = with_bounds(folder);
  if (start.sites.size() > kMaxMeshSites)
    return configured ? configured : accesses_shown(start, bounded);
  if (configured && !folder.contradicts_accesses()) return configured;
  std::optional<Network> mesh = mesh_shown(start, bounded);
  return mesh ? mesh : configured;
}

}  // namespace gradplane::plan
