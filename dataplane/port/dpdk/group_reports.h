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

/// How often a change is reported, because reports are not acknowledged, and the longest random
/// pause until it is reported again (RFC 3376, sections 8.1 and 8.11).
inline constexpr unsigned kGroupTellings = 2;
inline constexpr Duration kMaxTellPause = Duration::seconds(1);
/// How long a querier of IGMP version 2 is remembered: two of its query intervals plus the response
/// time (section 8.12).
inline constexpr Duration kOldQuerierTime = Duration::seconds(2 * 125 + 10);
/// The shortest time between two answers, however many queries come.
inline constexpr Duration kMinAnswerPause = Duration::ms(100);
/// The longest delay of an answer. A query may ask for up to an hour, but nobody needs an answer so
/// late.
inline constexpr Duration kMaxAnswerDelay = Duration::seconds(30);

/// A host's part of IGMP versions 3 and 2. The port's groups and the queries of routers and
/// switches come in; records to be sent come out. Time is an argument, and random delays come from
/// the seed. One thread; no allocation.
///
/// Version 2 reports of other hosts do not suppress ours, because a snooping switch must hear each
/// of its hosts.
class GroupReports {
 public:
  explicit GroupReports(std::uint64_t seed) : random_(seed) {}

  /// The groups that the port is in now; an address may occur several times.
  void follow(std::span<const Ipv4> groups, Instant now) noexcept;
  /// Handles a query.
  void hear(const GroupQuery& query, Instant now) noexcept;

  /// Writes the records that are due; call it again as long as it fills `out`.
  std::size_t due(Instant now, std::span<GroupRecord> out) noexcept;
  /// due() has no record before this time.
  Instant next_deadline() const noexcept { return next_deadline_; }

  /// The IGMP version of reports now.
  IgmpVersion version(Instant now) const noexcept {
    return now < old_querier_until_ ? IgmpVersion::k2 : IgmpVersion::k3;
  }

 private:
  struct Entry {
    Ipv4 group;  // zero: free
    bool joined = false;
    unsigned tellings_left = 0;  // reports of the last change that are still to be sent
    Instant next_telling;
    Instant answer_at = Instant::never();
  };

  Entry* find(Ipv4 group) noexcept;
  Entry& new_entry() noexcept;
  void change(Entry& entry, bool joined, Instant now) noexcept;
  bool take_due(Entry& entry, Instant now, GroupRecord& out) noexcept;
  Duration random_up_to(Duration limit) noexcept;
  void look_no_later_than(Instant at) noexcept { next_deadline_ = std::min(next_deadline_, at); }

  // There is room for left groups, too: the port may join others before the leaving of these has
  // been reported. If there is none, an entry of a left group is reused, and its leaving is not
  // reported again.
  std::array<Entry, 2 * kMaxGroups> entries_{};
  std::size_t used_ = 0;  // the number of entries that were ever used, from the first on
  Instant next_deadline_ = Instant::never();
  Instant next_answer_;  // no answer before this time
  Instant old_querier_until_;
  std::uint64_t random_;
};

}  // namespace gradplane::port
