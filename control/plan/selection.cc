// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/plan/selection.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "control/plan/selection_draft.h"

namespace gradplane::plan {

std::size_t Selection::pairs() const {
  return std::accumulate(receivers.begin(), receivers.end(), std::size_t{0},
                         [](std::size_t sum, const Bitmap& those) { return sum + those.count(); });
}

void Meetings::on_round(const Selection& selection) {
  for (std::size_t from = 0; from < ranks_; ++from) on_update(from, selection.receivers[from]);
}

void Meetings::on_update(std::size_t from, const Bitmap& receivers) {
  for (std::size_t to = 0; to < ranks_; ++to) {
    std::uint32_t& apart = apart_[from * ranks_ + to];
    apart = receivers.test(to) ? 0 : apart + 1;
  }
}

namespace {

std::vector<std::size_t> all_ranks(std::size_t ranks) {
  std::vector<std::size_t> all(ranks);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// The ranks in the order in which they choose receivers. Senders with many pairs that freshness
/// demands come first, because they have the least choice.
std::vector<std::size_t> by_demands(const SelectionDraft& draft) {
  std::vector<std::size_t> senders = all_ranks(draft.ranks());
  std::stable_sort(senders.begin(), senders.end(),
                   [&](std::size_t a, std::size_t b) { return draft.sent(a) > draft.sent(b); });
  return senders;
}

}  // namespace

Selection select_receivers_as_published(const SelectionRequest& request, const Meetings& meetings) {
  SelectionDraft draft(request, meetings);
  const std::size_t ranks = draft.ranks();
  for (const std::size_t from : by_demands(draft)) {
    while (draft.sent(from) < draft.least()) {
      std::size_t lightest = ranks;
      for (std::size_t to = 0; to < ranks; ++to) {
        if (!draft.may_add(from, to)) continue;
        if (lightest == ranks || draft.down_s(to, 1) < draft.down_s(lightest, 1)) lightest = to;
      }
      draft.add(from, lightest);
    }
  }
  const double seconds = draft.seconds();
  struct Pair {
    std::size_t from, to;
  };
  std::vector<Pair> rest;
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      if (draft.may_add(from, to)) rest.push_back({from, to});
    }
  }
  std::stable_sort(rest.begin(), rest.end(), [&](const Pair& a, const Pair& b) {
    return meetings.rounds_apart(a.from, a.to) > meetings.rounds_apart(b.from, b.to);
  });
  for (const Pair& pair : rest) {
    if (draft.up_s(pair.from, 1) <= seconds && draft.down_s(pair.to, 1) <= seconds)
      draft.add(pair.from, pair.to);
  }
  return draft.take();
}

Selection select_receivers_at_random(const SelectionRequest& request, const Meetings& meetings,
                                     const std::function<std::uint64_t()>& draw) {
  SelectionDraft draft(request, meetings);
  for (std::size_t from = 0; from < draft.ranks(); ++from) {
    std::vector<std::size_t> others = all_ranks(draft.ranks());
    for (std::size_t i = 0; i < others.size() && draft.sent(from) < draft.least(); ++i) {
      std::swap(others[i], others[i + draw() % (others.size() - i)]);
      const std::size_t to = others[i];
      if (draft.may_add(from, to)) draft.add(from, to);
    }
  }
  return draft.take();
}

}  // namespace gradplane::plan
