// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/link_reports.h"

#include <algorithm>

#include "control/session/link_reporter.h"

namespace gradplane::session {

using protocol::LinkSample;

namespace {

static_assert(kLinkConfirmAfter < kLinkSampleKept, "what is confirmed is kept");

std::uint32_t older_by(std::uint32_t age_ms, Duration time) {
  const std::int64_t ms = age_ms + time.count_ns() / Duration::ms(1).count_ns();
  return static_cast<std::uint32_t>(std::min<std::int64_t>(ms, protocol::kMaxLinkAgeMs));
}

/// Whether the rate has leapt. A lower bound can only leap upwards.
bool leaps(const LinkSample& before, const LinkSample& now) {
  const auto was = static_cast<double>(before.bits_per_s);
  const auto is = static_cast<double>(now.bits_per_s);
  if (was == 0 || is == 0) return false;
  return is > was * kLeap || (is * kLeap < was && !now.is_lower_bound && !before.is_lower_bound);
}

}  // namespace

std::size_t LinkReports::add(api::NodeId from, const protocol::ReportLinks& report,
                             std::size_t nodes, Instant now) {
  std::size_t refused = 0;
  if (held_.size() + report.links.size() > kMaxLinkSamples) forget_old(now);
  for (LinkSample sample : report.links) {
    sample.to = from;
    const std::pair link(sample.from, sample.to);
    const auto known = held_.find(link);
    const bool has_room = known != held_.end() || held_.size() < kMaxLinkSamples;
    if (sample.from == from || sample.from >= nodes || !has_room) {
      ++refused;
      continue;
    }
    if (known == held_.end() || differs(known->second.sample, sample)) ++version_;
    if (known != held_.end() && leaps(known->second.sample, sample)) note_leap(now);
    held_[link] = {sample, now};
  }
  return refused;
}

void LinkReports::note_leap(Instant now) {
  if (now - leapt_at_ > kReportsCalm) leaps_began_ = now;
  leapt_at_ = now;
}

void LinkReports::forget_old(Instant now) {
  std::erase_if(
      held_, [now](const auto& entry) { return now - entry.second.heard_at >= kLinkSampleKept; });
}

std::vector<LinkSample> LinkReports::samples(Instant now) const {
  std::vector<LinkSample> samples;
  for (const auto& [link, held] : held_) {
    const Duration since = now - held.heard_at;
    if (since >= kLinkSampleKept) continue;
    LinkSample& sample = samples.emplace_back(held.sample);
    sample.rate_age_ms = older_by(sample.rate_age_ms, since);
    sample.rtt_age_ms = older_by(sample.rtt_age_ms, since);
    sample.loss_age_ms = older_by(sample.loss_age_ms, since);
  }
  return samples;
}

}  // namespace gradplane::session
