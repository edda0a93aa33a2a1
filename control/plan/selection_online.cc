// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/selection_online.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "control/plan/selection_rates.h"
#include "dataplane/base/assert.h"

namespace gradplane::plan {
namespace {

/// The factor that rounding errors may add to a link that is full.
constexpr double kRounding = 1 + 1e-9;

double bits(std::uint64_t bytes) {
  return 8 * static_cast<double>(bytes);
}

std::size_t least_receivers(const SelectionRequest& request) {
  return std::min<std::size_t>(request.receivers, request.ranks.size() - 1);
}

/// The receivers of all multicasts, under construction. It begins with those that must stay: those
/// that freshness demands, and those that have the update or most of it.
class OnlineDraft {
 public:
  OnlineDraft(const OnlineRequest& request, std::span<const Multicast> multicasts,
              const Meetings& meetings)
      : request_(request),
        multicasts_(multicasts),
        meetings_(meetings),
        chosen_(multicasts.size(), Bitmap(ranks())),
        up_bits_(multicasts.size()),
        down_bits_(ranks()),
        seconds_(multicasts.size()) {
    GP_ASSERT(meetings.ranks() == ranks());
    for (std::size_t m = 0; m < multicasts.size(); ++m) {
      chosen_[m].reset(ranks());
      for_each_open(m, [&](std::size_t to) {
        if (is_demanded(m, to) || !may_drop(m, to)) add(m, to);
      });
    }
  }

  /// Adds the receivers with the shortest queues to each multicast until it has its least number.
  /// Multicasts whose senders are blocked for longest choose last.
  void fill_least() {
    std::vector<std::size_t> order(multicasts_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return multicasts_[a].blocked_s < multicasts_[b].blocked_s;
    });
    for (const std::size_t m : order) {
      const std::size_t has = chosen_[m].count();
      if (has >= least_receivers(request_.selection)) continue;
      std::vector<std::pair<double, std::size_t>> open;
      for_each_open(m, [&](std::size_t to) { open.emplace_back(queue_s(m, to), to); });
      const std::size_t wanted = std::min(least_receivers(request_.selection) - has, open.size());
      std::partial_sort(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(wanted),
                        open.end());
      for (std::size_t n = 0; n < wanted; ++n) add(m, open[n].second);
    }
  }

  /// Adds the other pairs for which `fits` is true. Pairs that have not met for longest come first.
  template <typename Fits>
  void fill_rest(const Fits& fits) {
    struct Pair {
      std::uint32_t rounds_apart;
      std::size_t multicast, to;
    };
    std::vector<Pair> rest;
    for (std::size_t m = 0; m < multicasts_.size(); ++m) {
      for_each_open(m, [&](std::size_t to) {
        rest.push_back({meetings_.rounds_apart(multicasts_[m].from, to), m, to});
      });
    }
    std::stable_sort(rest.begin(), rest.end(),
                     [](const Pair& a, const Pair& b) { return a.rounds_apart > b.rounds_apart; });
    for (const Pair& pair : rest) {
      if (fits(pair.multicast, pair.to)) add(pair.multicast, pair.to);
    }
  }

  void add(std::size_t m, std::size_t to) {
    chosen_[m].set(to);
    up_bits_[m] = up_bits_with(m, to);
    down_bits_[to] += remaining_bits(m, to);
  }

  std::size_t ranks() const { return request_.selection.ranks.size(); }
  std::span<const Bitmap> chosen() const { return chosen_; }
  double& seconds(std::size_t m) { return seconds_[m]; }
  double remaining_bits(std::size_t m, std::size_t to) const {
    return bits(multicasts_[m].remaining_bytes[to]);
  }
  double up_bits_with(std::size_t m, std::size_t to) const {
    const double more = remaining_bits(m, to);
    const bool is_once = request_.selection.replication == Replication::kNetwork;
    return is_once ? std::max(up_bits_[m], more) : up_bits_[m] + more;
  }
  /// The time in seconds that a link takes for all that is still to be sent over it.
  double up_s(std::size_t m) const { return up_bits_[m] / up_bits_per_s(m); }
  double up_s_with(std::size_t m, std::size_t to) const {
    return up_bits_with(m, to) / up_bits_per_s(m);
  }
  double down_s(std::size_t to) const { return down_bits_[to] / down_bits_per_s(to); }
  double down_bits_per_s(std::size_t to) const {
    return static_cast<double>(request_.selection.ranks[to].down_bits_per_s);
  }
  /// The time in seconds until the multicast has reached the receiver, if it is the last in the
  /// queue.
  double queue_s(std::size_t m, std::size_t to) const {
    return (down_bits_[to] + remaining_bits(m, to)) / down_bits_per_s(to);
  }

  std::vector<OnlineSelection> take() {
    std::vector<OnlineSelection> made(multicasts_.size());
    for (std::size_t m = 0; m < made.size(); ++m) {
      made[m] = {std::move(chosen_[m]), seconds_[m], Urgency::kNormal};
      if (multicasts_[m].blocked_s > 0) made[m].urgency = Urgency::kAhead;
      if (multicasts_[m].is_awaited) made[m].urgency = Urgency::kAwaited;
    }
    return made;
  }

