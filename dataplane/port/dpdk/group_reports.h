// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/endpoint.h"
#include "dataplane/base/time.h"
#include "dataplane/port/dpdk/frame.h"

namespace gradplane::port {

/// How often a change is told, because nobody acknowledges a report, and in which time at random
/// the next telling follows (RFC 3376, sections 8.1 and 8.11).
inline constexpr unsigned kGroupTellings = 2;
inline constexpr Duration kMaxTellPause = Duration::seconds(1);
/// How long a querier of version 2 is remembered: two of its intervals and the time to answer
/// (section 8.12).
inline constexpr Duration kOldQuerierTime = Duration::seconds(2 * 125 + 10);
/// Between two answers, however many questions come.
inline constexpr Duration kMinAnswerPause = Duration::ms(100);
/// Nobody needs an answer later than this; a field may say an hour.
inline constexpr Duration kMaxAnswerDelay = Duration::seconds(30);

/// A host's part of IGMP versions 3 and 2: which groups a port is in comes in, with questions of
/// routers and switches, and records to be sent come out. Time is an argument, and where delays are
/// drawn at random, they come from the seed. One thread; no allocation.
///
/// Other hosts' reports of version 2 are not heard, so none of ours is left out. A switch that
/// snoops wants to hear each of its hosts.
class GroupReports {
 public:
  explicit GroupReports(std::uint64_t seed) : random_(seed) {}

  /// The groups that the port is in now; one address may come several times.
  void follow(std::span<const Ipv4> groups, Instant now) noexcept;
  /// Somebody asks.
  void hear(const GroupQuery& query, Instant now) noexcept;

  /// The records that are due; call again while it fills `out`.
  std::size_t due(Instant now, std::span<GroupRecord> out) noexcept;
  /// due() has nothing to say before this.
  Instant next_deadline() const noexcept { return next_deadline_; }

  /// In which version records go out now.
  IgmpVersion version(Instant now) const noexcept {
    return now < old_querier_until_ ? IgmpVersion::k2 : IgmpVersion::k3;
  }

 private:
  struct Entry {
    Ipv4 group;  // zero: free
    bool joined = false;
    unsigned tellings_left = 0;  // of the last change
    Instant next_telling;
    Instant answer_at = Instant::never();
  };

  Entry* find(Ipv4 group) noexcept;
  Entry& new_entry() noexcept;
  void change(Entry& entry, bool joined, Instant now) noexcept;
  bool take_due(Entry& entry, Instant now, GroupRecord& out) noexcept;
  Duration random_up_to(Duration limit) noexcept;
  void look_no_later_than(Instant at) noexcept { next_deadline_ = std::min(next_deadline_, at); }

  // Room for what was left too: the port may be in other groups before all is told. Else the oldest
  // entries are found first, and what was left there goes untold.
  std::array<Entry, 2 * kMaxGroups> entries_{};
  std::size_t used_ = 0;  // so many of the first have been used
  Instant next_deadline_ = Instant::never();
  Instant next_answer_;  // no sooner
  Instant old_querier_until_;
  std::uint64_t random_;
};

}  // namespace gradplane::port
