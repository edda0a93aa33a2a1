// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "dataplane/base/bitmap.h"

/// Receiver selection of selective multicast (SELMCAST: Luo, Fan, Li, Xing, Luo, Yu, IEEE TSC
/// 2024): to whom each rank multicasts its update in a round, so that the round is short and each
/// update has enough receivers. The network is taken for one big switch, where only the links of
/// the ranks limit. Pure: the same arguments give the same selection.
namespace gradplane::plan {

/// What a rank's link carries, in bits per second. Both are more than 0.
struct RankCapacity {
  std::uint64_t up_bits_per_s = 0;
  std::uint64_t down_bits_per_s = 0;
};

/// Where copies of an update are made.
enum class Replication : std::uint8_t {
  kNetwork,  // by the switch (multicast): one copy leaves the sender
  kSender,   // by the sender (unicast): one copy leaves it for each receiver
};

/// Who receives whose update in a round.
struct Selection {
  std::vector<Bitmap> receivers;  // by sender; a rank does not receive its own update
  /// The least time of the round: that of the link that takes longest.
  double seconds = 0;

  bool has(std::size_t from, std::size_t to) const { return receivers[from].test(to); }
  std::size_t pairs() const;
};

/// For how many rounds each rank has not received each other rank's update.
class Meetings {
 public:
  explicit Meetings(std::size_t ranks) : ranks_(ranks), apart_(ranks * ranks) {}

  std::size_t ranks() const { return ranks_; }
  std::uint32_t rounds_apart(std::size_t from, std::size_t to) const {
    return apart_[from * ranks_ + to];
  }
  /// Counts a round with this selection.
  void on_round(const Selection& selection);
  /// Counts a round of one rank, in which these received its update.
  void on_update(std::size_t from, const Bitmap& receivers);

 private:
  std::size_t ranks_;
  std::vector<std::uint32_t> apart_;  // by sender and receiver
};

struct SelectionRequest {
  std::vector<RankCapacity> ranks;
  std::uint64_t update_bytes = 0;  // the same for every rank, as in data-parallel training
  /// Each update has at least so many receivers, or all others where there are fewer.
  std::uint32_t receivers = 1;
  /// Freshness (SELMCAST, section III): each pair meets at least once in any freshness + 1 rounds.
  std::uint32_t freshness = 0;
  Replication replication = Replication::kSender;
  /// Receivers beyond the needed ones may fill a link for this share of the round's time. If it is
  /// below 1, a link that is faster than believed can be noticed: its pairs are then faster than
  /// those of other links.
  double filled = 1;
};

/// The best selection: no other one with enough receivers and freshness is shorter, and of the
/// shortest ones none has more pairs, as far as `filled` lets links be filled. The paper says that
/// this is NP-hard, which is true if updates differ in size. In data-parallel training all have one
/// size, and then it is a maximum flow. Of equally good pairs those that have not met for longest
/// are preferred, where that needs no search. `meetings` has as many ranks as the request.
Selection select_receivers(const SelectionRequest& request, const Meetings& meetings);

/// The algorithm as published (section IV, two passes), for comparison.
Selection select_receivers_as_published(const SelectionRequest& request, const Meetings& meetings);

/// request.receivers random receivers for each update (Orpheus: Xie et al., SoCC 2018), among them
/// those that freshness demands, which may be more. `draw` returns 64 random bits.
Selection select_receivers_at_random(const SelectionRequest& request, const Meetings& meetings,
                                     const std::function<std::uint64_t()>& draw);

}  // namespace gradplane::plan
