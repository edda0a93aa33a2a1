// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Which samples of links a node reports, and which of them the coordinator keeps.
#include <algorithm>
#include <set>
#include <vector>

#include "control/session/link_reporter.h"
#include "control/session/link_reports.h"
#include "tests/support/catch.h"
#include "tests/support/link_samples.h"

using namespace gradplane;
using namespace gradplane::protocol;
using namespace gradplane::session;
using gradplane::testing::sample_of;

namespace {

const Instant kNow = Instant::from_ns(1000);

}  // namespace

TEST_CASE("a node reports what has changed, and confirms the rest now and then") {
  LinkReporter reporter;
  Instant now = kNow;
  std::vector<LinkSample> samples = {sample_of(1, 1000), sample_of(2, 1000), LinkSample{}};
  CHECK(reporter.select(samples, now).size() == 2);  // the third sample is empty
  now = now + kLinkReportInterval;
  CHECK(reporter.select(samples, now).empty());
  samples[0].bits_per_s = 1099;
  CHECK(reporter.select(samples, now).empty());
  samples[0].bits_per_s = 1120;
  samples[1].bits_per_s = 2000;
  CHECK(reporter.select(std::vector{samples[0]}, now).size() == 1);
  now = now + kLinkReportInterval - Duration::ms(1);
  CHECK(reporter.select(samples, now).empty());  // too early after the last report
  now = now + Duration::ms(1);
  CHECK(reporter.select(samples, now) == std::vector{samples[1]});
  now = now + kLinkConfirmAfter;
  samples[0].rate_age_ms = samples[0].rtt_age_ms = samples[0].loss_age_ms = 60000;
  CHECK(reporter.select(samples, now) == std::vector{samples[1]});  // the only one measured again
  now = now + kLinkReportInterval;
  CHECK(reporter.select(samples, now).empty());
  reporter.forget();
  CHECK(reporter.select(samples, now).size() == 2);
}

TEST_CASE("of many links those go first that were reported longest ago") {
  LinkReporter reporter;
  std::vector<LinkSample> samples;
  for (std::uint16_t from = 0; from < 2 * kMaxReportedLinks; ++from)
    samples.push_back(sample_of(from, 1000));
  Instant now = kNow;
  std::set<api::NodeId> reported;
  for (int turn = 0; turn < 2; ++turn) {
    const auto some = reporter.select(samples, now);
    CHECK(some.size() == kMaxReportedLinks);
    for (const LinkSample& sample : some) reported.insert(sample.from);
    for (LinkSample& sample : samples) sample.bits_per_s *= 2;
    now = now + kLinkReportInterval;
  }
  CHECK(reported.size() == samples.size());
}

TEST_CASE("a coordinator keeps so many samples, and makes room for new ones") {
  LinkReports reports;
  std::size_t refused = 0;
  for (std::uint16_t to = 0; to < kMaxNodes; ++to) {
    ReportLinks report;
    for (std::uint16_t i = 0; i < kMaxReportedLinks + 1; ++i)
      if (i != to) report.links.push_back(sample_of(i, 1));
    refused += reports.add(to, report, kMaxNodes, kNow);
  }
  CHECK(refused > 0);
  CHECK(reports.samples(kNow).size() == kMaxLinkSamples);
  // Old samples make room for new ones.
  const Instant later = kNow + kLinkSampleKept;
  CHECK(reports.add(1, ReportLinks{{}, {sample_of(900, 1)}}, kMaxNodes, later) == 0);
  CHECK(reports.samples(later).size() == 1);
}

TEST_CASE("reports have settled when no rate leaps any more, or after a bounded time") {
  LinkReports reports;
  Instant now = kNow + Duration::seconds(100);
  const auto report = [&](std::uint64_t bits_per_s, bool is_lower_bound = false) {
    LinkSample sample = sample_of(1, bits_per_s);
    sample.is_lower_bound = is_lower_bound;
    CHECK(reports.add(2, ReportLinks{{}, {sample}}, 3, now) == 0);
  };
  report(1000);  // the first sample of a link is no change
  CHECK(reports.settled_at() < now);
  report(1200);
  report(1000, true);
  report(500, true);  // a lower bound does not exclude higher rates
  CHECK(reports.settled_at() < now);
  report(1000);
  CHECK(reports.settled_at() == now + kReportsCalm);
  now = now + kReportsCalm * 2;
  const Instant began = now;
  for (std::uint64_t rate = 500; now < began + kReportsSettle; now = now + kReportsCalm / 2) {
    report(rate);
    rate = 1500 - rate;
    CHECK(reports.settled_at() == std::min(now + kReportsCalm, began + kReportsSettle));
  }
}
