// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/link_reporter.h"

#include <algorithm>
#include <cmath>

namespace gradplane::session {

using protocol::LinkSample;

namespace {

/// Changes among smaller round trips and losses make no difference to a plan.
constexpr double kLeastRttUs = 200;
constexpr double kLeastLossPpm = 1000;
/// An increase of the confidence, in percent, that is worth a report.
constexpr int kMoreConfidence = 25;

bool differ(double a, double b, double least) {
  const double larger = std::max(a, b);
  return larger > least && std::abs(a - b) > kLinkReportChange * larger;
}

bool has_changed(const LinkSample& before, const LinkSample& now) {
  return differs(before, now) || now.rate_confidence >= before.rate_confidence + kMoreConfidence ||
         now.loss_confidence >= before.loss_confidence + kMoreConfidence;
}

bool says_something(const LinkSample& sample) {
  return sample.rate_confidence > 0 || sample.rtt_us > 0 || sample.loss_confidence > 0;
}

}  // namespace

bool differs(const LinkSample& a, const LinkSample& b) {
  const bool other_rate =
      a.is_lower_bound != b.is_lower_bound ||
      differ(static_cast<double>(a.bits_per_s), static_cast<double>(b.bits_per_s), 0);
  return other_rate || differ(a.rtt_us, b.rtt_us, kLeastRttUs) ||
         differ(a.loss_ppm, b.loss_ppm, kLeastLossPpm);
}

bool LinkReporter::is_due(const LinkSample& sample, Instant now) const {
  if (!says_something(sample)) return false;
  const auto known = reported_.find(sample.from);
  if (known == reported_.end()) return true;
  const Reported& reported = known->second;
  if (has_changed(reported.sample, sample)) return true;
  const Duration since = now - reported.at;
  const auto ms = since.count_ns() / Duration::ms(1).count_ns();
  const bool again = sample.rate_age_ms < ms || sample.rtt_age_ms < ms || sample.loss_age_ms < ms;
  return again && since >= kLinkConfirmAfter;
}

std::vector<LinkSample> LinkReporter::select(std::span<const LinkSample> samples, Instant now) {
  std::vector<LinkSample> due;
  if (now < next_) return due;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(due),
               [&](const LinkSample& sample) { return is_due(sample, now); });
  if (due.empty()) return due;
  const auto reported_at = [this](const LinkSample& sample) {
    const auto known = reported_.find(sample.from);
    return known == reported_.end() ? Instant() : known->second.at;
  };
  std::stable_sort(due.begin(), due.end(), [&](const LinkSample& a, const LinkSample& b) {
    return reported_at(a) < reported_at(b);
  });
  if (due.size() > protocol::kMaxReportedLinks) due.resize(protocol::kMaxReportedLinks);
  for (const LinkSample& sample : due) reported_[sample.from] = {sample, now};
  next_ = now + kLinkReportInterval;
  return due;
}

}  // namespace gradplane::session
