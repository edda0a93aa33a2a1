// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/capacities.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>

#include "control/plan/measured.h"
#include "dataplane/model/limits.h"

namespace gradplane::plan {
namespace {

using protocol::LinkSample;

constexpr std::size_t kNoMember = ~std::size_t{0};
/// If the pairs of an access have less than this of the rates that the other ends of these pairs
/// have with others, the access holds its pairs back.
constexpr double kHeldBack = 0.88;
/// An access that holds no pair back is taken to be so many times as fast as its pairs show. If it
/// is not, the next exchanges show that, at little cost.
constexpr double kDoubt = 1.5;

enum class Direction : std::uint8_t { kUp, kDown };

/// The rate that a receiver has measured of a pair.
struct Pair {
  double bits_per_s = 0;
  double weight = 0;  // 0: nothing
  bool is_exact = false;
};

/// The traffic of all pairs of an access at the same time.
struct Through {
  std::size_t pairs = 0;
  std::size_t known = 0;  // pairs with a sample
  double bits_per_s = 0;  // sum over the pairs
  double exact = 0;       // the part of the sum whose samples are no lower bounds
  double weight = 0;      // 0: nothing is known
  double best = 0;        // the rate of the fastest pair, in bit/s
  double best_weight = 0;
  double held = 0;  // rate of its pairs over the rate of other pairs at their other ends

