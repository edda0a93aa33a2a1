// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/group_reports.h"

#include <algorithm>
#include <vector>

#include "tests/support/catch.h"

namespace gradplane::port {
namespace {

using enum Membership;

constexpr Ipv4 kA{0xef470001};
constexpr Ipv4 kB{0xef470002};
constexpr GroupQuery kGeneral{.group = {}, .max_response = Duration::seconds(10)};
constexpr GroupQuery kOldGeneral{
    .version = IgmpVersion::k2, .group = {}, .max_response = Duration::seconds(10)};

/// The reports of a port, a clock, and the records that are due.
class Bench {
 public:
  explicit Bench(std::uint64_t seed = 1) : reports(seed) {}

  std::vector<GroupRecord> due() {
    std::array<GroupRecord, kMaxGroupRecords> out;
    return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(reports.due(now, out))};
  }
  /// Runs for `later` in steps of a tick. Returns the records of that time.
  std::vector<GroupRecord> until(Duration later) {
    std::vector<GroupRecord> said;
    for (const Instant end = now + later; now < end; now = now + Duration::ms(1)) {
      const bool early = now < reports.next_deadline();
      std::array<GroupRecord, kMaxGroupRecords> some;
      const std::size_t count = reports.due(now, some);
      if (early && count > 0) FAIL_CHECK("something is told before its time");
      said.insert(said.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return said;
  }
  void follow(std::vector<Ipv4> groups) { reports.follow(groups, now); }
  void hear(const GroupQuery& query) { reports.hear(query, now); }
  /// Calls follow() and waits until all reports have gone.
  void settle(std::vector<Ipv4> groups) {
    follow(std::move(groups));
    until(Duration::seconds(3));
    CHECK(reports.next_deadline() == Instant::never());
  }

  GroupReports reports;
  Instant now = Instant::from_ns(1'000'000'000);
};

using Records = std::vector<GroupRecord>;

TEST_CASE("group reports: what is joined is told at once and once more within a second") {
  Bench bench;
  CHECK(bench.until(Duration::seconds(1)).empty());
  bench.follow({kA, kB, kA});
  CHECK(bench.due() == Records{{kA, kJoined}, {kB, kJoined}});
  CHECK(bench.due().empty());
  const Records again = bench.until(Duration::ms(1001));
  CHECK(again.size() == 2);
  CHECK(std::count(again.begin(), again.end(), GroupRecord{kA, kJoined}) == 1);
  CHECK(bench.until(Duration::seconds(10)).empty());
  bench.follow({kA, kB});
  CHECK(bench.until(Duration::seconds(10)).empty());
}

TEST_CASE("group reports: what is left is told twice, and then no more") {
  Bench bench;
  bench.settle({kA, kB});
  bench.follow({kB});
  CHECK(bench.due() == Records{{kA, kLeft}});
  CHECK(bench.until(Duration::ms(1001)) == Records{{kA, kLeft}});
  bench.hear(kGeneral);
  CHECK(bench.until(Duration::seconds(10)) == Records{{kB, kMember}});
}

TEST_CASE("group reports: who comes back while it is still telling that it left is a member") {
  Bench bench;
  bench.settle({kA});
  bench.follow({});
  CHECK(bench.due() == Records{{kA, kLeft}});
  bench.follow({kA});
  CHECK(bench.due() == Records{{kA, kJoined}});
  CHECK(bench.until(Duration::seconds(5)) == Records{{kA, kJoined}});
}

TEST_CASE("group reports: a general question is answered once for all groups, in time") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Bench bench(seed);
    bench.settle({kA, kB});
    bench.hear(kGeneral);
    const Instant asked = bench.now;
    bench.now = bench.reports.next_deadline();
    CHECK(bench.now - asked <= kGeneral.max_response);
    // Both groups are in one report.
    CHECK(bench.due() == Records{{kA, kMember}, {kB, kMember}});
    CHECK(bench.until(Duration::seconds(20)).empty());
  }
}

TEST_CASE("group reports: answers spread over the time that there is") {
  Instant first = Instant::never(), last;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Bench bench(seed);
    bench.settle({kA});
    bench.hear(kGeneral);
    first = std::min(first, bench.reports.next_deadline());
    last = std::max(last, bench.reports.next_deadline());
  }
  CHECK(last - first > Duration::seconds(8));
}

TEST_CASE("group reports: a question about one group is answered for this group") {
  Bench bench;
  bench.settle({kA, kB});
  bench.hear({.group = kB, .max_response = Duration::seconds(1)});
  CHECK(bench.until(Duration::ms(1001)) == Records{{kB, kMember}});
  bench.hear({.group = {0xef470003}, .max_response = Duration::seconds(1)});
  CHECK(bench.until(Duration::ms(1001)).empty());
}

TEST_CASE("group reports: a question never delays the answer to an earlier one") {
  Bench bench;
  bench.settle({kA});
  bench.hear({.group = kA, .max_response = Duration::ms(10)});
  bench.hear(kGeneral);
  CHECK(bench.until(Duration::ms(11)) == Records{{kA, kMember}});
  CHECK(bench.until(Duration::seconds(20)).empty());
}

TEST_CASE("group reports: a flood of questions gets ten answers a second, not a flood of them") {
  Bench bench;
  bench.settle({kA});
  std::size_t answers = 0;
  for (int ms = 0; ms < 1000; ++ms) {
    for (int i = 0; i < 50; ++i) bench.hear({.group = {}, .max_response = Duration()});
    answers += bench.until(Duration::ms(1)).size();
  }
  CHECK(answers >= 9);
  CHECK(answers <= 11);
}

TEST_CASE("group reports: however long a field says that an answer may take, it does not") {
  Bench bench;
  bench.settle({kA});
  bench.hear({.group = {}, .max_response = Duration::seconds(3175)});
  CHECK(bench.until(kMaxAnswerDelay + Duration::ms(1)) == Records{{kA, kMember}});
}

TEST_CASE("group reports: while a querier of version 2 is about, that is what is spoken") {
  Bench bench;
  bench.settle({kA});
  CHECK(bench.reports.version(bench.now) == IgmpVersion::k3);
  bench.hear({.version = IgmpVersion::k2, .group = kA, .max_response = Duration::seconds(1)});
  CHECK(bench.reports.version(bench.now) == IgmpVersion::k3);
  bench.hear(kOldGeneral);
  CHECK(bench.reports.version(bench.now) == IgmpVersion::k2);
  bench.hear(kGeneral);
  CHECK(bench.reports.version(bench.now + Duration::ms(259'999)) == IgmpVersion::k2);
  CHECK(bench.reports.version(bench.now + Duration::seconds(260)) == IgmpVersion::k3);
}

TEST_CASE("group reports: what does not fit is told the next time") {
  Bench bench;
  std::vector<Ipv4> many;
  for (std::uint32_t g = 0; g < kMaxGroups; ++g) many.push_back({kA.value + g});
  bench.follow(many);
  std::vector<Ipv4> told;
  std::array<GroupRecord, 10> out;
  while (const std::size_t count = bench.reports.due(bench.now, out)) {
    for (std::size_t i = 0; i < count; ++i) told.push_back(out[i].group);
    CHECK((count == out.size() || told.size() == many.size()));
  }
  CHECK(told == many);
}

TEST_CASE("group reports: all groups may be changed for others before anything is told") {
  Bench bench;
  std::vector<Ipv4> groups;
  for (std::uint32_t turn = 0; turn < 5; ++turn) {
    groups.clear();
    for (std::uint32_t g = 0; g < kMaxGroups; ++g) groups.push_back({kA.value + 1000 * turn + g});
    bench.follow(groups);
  }
  const Records said = bench.until(Duration::seconds(3));
  for (const Ipv4 group : groups) {
    CHECK(std::count(said.begin(), said.end(), GroupRecord{group, kJoined}) == 2);
  }
  bench.hear(kGeneral);
  CHECK(bench.until(Duration::seconds(10)).size() == kMaxGroups);
}

}  // namespace
}  // namespace gradplane::port
