// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <memory>
#include <set>

#include "control/daemon/link_table.h"
#include "control/daemon/status.h"
#include "tests/support/catch.h"
#include "tests/unit/daemon_bench.h"

using namespace gradplane;
using namespace gradplane::daemon;

namespace {

constexpr Instant kBegin = Instant::from_ns(1'000'000'000);

std::unique_ptr<api::EngineSnapshot> snapshot_of(std::initializer_list<api::LinkSnapshot> links) {
  auto snapshot = std::make_unique<api::EngineSnapshot>();
  for (const api::LinkSnapshot& link : links) snapshot->links[snapshot->link_count++] = link;
  return snapshot;
}

api::LinkSnapshot measured(std::uint16_t node, std::uint64_t rate) {
  return {.node = node,
          .rate_bits_per_second = rate,
          .rate_is_lower_bound = true,
          .rate_confidence_percent = 100,
          .rate_age_ns = Duration::seconds(1).count_ns(),
          .rtt_ns = 5,
          .rtt_age_ns = Duration::seconds(2).count_ns(),
          .loss_ppm = 6,
          .loss_confidence_percent = 40,
          .loss_age_ns = Duration::seconds(3).count_ns()};
}

}  // namespace

TEST_CASE("links of several snapshots are known together, each as last seen") {
  LinkTable table;
  table.update(*snapshot_of({measured(7, 70), measured(3, 30)}), kBegin);
  table.update(*snapshot_of({measured(5, 50), measured(7, 71)}), kBegin);
  const auto links = table.links(kBegin);
  REQUIRE(links.size() == 3);
  CHECK(links[0].node == 3);
  CHECK(links[1].node == 5);
  CHECK(links[2].node == 7);
  CHECK(links[2].rate_bits_per_second == 71);
  CHECK(links[2].rate_is_lower_bound);
}

TEST_CASE("of what several cores say of a link, the highest rate counts unless it is old") {
  LinkTable table;
  table.update(*snapshot_of({measured(7, 70)}), kBegin, 0);
  table.update(*snapshot_of({measured(7, 30)}), kBegin, 1);
  REQUIRE(table.links(kBegin).size() == 1);
  CHECK(table.links(kBegin)[0].rate_bits_per_second == 70);
  // Since then the first core has had nothing to send, so only the second has measured.
  const Instant later = kBegin + Duration::seconds(6);
  table.update(*snapshot_of({measured(7, 31)}), later, 1);
  CHECK(table.links(later)[0].rate_bits_per_second == 31);
  CHECK(table.links(later)[0].rate_age_ns == Duration::seconds(1).count_ns());
  REQUIRE(table.take_updated(later).size() == 1);
  CHECK(table.take_updated(later)[0].rate_bits_per_second == 31);
}

TEST_CASE("links that do not fit one report are in the next one") {
  LinkTable table;
  const auto first = std::make_unique<api::EngineSnapshot>();
  const auto second = std::make_unique<api::EngineSnapshot>();
  for (std::uint16_t l = 0; l < api::kSnapshotLinks; ++l) {
    first->links[first->link_count++] = measured(l, 1);
    second->links[second->link_count++] =
        measured(static_cast<std::uint16_t>(l + api::kSnapshotLinks), 1);
  }
  table.update(*first, kBegin, 0);
  table.update(*second, kBegin, 1);
  std::set<std::uint16_t> told;
  for (int report = 0; report < 2; ++report) {
    const auto links = table.take_updated(kBegin);
    CHECK(links.size() == api::kSnapshotLinks);
    for (const api::LinkSnapshot& link : links) told.insert(link.node);
  }
  CHECK(told.size() == 2 * api::kSnapshotLinks);
}

TEST_CASE("what is known of a link grows old between snapshots, and is forgotten") {
  LinkTable table;
  table.update(*snapshot_of({measured(7, 70)}), kBegin);
  const auto later = table.links(kBegin + Duration::seconds(15));
  REQUIRE(later.size() == 1);
  CHECK(later[0].rate_age_ns == Duration::seconds(16).count_ns());
  CHECK(later[0].rtt_age_ns == Duration::seconds(17).count_ns());
  CHECK(later[0].loss_age_ns == Duration::seconds(18).count_ns());
  CHECK(later[0].rate_confidence_percent == 50);
  CHECK(later[0].loss_confidence_percent == 20);
  // The sample of the loss is the oldest, and that of the rate the newest.
  const auto almost = table.links(kBegin + Duration::ms(58'500));
  REQUIRE(almost.size() == 1);
  CHECK(almost[0].loss_confidence_percent == 0);
  CHECK(almost[0].rtt_ns == 0);
  CHECK(almost[0].rate_confidence_percent > 0);
  CHECK(table.links(kBegin + Duration::seconds(61)).empty());
}

TEST_CASE("a link of which nothing is known is not told") {
  LinkTable table;
  table.update(*snapshot_of({{.node = 4}}), kBegin);
  CHECK(table.links(kBegin).empty());
  table.update(*snapshot_of({{.node = 4, .rtt_ns = 9}}), kBegin);
  CHECK(table.links(kBegin).size() == 1);
}

TEST_CASE("a peer is alive while it is heard, by the session or by a job, and silent after that") {
  const config::Config config = daemon::testing::three_nodes();  // suspect_after is 3 s
  const auto snapshot = snapshot_of({});
  std::vector<session::PeerView> views(1);
  views[0].node = 1;
  views[0].connected = true;
  const auto peers = [&] { return peer_status(config, views, *snapshot); };
  const auto state = [&] { return peers().at(0).state; };
  CHECK(peers().size() == 1);
  CHECK(state() == "unknown");
  views[0].silence = Duration::seconds(3);
  CHECK(state() == "alive");
  views[0].silence = Duration::seconds(20);  // the connection is still open
  CHECK(state() == "silent");
  CHECK(peers()[0].silence_ns == 20'000'000'000);

  snapshot->job_count = 1;
  api::JobSnapshot& job = snapshot->jobs[0];
  job.peer_count = 2;
  job.peers[0].node = 1;
  job.peers[1].node = 2;
  CHECK(state() == "silent");
  REQUIRE(peers().size() == 2);
  CHECK(peers()[1].state == "unknown");  // blocks go to node 2, and nothing has come from it
  job.peers[0].silence_ns = job.peers[1].silence_ns = Duration::seconds(1).count_ns();
  CHECK(state() == "alive");
  CHECK(peers()[1].state == "alive");  // the session has no connection to node 2
  job.peers[0].silence_ns = Duration::seconds(9).count_ns();
  CHECK(state() == "silent");
  CHECK(peers()[0].silence_ns == 9'000'000'000);
  views[0].silence = Duration::seconds(2);
  CHECK(state() == "alive");
}