  bool is_full() const { return exact * 2 >= bits_per_s; }
  bool may_be_faster() const { return held > kHeldBack; }
};

std::uint64_t rate_in(const Access& access, Direction direction) {
  return direction == Direction::kUp ? access.up_bits_per_s : access.down_bits_per_s;
}

/// The rate that the file has for a node's access; nothing if it has none.
std::optional<double> configured(const PlanRequest& request, api::NodeId node,
                                 Direction direction) {
  std::uint64_t least = kUnlimited;
  for (const LinkRate& rate : request.link_rates)
    if (rate.node == node && rate.bits_per_s > 0) least = std::min(least, rate.bits_per_s);
  const bool is_described = request.network && request.network_is_of_file;
  if (is_described && node < request.network->nodes.size()) {
    const Node& end = request.network->nodes[node];
    least = std::min(least, rate_in(end.access, direction));
    if (end.site != kNoSite)
      least = std::min(least, rate_in(request.network->sites[end.site].access, direction));
  }
  if (least == 0 || least > kMaxBitsPerSecond) return std::nullopt;
  return static_cast<double>(least);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool are_same(double a, double b) {
  return std::abs(a - b) <= kSameRate * std::max(a, b);
}

/// The pairs of one selection, and their sums by member.
struct AtOnce {
  struct Ends {
    std::size_t from = 0;
    std::size_t to = 0;
  };
  std::vector<Ends> pairs;
  std::vector<Through> up;    // by member
  std::vector<Through> down;  // by member

  const std::vector<Through>& of(Direction direction) const {
    return direction == Direction::kUp ? up : down;
  }
};

class Measured {
 public:
  Measured(const std::vector<api::Member>& members, const PlanRequest& request)
      : members_(members.size()), pairs_(members_ * members_) {
    place_.fill(kNoMember);
    for (std::size_t m = 0; m < members_; ++m) place_[members[m].node] = m;
    const bool in_selections = has_selections(request);
    for (const LinkSample& sample : request.samples) {
      const bool is_old = in_selections && Duration::ms(sample.rate_age_ms) > request.sampled_for;
      // Samples of the plan in force do not age here: a cycle of selections may take long, and
      // measures each pair only once.
      if (!is_old) add(sample, in_selections ? 0 : sample.rate_age_ms);
    }
    if (in_selections)
      add_selections(*request.sampled_under);
    else
      add_all_at_once();
    for (AtOnce& at_once : at_once_) add_up(at_once);
  }

  static bool has_selections(const PlanRequest& request) {
    return request.sampled_under && !request.sampled_under->selections.empty();
  }

  /// The share of the pairs in the selections that was measured.
  double share() const {
    std::size_t all = 0;
    std::size_t known = 0;
    for (const AtOnce& at_once : at_once_) {
      all += at_once.pairs.size();
      for (const Through& down : at_once.down) known += down.known;
    }
    return all == 0 ? 0 : static_cast<double>(known) / static_cast<double>(all);
  }

  /// The traffic through an access, as a mean over the selections.
  Through through(std::size_t member, Direction direction) const {
    Through mean = mean_of(member, direction);
    if (mean.weight == 0) return mean;
    double own = 0;
    double others = 0;
    for (const AtOnce& at_once : at_once_) {
      for (const AtOnce::Ends& ends : at_once.pairs) {
        const bool is_up = direction == Direction::kUp;
        if ((is_up ? ends.from : ends.to) != member) continue;
        const Pair& pair = pair_of(ends);
        if (pair.weight == 0) continue;
        own += pair.bits_per_s;
        others += beside(at_once, is_up ? ends.to : ends.from,
                         is_up ? Direction::kDown : Direction::kUp, pair.bits_per_s);
      }
    }
    mean.held = others > 0 ? own / others : 0;
    return mean;
  }

 private:
  const Pair& pair_of(const AtOnce::Ends& ends) const {
    return pairs_[ends.from * members_ + ends.to];
  }

  void add(const LinkSample& sample, std::uint32_t age_ms) {
    if (sample.from >= kMaxNodes || sample.to >= kMaxNodes || sample.bits_per_s == 0) return;
    const std::size_t from = place_[sample.from];
    const std::size_t to = place_[sample.to];
    if (from == kNoMember || to == kNoMember || from == to) return;
    pairs_[from * members_ + to] = {static_cast<double>(sample.bits_per_s),
                                    weight_of(sample.rate_confidence, age_ms),
                                    !sample.is_lower_bound};
  }

  void add_all_at_once() {
    AtOnce& at_once = at_once_.emplace_back();
    for (std::size_t from = 0; from < members_; ++from)
      for (std::size_t to = 0; to < members_; ++to)
        if (from != to) at_once.pairs.push_back({from, to});
  }

  /// Adds the pairs of a plan's selections, without members that the request no longer has.
  void add_selections(const api::Plan& plan) {
    for (const api::Selection& selection : plan.selections) {
      AtOnce& at_once = at_once_.emplace_back();
      for (std::size_t m = 0; m < selection.receivers.size(); ++m) {
        const std::size_t from = place_[plan.members[m].node];
        for (const api::NodeId node : selection.receivers[m]) {
          const std::size_t to = place_[node];
          if (from != kNoMember && to != kNoMember) at_once.pairs.push_back({from, to});
        }
      }
    }
  }

  void add_up(AtOnce& at_once) {
    at_once.up.resize(members_);
    at_once.down.resize(members_);
    for (const AtOnce::Ends& ends : at_once.pairs) {
      add_pair(at_once.up[ends.from], pair_of(ends));
      add_pair(at_once.down[ends.to], pair_of(ends));
    }
    for (std::vector<Through>* ends : {&at_once.up, &at_once.down})
      for (Through& sum : *ends) complete(sum);
  }

  static void add_pair(Through& sum, const Pair& pair) {
    ++sum.pairs;
    if (pair.weight == 0) return;
    ++sum.known;
    sum.bits_per_s += pair.bits_per_s;
    if (pair.is_exact) sum.exact += pair.bits_per_s;
    sum.weight += pair.weight;
    if (pair.bits_per_s <= sum.best) return;
    sum.best = pair.bits_per_s;
    sum.best_weight = pair.weight;
  }

  /// Completes a sum: pairs without a sample count as the mean of the others.
  static void complete(Through& sum) {
    sum.weight = std::min(sum.weight, 1.0);
    if (sum.known * 2 < sum.pairs) sum.weight = 0;
    if (sum.weight == 0) return;
    const double scale = static_cast<double>(sum.pairs) / static_cast<double>(sum.known);
    sum.bits_per_s *= scale;
    sum.exact *= scale;
  }

  Through mean_of(std::size_t member, Direction direction) const {
    Through mean;
    for (const AtOnce& at_once : at_once_) {
      const Through& sum = at_once.of(direction)[member];
      if (sum.weight == 0) continue;
      const auto pairs = static_cast<double>(sum.pairs);
      mean.pairs += sum.pairs;
      mean.bits_per_s += sum.bits_per_s * pairs;
      mean.exact += sum.exact * pairs;
      mean.weight = std::max(mean.weight, sum.weight);
      if (sum.best <= mean.best) continue;
      mean.best = sum.best;
      mean.best_weight = sum.best_weight;
    }
    if (mean.pairs == 0) return mean;
    mean.bits_per_s /= static_cast<double>(mean.pairs);
    mean.exact /= static_cast<double>(mean.pairs);
    return mean;
  }

  /// The mean rate of the other pairs of an access, in bit/s. If there are none, the mean of the
  /// access over the selections.
  double beside(const AtOnce& at_once, std::size_t member, Direction direction, double own) const {
    const Through& sum = at_once.of(direction)[member];
    if (sum.pairs < 2) return std::max(own, mean_of(member, direction).bits_per_s);
    return (sum.bits_per_s - own) / static_cast<double>(sum.pairs - 1);
  }

  std::size_t members_;
  std::array<std::size_t, kMaxNodes> place_{};
  std::vector<Pair> pairs_;  // by sender and receiver
  std::vector<AtOnce> at_once_;
};

double between(double from, double to, double weight) {
  return std::exp((1 - weight) * std::log(from) + weight * std::log(to));
}

/// The rate of an access of which the file says `configured`.
double rate_of_configured(double configured, const Through& through) {
  if (through.weight == 0) return configured;
  const double most =
      std::min(configured * kMostOverConfigured, static_cast<double>(kMaxBitsPerSecond));
  const double doubt = through.may_be_faster() ? kDoubt : 1.0;
  if (through.best * (1 - kSameRate) > configured)
    return between(configured, std::min(through.best * doubt, most), through.best_weight);
  const double rate = through.bits_per_s * doubt;
  const bool confirms = rate >= (1 - kSameRate) * configured;
  if (confirms || !through.is_full()) return configured;
  return between(configured, rate, through.weight);
}

/// The rate of an access of which the file says nothing. `usual` is the rate of an access of which
/// nothing is known.
double rate_of_unknown(double usual, const Through& through) {
  if (through.weight == 0 || are_same(usual, through.bits_per_s)) return usual;
  if (through.bits_per_s > usual) return between(usual, through.bits_per_s, through.weight);
  const double rate = through.bits_per_s * (through.may_be_faster() ? kDoubt : 1.0);
  if (rate >= (1 - kSameRate) * usual || !through.is_full()) return usual;
  return between(usual, rate, through.weight);
}

/// The rates of accesses in one direction, by member, in bit/s.
struct Rates {
  std::vector<double> rates;
  bool is_known = false;
};

/// The rate that is taken for an access of which neither the file nor a sample says anything.
double usual_of(const std::vector<api::Member>& members, const PlanRequest& request,
                const std::vector<std::optional<double>>& files,
                const std::vector<Through>& throughs) {
  std::vector<double> shown;
  double slowest = static_cast<double>(kMaxBitsPerSecond);
  bool is_configured = !request.link_rates.empty();
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (throughs[m].weight > 0) shown.push_back(throughs[m].bits_per_s);
    slowest = std::min(slowest, static_cast<double>(rate_of(request, members[m].node)));
    if (files[m]) slowest = std::min(slowest, *files[m]);
    is_configured = is_configured || files[m].has_value();
  }
  return is_configured || shown.empty() ? slowest : median(std::move(shown));
}

Rates rates_of(const std::vector<api::Member>& members, const PlanRequest& request,
               const Measured& measured, Direction direction) {
  std::vector<std::optional<double>> files;
  std::vector<Through> throughs;
  Rates out;
  for (std::size_t m = 0; m < members.size(); ++m) {
    files.push_back(configured(request, members[m].node, direction));
    throughs.push_back(measured.through(m, direction));
    out.is_known = out.is_known || files[m] || throughs[m].weight > 0;
  }
  const double usual = usual_of(members, request, files, throughs);
  for (std::size_t m = 0; m < members.size(); ++m)
    out.rates.push_back(files[m] ? rate_of_configured(*files[m], throughs[m])
                                 : rate_of_unknown(usual, throughs[m]));
  return out;
}

std::uint64_t in_bounds(double rate) {
  return static_cast<std::uint64_t>(
      std::llround(std::clamp(rate, static_cast<double>(kLeastMeasuredBitsPerSecond),
                              static_cast<double>(kMaxBitsPerSecond))));
}

}  // namespace

Capacities capacities_of(const std::vector<api::Member>& members, const PlanRequest& request) {
  const Measured measured(members, request);
  const Rates up = rates_of(members, request, measured, Direction::kUp);
  const Rates down = rates_of(members, request, measured, Direction::kDown);
  Capacities capacities;
  for (std::size_t m = 0; m < members.size(); ++m)
    capacities.members.push_back({in_bounds(up.rates[m]), in_bounds(down.rates[m])});
  capacities.is_known = up.is_known || down.is_known;
  capacities.is_measured = Measured::has_selections(request) && measured.share() >= kMostMeasured;
  return capacities;
}

}  // namespace gradplane::plan
