// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The best selection as a flow: a unit goes from a sender to a receiver for each pair, and the time
// of the round says how many units each link bears.
#include <algorithm>
#include <optional>
#include <queue>

#include "control/plan/selection.h"
#include "control/plan/selection_draft.h"

namespace gradplane::plan {
namespace {

/// Adds pairs to a draft, as many as the links can carry within a time.
class Flow {
 public:
  Flow(SelectionDraft& draft, const Meetings& meetings, double seconds)
      : draft_(draft),
        meetings_(meetings),
        sends_(draft.ranks()),
        receives_(draft.ranks()),
        is_dead_(draft.ranks()) {
    bear(seconds);
  }

  /// Adds pairs until each update has its least number of receivers. False if the links cannot
  /// carry them.
  bool fill_least() {
    std::size_t sent = 0;
    std::size_t received = 0;
    for (std::size_t rank = 0; rank < draft_.ranks(); ++rank) {
      const std::size_t sends = std::max(draft_.sent(rank), draft_.least());
      if (sends > sends_[rank] || draft_.received(rank) > receives_[rank]) return false;
      sent += sends;
      received += receives_[rank];
    }
    if (sent > received) return false;
    for (std::size_t from = 0; from < draft_.ranks(); ++from) fill(from, draft_.least());
    for (std::size_t from = 0; from < draft_.ranks(); ++from) {
      while (draft_.sent(from) < draft_.least()) {
        if (!augment(from)) return false;
      }
    }
    return true;
  }

  /// Adds as many pairs as the links can carry within `seconds`, one for each update in turn. An
  /// update may get another receiver for one that it has, but never fewer than before.
  void fill_rest(double seconds) {
    bear(seconds);
    for (bool is_any = true; is_any;) {
      is_any = false;
      for (std::size_t from = 0; from < draft_.ranks(); ++from) {
        const std::size_t before = draft_.sent(from);
        if (before < sends_[from]) fill(from, before + 1);
        is_any = is_any || draft_.sent(from) > before;
      }
    }
    for (std::size_t from = 0; from < draft_.ranks(); ++from) {
      while (draft_.sent(from) < sends_[from] && augment(from)) {
      }
    }
  }

 private:
  void bear(double seconds) {
    for (std::size_t rank = 0; rank < draft_.ranks(); ++rank) {
      sends_[rank] = most([&](std::size_t n) { return draft_.up_s_of(rank, n) <= seconds; });
      receives_[rank] = most([&](std::size_t n) { return draft_.down_s_of(rank, n) <= seconds; });
    }
  }

  /// The largest number of updates for which `bears` is true. `bears` is monotonic.
  template <typename Bears>
  std::size_t most(const Bears& bears) const {
    std::size_t some = 0;
    std::size_t too_many = std::max<std::size_t>(draft_.ranks(), 1);
    while (too_many - some > 1) {
      const std::size_t middle = some + (too_many - some) / 2;
      (bears(middle) ? some : too_many) = middle;
    }
    return some;
  }

  bool has_room(std::size_t to) const { return draft_.received(to) < receives_[to]; }

  /// Adds pairs with receivers that have room, which needs no search. Those that have not met for
  /// longest come first, and then receivers with the most room.
  void fill(std::size_t from, std::size_t sends) {
    if (draft_.sent(from) >= sends) return;
    std::vector<std::size_t> open;
    for (std::size_t to = 0; to < draft_.ranks(); ++to) {
      if (draft_.may_add(from, to) && has_room(to)) open.push_back(to);
    }
    const auto goes_before = [&](std::size_t a, std::size_t b) {
      const std::uint32_t apart_a = meetings_.rounds_apart(from, a);
      const std::uint32_t apart_b = meetings_.rounds_apart(from, b);
      if (apart_a != apart_b) return apart_a > apart_b;
      const std::size_t room_a = receives_[a] - draft_.received(a);
      const std::size_t room_b = receives_[b] - draft_.received(b);
      return room_a != room_b ? room_a > room_b : a < b;
    };
    const std::size_t wanted = std::min(sends - draft_.sent(from), open.size());
    std::partial_sort(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(wanted), open.end(),
                      goes_before);
    for (std::size_t n = 0; n < wanted; ++n) draft_.add(from, open[n]);
  }

