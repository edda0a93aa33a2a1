// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/job_tables.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "dataplane/base/assert.h"

namespace gradplane::session {
namespace {

/// Buckets come one after the other during a step. After such a pause no more are expected.
constexpr Duration kQuiet = Duration::ms(200);
/// A job without such a pause gets its first bounds after this time.
constexpr Duration kLongestWait = Duration::seconds(2);

}  // namespace

Status JobTables::add(std::span<const std::byte> part, Instant now) {
  Result<TablePart> decoded = decode_table_part(part);
  if (!decoded.ok()) return decoded.error();
  auto table = collector_.add(std::move(decoded.value()));
  if (!table.ok()) return table.error();
  if (!table.value()) return Nothing{};
  if (unresolved_.empty()) first_new_ = now;
  due_ = std::min(now + kQuiet, first_new_ + kLongestWait);
  const std::uint32_t bucket = table.value()->bucket;
  unresolved_.insert(bucket);
  const auto at = std::find_if(tables_.begin(), tables_.end(),
                               [&](const api::BucketBounds& t) { return t.bucket > bucket; });
  tables_.insert(at, std::move(*table.value()));
  return Nothing{};
}

BoundsTexts JobTables::resolve(const BoundsResolver& resolver) {
  due_ = Instant::never();
  std::set<std::uint32_t> fresh = std::exchange(unresolved_, {});
  // Members have these tables from an earlier coordinator, and accept each table only once.
  std::erase_if(fresh, [this](std::uint32_t bucket) { return restored_.contains(bucket); });
  if (!resolver || fresh.empty()) return {};
  ResolvedBounds resolved = resolver(tables_);
  GP_ASSERT(resolved.tables.size() == tables_.size());
  learn_budget_ = resolved.learn_budget;
  for (const api::BucketBounds& table : resolved.tables) {
    if (!fresh.contains(table.bucket)) continue;
    std::vector<std::vector<std::byte>> parts = encode_table(table);
    std::move(parts.begin(), parts.end(), std::back_inserter(parts_));
  }
  behind_ = members_;
  const std::string before = std::exchange(warning_, resolved.texts.warning);
  if (warning_ == before) resolved.texts.warning.clear();
  // Whoever saw the warning must also see that it is over.
  if (warning_.empty() && !before.empty())
    resolved.texts.warning = "every pattern fits a tensor now";
  return std::move(resolved.texts);
}

void JobTables::expect(std::size_t parts, std::map<api::NodeId, std::size_t> sent) {
  expected_ = parts;
  sent_ = std::move(sent);
}

bool JobTables::restore(std::vector<std::byte> part, float learn_budget) {
  const Result<TablePart> decoded = decode_table_part(part);
  if (!decoded.ok() || parts_.size() >= expected_) return false;
  restored_.insert(decoded.value().bucket);
  learn_budget_ = learn_budget;
  parts_.push_back(std::move(part));
  for (const api::NodeId member : members_)
    if (sent_[member] < parts_.size()) behind_.insert(member);
  return true;
}

void JobTables::set_members(const std::set<api::NodeId>& members) {
  members_ = members;
  // A node that leaves the job forgets its tables.
  std::erase_if(sent_, [&](const auto& entry) { return !members.contains(entry.first); });
  behind_.clear();
  for (const api::NodeId member : members) {
    const auto sent = sent_.find(member);
    if ((sent == sent_.end() ? 0 : sent->second) < parts_.size()) behind_.insert(member);
  }
}

std::vector<std::byte> JobTables::take_part_for(api::NodeId member) {
  std::size_t& sent = sent_[member];
  GP_ASSERT(sent < parts_.size());
  std::vector<std::byte> part = parts_[sent++];
  if (sent == parts_.size()) behind_.erase(member);
  return part;
}

}  // namespace gradplane::session
