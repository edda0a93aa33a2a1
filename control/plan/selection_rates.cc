// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/selection_rates.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace gradplane::plan {
namespace {

/// Computes max-min fair rates by progressive filling: the link with the least rate per flow fixes
/// the rates of its flows, then the next link with what is left. A flow is a multicast where the
/// network replicates, and a pair otherwise.
class FairShares {
 public:
  FairShares(const SelectionRequest& request, std::span<const Multicast> multicasts,
             std::span<const Bitmap> receivers)
      : request_(request),
        multicasts_(multicasts),
        open_(receivers.begin(), receivers.end()),
        seconds_(multicasts.size()),
        ups_(multicasts.size()),
        downs_(request.ranks.size()) {
    for (std::size_t to = 0; to < downs_.size(); ++to)
      downs_[to].free_bits_per_s = static_cast<double>(request.ranks[to].down_bits_per_s);
    for (std::size_t m = 0; m < ups_.size(); ++m) {
      const RankCapacity& rank = request.ranks[multicasts[m].from];
      ups_[m].free_bits_per_s = static_cast<double>(rank.up_bits_per_s);
      for_each_open(m, [&](std::size_t to) {
        if (multicasts[m].remaining_bytes[to] == 0) return open_[m].clear(to);
        ++downs_[to].flows;
        ups_[m].flows = replicates() ? 1 : ups_[m].flows + 1;
      });
    }
  }

  std::vector<double> seconds() {
    while (true) {
      const std::size_t up = tightest(ups_);
      const std::size_t down = tightest(downs_);
      const double up_share = share(ups_, up);
      const double down_share = share(downs_, down);
      if (up == ups_.size() && down == downs_.size()) return seconds_;
      if (up_share <= down_share) {
        for_each_open(up, [&](std::size_t to) { fix(up, to, up_share); });
      } else {
        for (std::size_t m = 0; m < open_.size(); ++m) {
          if (open_[m].test(down)) fix(m, down, down_share);
        }
      }
    }
  }

 private:
  struct Link {
    double free_bits_per_s = 0;
    std::size_t flows = 0;  // those without a rate
  };

  bool replicates() const { return request_.replication == Replication::kNetwork; }

  template <typename Each>
  void for_each_open(std::size_t m, const Each& each) {
    for (std::size_t to = open_[m].next_set(0); to != Bitmap::kNone; to = open_[m].next_set(to + 1))
      each(to);
  }

  static double share(const std::vector<Link>& links, std::size_t at) {
    if (at == links.size()) return std::numeric_limits<double>::infinity();
    return std::max(links[at].free_bits_per_s, 0.0) / static_cast<double>(links[at].flows);
  }
  static std::size_t tightest(const std::vector<Link>& links) {
    std::size_t best = links.size();
    for (std::size_t at = 0; at < links.size(); ++at) {
      if (links[at].flows > 0 && share(links, at) < share(links, best)) best = at;
    }
    return best;
  }

  /// Fixes the rate of the flow to `to`, or of the whole multicast where the network replicates.
  void fix(std::size_t m, std::size_t to, double bits_per_s) {
    const auto fix_pair = [&](std::size_t receiver) {
      const auto bits = 8 * static_cast<double>(multicasts_[m].remaining_bytes[receiver]);
      seconds_[m] = std::max(seconds_[m], bits / bits_per_s);
      open_[m].clear(receiver);
      use(downs_[receiver], bits_per_s);
    };
    if (replicates()) {
      for_each_open(m, fix_pair);
    } else {
      fix_pair(to);
    }
    use(ups_[m], bits_per_s);
  }
  static void use(Link& link, double bits_per_s) {
    link.free_bits_per_s -= bits_per_s;
    --link.flows;
  }

  const SelectionRequest& request_;
  std::span<const Multicast> multicasts_;
  std::vector<Bitmap> open_;  // by multicast: the receivers without a rate
  std::vector<double> seconds_;
  std::vector<Link> ups_;    // by multicast, as a rank sends one
  std::vector<Link> downs_;  // by rank
};

}  // namespace

std::vector<double> fair_seconds(const SelectionRequest& request,
                                 std::span<const Multicast> multicasts,
                                 std::span<const Bitmap> receivers) {
  return FairShares(request, multicasts, receivers).seconds();
}

}  // namespace gradplane::plan
