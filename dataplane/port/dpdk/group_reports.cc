// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/group_reports.h"

#include <algorithm>

#include "dataplane/base/assert.h"

namespace gradplane::port {

GroupReports::Entry* GroupReports::find(Ipv4 group) noexcept {
  const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(used_);
  const auto at = std::find_if(entries_.begin(), end,
                               [group](const Entry& entry) { return entry.group == group; });
  return at == end ? nullptr : &*at;
}

/// Takes a free entry, or else that of a left group, whose leaving is then not reported again.
GroupReports::Entry& GroupReports::new_entry() noexcept {
  if (Entry* const free = find(Ipv4{})) return *free;
  if (used_ < entries_.size()) return entries_[used_++];
  return *std::find_if(entries_.begin(), entries_.end(), [](const Entry& e) { return !e.joined; });
}

void GroupReports::change(Entry& entry, bool joined, Instant now) noexcept {
  entry.joined = joined;
  entry.tellings_left = kGroupTellings;
  entry.next_telling = now;
  entry.answer_at = Instant::never();
  look_no_later_than(now);
}

void GroupReports::follow(std::span<const Ipv4> groups, Instant now) noexcept {
  GP_ASSERT(groups.size() <= kMaxGroups);
  for (Entry& entry : entries_) {
    const bool is_left = std::find(groups.begin(), groups.end(), entry.group) == groups.end();
    if (entry.joined && is_left) change(entry, false, now);
  }
  for (const Ipv4 group : groups) {
    Entry* entry = find(group);
    if (entry != nullptr && entry->joined) continue;
    if (entry == nullptr) entry = &new_entry();
    entry->group = group;
    change(*entry, true, now);
  }
}

void GroupReports::hear(const GroupQuery& query, Instant now) noexcept {
  // Section 7.2.1: only a general query of version 2 reveals an old querier.
  const bool is_general = query.group == Ipv4{};
  if (is_general && query.version == IgmpVersion::k2) old_querier_until_ = now + kOldQuerierTime;
  const Duration limit = std::min(query.max_response, kMaxAnswerDelay);
  const Instant at = std::max(now + random_up_to(limit), next_answer_);
  for (Entry& entry : entries_) {
    if (!entry.joined || !(is_general || entry.group == query.group)) continue;
    // An answer that is due earlier also answers this query.
    entry.answer_at = std::min(entry.answer_at, at);
    look_no_later_than(entry.answer_at);
  }
}

// A report of a change does not count as an answer: it may get lost, and the next one is up to a
// second away.
bool GroupReports::take_due(Entry& entry, Instant now, GroupRecord& out) noexcept {
  if (entry.tellings_left > 0 && entry.next_telling <= now) {
    out = {entry.group, entry.joined ? Membership::kJoined : Membership::kLeft};
    --entry.tellings_left;
    entry.next_telling = now + random_up_to(kMaxTellPause);
    if (!entry.joined && entry.tellings_left == 0) entry = {};
    return true;
  }
  if (entry.answer_at > now) return false;
  out = {entry.group, Membership::kMember};
  entry.answer_at = Instant::never();
  next_answer_ = now + kMinAnswerPause;
  return true;
}

std::size_t GroupReports::due(Instant now, std::span<GroupRecord> out) noexcept {
  std::size_t count = 0;
  next_deadline_ = Instant::never();
  for (Entry& entry : entries_) {
    if (count < out.size() && take_due(entry, now, out[count])) ++count;
    if (entry.tellings_left > 0) look_no_later_than(entry.next_telling);
    look_no_later_than(entry.answer_at);
  }
  return count;
}

/// A random time above zero and up to `limit` (SplitMix64).
Duration GroupReports::random_up_to(Duration limit) noexcept {
  random_ += 0x9e3779b97f4a7c15;
  std::uint64_t z = random_;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  z ^= z >> 31;
  const auto steps = static_cast<std::uint64_t>(std::max<std::int64_t>(limit.count_ns(), 1));
  return Duration::ns(static_cast<std::int64_t>(z % steps) + 1);
}

}  // namespace gradplane::port