 private:
  bool is_demanded(std::size_t m, std::size_t to) const {
    return meetings_.rounds_apart(multicasts_[m].from, to) >= request_.selection.freshness;
  }
  bool may_drop(std::size_t m, std::size_t to) const {
    const std::uint64_t remaining = multicasts_[m].remaining_bytes[to];
    const double update_bytes = static_cast<double>(request_.selection.update_bytes);
    return remaining > 0 &&
           static_cast<double>(remaining) >= request_.droppable_share * update_bytes;
  }
  double up_bits_per_s(std::size_t m) const {
    return static_cast<double>(request_.selection.ranks[multicasts_[m].from].up_bits_per_s);
  }
  /// Calls each(to) for all ranks that may be receivers and are none yet.
  template <typename Each>
  void for_each_open(std::size_t m, const Each& each) const {
    const Bitmap& may = multicasts_[m].receivers;
    for (std::size_t to = may.next_set(0); to != Bitmap::kNone; to = may.next_set(to + 1)) {
      if (!chosen_[m].test(to)) each(to);
    }
  }

  const OnlineRequest& request_;
  std::span<const Multicast> multicasts_;
  const Meetings& meetings_;
  std::vector<Bitmap> chosen_;     // by multicast
  std::vector<double> up_bits_;    // by multicast
  std::vector<double> down_bits_;  // by receiver
  std::vector<double> seconds_;    // by multicast
};

/// The rates that multicasts need on the links to be done in their times, each at a constant rate.
/// If the sums fit the links, all times can be kept together, even where a multicast is as slow as
/// its slowest receiver.
class Reservations {
 public:
  explicit Reservations(OnlineDraft& draft) : draft_(draft), down_bits_per_s_(draft.ranks()) {
    for (std::size_t m = 0; m < draft.chosen().size(); ++m) {
      const Bitmap& chosen = draft.chosen()[m];
      for (std::size_t to = chosen.next_set(0); to != Bitmap::kNone; to = chosen.next_set(to + 1))
        down_bits_per_s_[to] += rate(m, to);
    }
  }

  bool reserve(std::size_t m, std::size_t to) {
    const double down = down_bits_per_s_[to] + rate(m, to);
    if (down > draft_.down_bits_per_s(to) * kRounding) return false;
    if (draft_.up_s_with(m, to) > draft_.seconds(m) * kRounding) return false;
    down_bits_per_s_[to] = down;
    return true;
  }

 private:
  double rate(std::size_t m, std::size_t to) const {
    const double remaining = draft_.remaining_bits(m, to);
    return remaining > 0 ? remaining / draft_.seconds(m) : 0;
  }

  OnlineDraft& draft_;
  std::vector<double> down_bits_per_s_;
};

}  // namespace

std::vector<OnlineSelection> select_online(const OnlineRequest& request,
                                           std::span<const Multicast> multicasts,
                                           const Meetings& meetings) {
  GP_ASSERT(request.stretch >= 1);
  OnlineDraft draft(request, multicasts, meetings);
  draft.fill_least();
  const std::vector<double> fair = fair_seconds(request.selection, multicasts, draft.chosen());
  for (std::size_t m = 0; m < multicasts.size(); ++m)
    draft.seconds(m) = std::max(request.stretch * fair[m], multicasts[m].blocked_s);
  Reservations reservations(draft);
  draft.fill_rest([&](std::size_t m, std::size_t to) { return reservations.reserve(m, to); });
  return draft.take();
}

std::vector<OnlineSelection> select_online_as_published(const OnlineRequest& request,
                                                        std::span<const Multicast> multicasts,
                                                        const Meetings& meetings) {
  OnlineDraft draft(request, multicasts, meetings);
  draft.fill_least();
  for (std::size_t m = 0; m < multicasts.size(); ++m) {
    double& seconds = draft.seconds(m);
    seconds = std::max(multicasts[m].blocked_s, draft.up_s(m));
    const Bitmap& chosen = draft.chosen()[m];
    for (std::size_t to = chosen.next_set(0); to != Bitmap::kNone; to = chosen.next_set(to + 1)) {
      if (draft.remaining_bits(m, to) > 0) seconds = std::max(seconds, draft.down_s(to));
    }
  }
  draft.fill_rest([&](std::size_t m, std::size_t to) {
    return draft.up_s_with(m, to) <= draft.seconds(m) * kRounding &&
           draft.queue_s(m, to) <= draft.seconds(m) * kRounding;
  });
  return draft.take();
}

Bitmap select_online_at_random(const SelectionRequest& request, const Multicast& multicast,
                               const Meetings& meetings,
                               const std::function<std::uint64_t()>& draw) {
  const std::size_t ranks = request.ranks.size();
  Bitmap chosen(ranks);
  chosen.reset(ranks);
  std::vector<std::size_t> others;
  const Bitmap& may = multicast.receivers;
  for (std::size_t to = may.next_set(0); to != Bitmap::kNone; to = may.next_set(to + 1)) {
    if (meetings.rounds_apart(multicast.from, to) >= request.freshness) {
      chosen.set(to);
    } else {
      others.push_back(to);
    }
  }
  std::size_t has = chosen.count();
  for (; has < least_receivers(request) && !others.empty(); ++has) {
    std::swap(others[draw() % others.size()], others.back());
    chosen.set(others.back());
    others.pop_back();
  }
  return chosen;
}

}  // namespace gradplane::plan
