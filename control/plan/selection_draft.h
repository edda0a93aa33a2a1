// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "control/plan/selection.h"
#include "dataplane/base/assert.h"

namespace gradplane::plan {

/// A selection under construction, and the load on the links. It begins with the pairs that
/// freshness demands.
class SelectionDraft {
 public:
  SelectionDraft(const SelectionRequest& request, const Meetings& meetings)
      : request_(request), sent_(ranks()), received_(ranks()) {
    GP_ASSERT(meetings.ranks() == ranks());
    made_.receivers.assign(ranks(), Bitmap(ranks()));
    demanded_.assign(ranks(), Bitmap(ranks()));
    for (std::size_t from = 0; from < ranks(); ++from) {
      made_.receivers[from].reset(ranks());
      demanded_[from].reset(ranks());
      for (std::size_t to = 0; to < ranks(); ++to) {
        if (from == to || meetings.rounds_apart(from, to) < request.freshness) continue;
        demanded_[from].set(to);
        add(from, to);
      }
    }
  }

  std::size_t ranks() const { return request_.ranks.size(); }
  /// The number of receivers that each update must have at least.
  std::size_t least() const {
    return std::min<std::size_t>(request_.receivers, std::max<std::size_t>(ranks(), 1) - 1);
  }
  std::size_t sent(std::size_t from) const { return sent_[from]; }
  std::size_t received(std::size_t to) const { return received_[to]; }
  bool has(std::size_t from, std::size_t to) const { return made_.has(from, to); }
  bool is_demanded(std::size_t from, std::size_t to) const { return demanded_[from].test(to); }
  bool may_add(std::size_t from, std::size_t to) const { return from != to && !has(from, to); }

  void add(std::size_t from, std::size_t to) {
    made_.receivers[from].set(to);
    ++sent_[from];
    ++received_[to];
  }
  void remove(std::size_t from, std::size_t to) {
    made_.receivers[from].clear(to);
    --sent_[from];
    --received_[to];
  }

  /// The time in seconds that a rank's link takes for its updates and so many more.
  double up_s(std::size_t from, std::size_t more = 0) const {
    return up_s_of(from, sent_[from] + more);
  }
  double down_s(std::size_t to, std::size_t more = 0) const {
    return down_s_of(to, received_[to] + more);
  }
  /// The same for so many updates in all.
  double up_s_of(std::size_t from, std::size_t updates) const {
    const bool once = request_.replication == Replication::kNetwork && updates > 1;
    return seconds_of(once ? 1 : updates, request_.ranks[from].up_bits_per_s);
  }
  double down_s_of(std::size_t to, std::size_t updates) const {
    return seconds_of(updates, request_.ranks[to].down_bits_per_s);
  }
  /// The time of the link that takes longest.
  double seconds() const {
    double longest = 0;
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      longest = std::max({longest, up_s(rank), down_s(rank)});
    return longest;
  }

  Selection take() {
    made_.seconds = seconds();
    return std::move(made_);
  }

 private:
  double seconds_of(std::size_t updates, std::uint64_t bits_per_s) const {
    return static_cast<double>(updates) * 8 * static_cast<double>(request_.update_bytes) /
           static_cast<double>(bits_per_s);
  }

  const SelectionRequest& request_;
  Selection made_;
  std::vector<Bitmap> demanded_;
  std::vector<std::size_t> sent_;      // by sender
  std::vector<std::size_t> received_;  // by receiver
};

}  // namespace gradplane::plan