  /// Finds one more receiver for `from` by a shortest augmenting path: where a receiver has no
  /// room, another sender gives it up and takes a further one instead. Returns whether there is
  /// such a path. If a sender has none now, it has none later.
  bool augment(std::size_t from) {
    constexpr std::size_t kNobody = SIZE_MAX;
    std::vector<std::size_t> came_from(draft_.ranks(), kNobody);  // by receiver: the sender
    std::vector<std::size_t> gives_up(draft_.ranks(), kNobody);   // by sender: the receiver
    std::vector<bool> is_seen(draft_.ranks());
    std::queue<std::size_t> senders;
    if (is_dead_[from]) return false;
    senders.push(from);
    is_seen[from] = true;
    while (!senders.empty()) {
      const std::size_t sender = senders.front();
      senders.pop();
      for (std::size_t to = 0; to < draft_.ranks(); ++to) {
        if (!draft_.may_add(sender, to) || came_from[to] != kNobody) continue;
        came_from[to] = sender;
        if (has_room(to)) {
          turn(from, to, came_from, gives_up);
          return true;
        }
        for (std::size_t other = 0; other < draft_.ranks(); ++other) {
          if (is_seen[other] || is_dead_[other] || !draft_.has(other, to)) continue;
          if (draft_.is_demanded(other, to)) continue;
          is_seen[other] = true;
          gives_up[other] = to;
          senders.push(other);
        }
      }
    }
    for (std::size_t rank = 0; rank < draft_.ranks(); ++rank) {
      if (is_seen[rank]) is_dead_[rank] = true;
    }
    return false;
  }

  void turn(std::size_t from, std::size_t to, const std::vector<std::size_t>& came_from,
            const std::vector<std::size_t>& gives_up) {
    while (true) {
      const std::size_t sender = came_from[to];
      const std::size_t before = gives_up[sender];
      if (sender != from) draft_.remove(sender, before);
      draft_.add(sender, to);
      if (sender == from) return;
      to = before;
    }
  }

  SelectionDraft& draft_;
  const Meetings& meetings_;
  std::vector<std::size_t> sends_;     // how many updates each uplink can carry
  std::vector<std::size_t> receives_;  // how many updates each downlink can carry
  std::vector<bool> is_dead_;          // no augmenting path begins at this sender
};

/// All possible times of rounds from `least` to `most`, in order: a round takes as long as some
/// number of updates takes on some link.
std::vector<double> times_between(const SelectionDraft& draft, double least, double most) {
  std::vector<double> times;
  const auto add = [&](double time) {
    if (time >= least && time <= most) times.push_back(time);
  };
  for (std::size_t rank = 0; rank < draft.ranks(); ++rank) {
    for (std::size_t updates = 1; updates < draft.ranks(); ++updates) {
      add(draft.up_s_of(rank, updates));
      add(draft.down_s_of(rank, updates));
    }
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

}  // namespace

Selection select_receivers(const SelectionRequest& request, const Meetings& meetings) {
  const SelectionDraft demanded(request, meetings);
  const double most = select_receivers_as_published(request, meetings).seconds;
  double least = demanded.seconds();
  for (std::size_t rank = 0; rank < demanded.ranks(); ++rank)
    least =
        std::max(least, demanded.up_s_of(rank, std::max(demanded.sent(rank), demanded.least())));
  const std::vector<double> times = times_between(demanded, least, most);
  if (times.empty()) return SelectionDraft(demanded).take();
  const auto is_too_short = [&](double time, double) {
    SelectionDraft draft(demanded);
    return !Flow(draft, meetings, time).fill_least();
  };
  const auto best = std::lower_bound(times.begin(), times.end() - 1, 0.0, is_too_short);
  SelectionDraft draft(demanded);
  Flow flow(draft, meetings, *best);
  const bool is_filled = flow.fill_least();
  GP_ASSERT(is_filled);  // `most` is the time of a selection, so that is possible
  flow.fill_rest(*best * request.filled);
  return draft.take();
}

}  // namespace gradplane::plan
