// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "control/session/actions.h"
#include "control/session/bucket_tables.h"
#include "dataplane/base/time.h"

namespace gradplane::session {

/// The tables of one job at its coordinator. This class collects what the node of rank 0 describes,
/// asks the resolver for bounds, and records which member was sent which part. Pure.
///
/// Rules such as "the last layer" need the whole model, and a node accepts each table only once. So
/// bounds are resolved when no new bucket has come for a while. Until then rounds are exact.
class JobTables {
 public:
  /// Takes a part of a table, from the node of rank 0.
  Status add(std::span<const std::byte> part, Instant now);
  /// When resolve() is due; never() when nothing is new.
  Instant due() const { return parts_.size() < expected_ ? Instant::never() : due_; }
  /// Gives bounds to the new tables, which then go to all members. Returns what to log,
  /// with a warning only if it is another one than before, or is over.
  BoundsTexts resolve(const BoundsResolver& resolver);
  /// Sets the present members. A new member will be sent all parts.
  void set_members(const std::set<api::NodeId>& members);
  /// An earlier coordinator has given bounds to tables. restore() will get `parts` parts of them,
  /// in order. `sent` says how many of them each node has.
  void expect(std::size_t parts, std::map<api::NodeId, std::size_t> sent);
  /// Takes the next expected part. False: none was expected.
  bool restore(std::vector<std::byte> part, float learn_budget);
  bool resolved_before() const { return !parts_.empty(); }

  /// Members that have not been sent all parts.
  const std::set<api::NodeId>& behind() const { return behind_; }
  /// The next part for one of these members. It then counts as sent.
  std::vector<std::byte> take_part_for(api::NodeId member);
  float learn_budget() const { return learn_budget_; }

 private:
  TableCollector collector_;
  std::vector<api::BucketBounds> tables_;  // in the order of their ids
  std::set<std::uint32_t> unresolved_;     // ids
  Instant first_new_;
  Instant due_ = Instant::never();
  float learn_budget_ = 0;
  std::string warning_;                        // of the last resolve()
  std::vector<std::vector<std::byte>> parts_;  // of all resolved tables, encoded
  std::size_t expected_ = 0;                   // how many come from an earlier coordinator
  std::set<std::uint32_t> restored_;           // ids of the tables that came from there
  std::map<api::NodeId, std::size_t> sent_;    // how many parts each node has been sent
  std::set<api::NodeId> members_;
  std::set<api::NodeId> behind_;
};

}  // namespace gradplane::session
