// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The engine under ns-3: checks that the numbers of a run are right, before any comparison.
#include <algorithm>
#include <stdexcept>

#include "tests/ns3/scenario.h"
#include "tests/support/catch.h"

using gradplane::Duration;
using gradplane::ns3_incast::bound;
using gradplane::ns3_incast::Outcome;
using gradplane::ns3_incast::Round;
using gradplane::ns3_incast::run;
using gradplane::ns3_incast::Scenario;

namespace {

constexpr std::size_t kMarkBytes = 30'000;
/// Two packets make a longer queue than this, so even paced senders get marks.
constexpr std::size_t kShortMarkBytes = 1'600;
constexpr double kAtMostOverBound = 1.3;

Scenario scenario(const std::string& contestant, std::size_t mark_bytes = 0) {
  Scenario s;
  s.contestant = contestant;
  s.senders = 4;
  s.rounds = 3;
  s.mark_bytes = mark_bytes;
  return s;
}

double over_bound(Duration time, const Outcome& outcome) {
  return time.to_seconds() / outcome.bound.to_seconds();
}

/// Checks that must pass for every transport.
void check_sound(const Scenario& s, const Outcome& o) {
  CAPTURE(s.contestant, s.mark_bytes);
  CHECK(o.failure == "");
  REQUIRE(o.rounds.size() == s.rounds);
  CHECK(o.needed_bytes == s.rounds * s.senders * s.push_bytes);
  CHECK(o.drops_elsewhere == 0);
  CHECK(o.deepest_bytes <= s.queue_bytes);
  CHECK((o.marks > 0) == (s.mark_bytes > 0));
  for (const Round& round : o.rounds) {
    CHECK(over_bound(round.push, o) >= 1);
    const auto last = std::max_element(round.sender_pushes.begin(), round.sender_pushes.end());
    CHECK(*last == round.push);
    CHECK(round.spread() >= 1);
  }
}

std::vector<Duration> pushes(const Outcome& outcome) {
  std::vector<Duration> found;
  for (const Round& round : outcome.rounds) {
    found.insert(found.end(), round.sender_pushes.begin(), round.sender_pushes.end());
  }
  return found;
}

}  // namespace

TEST_CASE("ns-3: the bound is what the wire takes") {
  Scenario s = scenario("gradplane-shares");
  // Four senders with 187 blocks each, which have 122 bytes of headers; one more frame, and two
  // delays.
  CHECK(bound(s) == Duration::ns(8 * (4 * (262144 + 187 * 122) + 1530) + 100'000));
  s.contestant = "tcp-reno";  // 182 segments with 90 bytes of headers
  CHECK(bound(s) == Duration::ns(8 * (4 * (262144 + 182 * 90) + 1538) + 100'000));
}

TEST_CASE("ns-3: the engine brings right sums in little more than the bound") {
  for (const char* contestant : {"gradplane-shares", "gradplane-grants"}) {
    for (const std::size_t mark_bytes : {std::size_t{0}, kShortMarkBytes}) {
      const Scenario s = scenario(contestant, mark_bytes);
      const Outcome o = run(s);
      check_sound(s, o);
      for (const Round& round : o.rounds) {
        CHECK(over_bound(round.push, o) <= kAtMostOverBound);
        CHECK(round.all_reduce > round.push);
        CHECK(over_bound(round.all_reduce, o) <= kAtMostOverBound);
      }
    }
  }
}

TEST_CASE("ns-3: even shares of the link leave no queue that a switch would mark") {
  const Outcome o = run(scenario("gradplane-shares", kMarkBytes));
  CHECK(o.failure == "");
  CHECK(o.marks == 0);
  CHECK(o.deepest_bytes < kMarkBytes);
}

TEST_CASE("ns-3: marks reach the engine's controllers, which drop less for them") {
  const Outcome deaf = run(scenario("gradplane-dctcp"));
  const Scenario s = scenario("gradplane-dctcp", kMarkBytes);
  const Outcome hears = run(s);
  check_sound(s, hears);
  CHECK(deaf.marks_heard == 0);
  CHECK(hears.marks_heard > 0);
  CHECK(hears.marks_heard <= hears.marks);
  CHECK(hears.repeated_bytes < deaf.repeated_bytes);
}

TEST_CASE("ns-3: what is dropped is sent again, and counted") {
  Scenario s = scenario("gradplane-delay");
  s.queue_bytes = 16 << 10;
  const Outcome o = run(s);
  check_sound(s, o);
  CHECK(o.drops > 0);
  CHECK(o.repeated_bytes > 0);
  s.contestant = "tcp-cubic";
  const Outcome tcp = run(s);
  check_sound(s, tcp);
  CHECK(tcp.drops > 0);
  CHECK(tcp.repeated_bytes > 0);
}

TEST_CASE("ns-3: its TCPs differ, and a run does not depend on the one before") {
  std::vector<std::vector<Duration>> found;
  for (const char* contestant : {"tcp-reno", "tcp-cubic", "tcp-bbr", "tcp-dctcp"}) {
    const Scenario s = scenario(contestant, kMarkBytes);
    const Outcome o = run(s);
    check_sound(s, o);
    for (const auto& other : found) CHECK(other != pushes(o));
    found.push_back(pushes(o));
  }
  CHECK(pushes(run(scenario("tcp-reno", kMarkBytes))) == found[0]);
}

TEST_CASE("ns-3: everything follows from the seed") {
  for (const char* contestant : {"gradplane-grants", "tcp-cubic"}) {
    Scenario s = scenario(contestant, kMarkBytes);
    const Outcome first = run(s);
    const Outcome again = run(s);
    CHECK(pushes(first) == pushes(again));
    CHECK(first.marks == again.marks);
    s.seed = 2;
    CHECK(pushes(run(s)) != pushes(first));
  }
}

TEST_CASE("ns-3: a scenario out of bounds is refused") {
  Scenario s = scenario("gradplane-shares");
  const auto refused = [&](auto change) {
    Scenario other = s;
    change(other);
    CHECK_THROWS_AS(run(other), std::invalid_argument);
  };
  refused([](Scenario& o) { o.contestant = "tcp-vegas"; });
  refused([](Scenario& o) { o.senders = 0; });
  refused([](Scenario& o) { o.senders = gradplane::ns3_incast::kMaxSenders + 1; });
  refused([](Scenario& o) { o.push_bytes = 6; });
  refused([](Scenario& o) { o.push_bytes = gradplane::ns3_incast::kMaxPushBytes + 4; });
  refused([](Scenario& o) { o.rounds = 0; });
  refused([](Scenario& o) { o.mark_bytes = o.queue_bytes; });
}

TEST_CASE("ns-3: a run that does not end says so") {
  Scenario s = scenario("gradplane-shares");
  s.limit = Duration::ms(520);  // the first round takes from 500 to 510 ms
  const Outcome o = run(s);
  CHECK(o.failure == "only 1 of 3 rounds ended");
}
