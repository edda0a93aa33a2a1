// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Receivers that are selected one update after the other: properties of single selections, and of
// trainings with losses and deaths.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "control/plan/selection_online.h"
#include "control/plan/selection_rates.h"
#include "tests/property/fair_links.h"
#include "tests/property/seeds.h"
#include "tests/property/staleness_lab.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::plan;
using namespace gradplane::testing;

namespace {

constexpr std::uint64_t kUpdateBytes = 1'000'000;

/// A moment in a training: the multicasts in progress, and what each has sent.
struct Moment {
  OnlineRequest request;
  std::vector<Multicast> multicasts;
  Meetings meetings{0};

  std::size_t ranks() const { return request.selection.ranks.size(); }
  bool must_keep(const Multicast& multicast, std::size_t to) const {
    const auto left = static_cast<double>(multicast.remaining_bytes[to]);
    return left == 0 || left < request.droppable_share * static_cast<double>(kUpdateBytes) ||
           meetings.rounds_apart(multicast.from, to) >= request.selection.freshness;
  }
};

Bitmap drawn_set(std::size_t size, unsigned percent, std::mt19937_64& random) {
  Bitmap made(size);
  made.reset(size);
  for (std::size_t n = 0; n < size; ++n) {
    if (random() % 100 < percent) made.set(n);
  }
  return made;
}

Moment drawn_moment(std::mt19937_64& random) {
  Moment made;
  const std::size_t ranks = 1 + random() % 9;
  SelectionRequest& selection = made.request.selection;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    selection.ranks.push_back({1'000'000 + random() % 9'000'000, 1'000'000 + random() % 9'000'000});
  selection.update_bytes = kUpdateBytes;
  selection.receivers = static_cast<std::uint32_t>(random() % 5);
  selection.freshness = static_cast<std::uint32_t>(1 + random() % 4);
  if (random() % 2 == 0) selection.replication = Replication::kNetwork;
  made.request.droppable_share = static_cast<double>(random() % 5) / 4;
  made.request.stretch = 1 + static_cast<double>(random() % 3) / 4;
  made.meetings = Meetings(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t round = random() % 4; round > 0; --round)
      made.meetings.on_update(rank, drawn_set(ranks, 40, random));
    if (random() % 3 == 0) continue;
    Multicast multicast;
    multicast.from = rank;
    multicast.receivers = drawn_set(ranks, 80, random);
    multicast.receivers.clear(rank);
    multicast.remaining_bytes.assign(ranks, 0);
    const std::uint64_t left = random() % (kUpdateBytes + 1);
    for (std::size_t to = 0; to < ranks; ++to) {
      if (!multicast.receivers.test(to)) continue;
      const bool is_one_copy = selection.replication == Replication::kNetwork;
      multicast.remaining_bytes[to] = is_one_copy ? left : random() % (kUpdateBytes + 1);
    }
    if (random() % 3 == 0) multicast.blocked_s = static_cast<double>(random() % 100) / 10;
    multicast.is_awaited = random() % 3 == 0;
    made.multicasts.push_back(std::move(multicast));
  }
  return made;
}

void check_receivers(const Moment& moment, const std::vector<OnlineSelection>& made) {
  REQUIRE(made.size() == moment.multicasts.size());
  for (std::size_t m = 0; m < made.size(); ++m) {
    const Multicast& multicast = moment.multicasts[m];
    const std::size_t open = multicast.receivers.count();
    const std::size_t least = std::min<std::size_t>(moment.request.selection.receivers, open);
    CHECK(made[m].receivers.count() >= least);
    for (std::size_t to = 0; to < moment.ranks(); ++to) {
      const bool had = multicast.receivers.test(to);
      if (made[m].receivers.test(to)) CHECK(had);
      if (had && moment.must_keep(multicast, to)) CHECK(made[m].receivers.test(to));
    }
    CHECK(made[m].seconds >= multicast.blocked_s);
  }
}

/// The load of links if each multicast is sent at the rate that its time needs; 1 is full.
class Load {
 public:
  Load(const Moment& moment, const std::vector<OnlineSelection>& made)
      : moment_(moment), made_(made), downs_(moment.ranks()), ups_(made.size()) {
    for (std::size_t m = 0; m < made.size(); ++m) {
      for (std::size_t to = 0; to < moment.ranks(); ++to) {
        if (made[m].receivers.test(to)) add(m, to);
      }
    }
  }
  void add(std::size_t m, std::size_t to) {
    const double rate = rate_of(m, to);
    if (rate == 0) return;
    downs_[to] += rate / static_cast<double>(ranks()[to].down_bits_per_s);
    const double up = rate / static_cast<double>(ranks()[moment_.multicasts[m].from].up_bits_per_s);
    const bool is_one_copy = moment_.request.selection.replication == Replication::kNetwork;
    ups_[m] = is_one_copy ? std::max(ups_[m], up) : ups_[m] + up;
  }
  double fullest() const {
    double fullest = 0;
    for (const std::vector<double>* loads : {&downs_, &ups_}) {
      for (const double load : *loads) fullest = std::max(fullest, load);
    }
    return fullest;
  }

 private:
  const std::vector<RankCapacity>& ranks() const { return moment_.request.selection.ranks; }
  double rate_of(std::size_t m, std::size_t to) const {
    const auto bits = 8 * static_cast<double>(moment_.multicasts[m].remaining_bytes[to]);
    return bits == 0 ? 0 : bits / made_[m].seconds;
  }

  const Moment& moment_;
  const std::vector<OnlineSelection>& made_;
  std::vector<double> downs_;
  std::vector<double> ups_;
};

StalenessCase drawn_case(std::mt19937_64& random) {
  StalenessCase made;
  made.ranks = 2 + random() % 14;
  made.request.selection.update_bytes = 1 + random() % 1'000'000'000;
  made.request.selection.receivers = static_cast<std::uint32_t>(random() % (made.ranks + 1));
  made.request.selection.freshness = static_cast<std::uint32_t>(random() % 5);
  if (random() % 2 == 0) made.request.selection.replication = Replication::kNetwork;
  made.request.droppable_share = static_cast<double>(random() % 5) / 4;
  made.request.stretch = 1 + static_cast<double>(random() % 4) / 10;
  made.bound_rounds = static_cast<std::uint32_t>(random() % 5);
  made.selector = static_cast<Selector>(random() % 3);
  made.sharing = static_cast<Sharing>(random() % 3);
  made.workload = static_cast<Workload>(random() % 3);
  made.straggler = 1 + static_cast<double>(random() % 3);
  made.restarts_per_s = static_cast<double>(random() % 3);
  for (std::size_t dead = random() % made.ranks; dead > 1; --dead)
    made.deaths.push_back({0.1 * static_cast<double>(random() % 300), random() % made.ranks});
  made.seed = random();
  return made;
}

}  // namespace

TEST_CASE("a selection keeps what it must, adds nobody again, and has the least receivers") {
  Seeds(500).each("plan_staleness", [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const Moment moment = drawn_moment(random);
    check_receivers(moment, select_online(moment.request, moment.multicasts, moment.meetings));
    check_receivers(moment,
                    select_online_as_published(moment.request, moment.multicasts, moment.meetings));
    for (const Multicast& multicast : moment.multicasts) {
      const auto draw = [&] { return random(); };
      const Bitmap made =
          select_online_at_random(moment.request.selection, multicast, moment.meetings, draw);
      const std::size_t open = multicast.receivers.count();
      CHECK(made.count() >= std::min<std::size_t>(moment.request.selection.receivers, open));
      for (std::size_t to = 0; to < moment.ranks(); ++to) {
        const std::uint32_t apart = moment.meetings.rounds_apart(multicast.from, to);
        const bool is_demanded = apart >= moment.request.selection.freshness;
        if (made.test(to)) CHECK(multicast.receivers.test(to));
        if (multicast.receivers.test(to) && is_demanded) CHECK(made.test(to));
      }
    }
  });
}

TEST_CASE("all times hold together, and no receiver more would fit into them") {
  Seeds(500).each("plan_staleness", [](std::uint64_t seed) {
    constexpr double kRounding = 1 + 1e-6;
    std::mt19937_64 random(seed);
    const Moment moment = drawn_moment(random);
    const auto made = select_online(moment.request, moment.multicasts, moment.meetings);
    const Load load(moment, made);
    CHECK(load.fullest() <= kRounding);
    for (std::size_t m = 0; m < made.size(); ++m) {
      const Multicast& multicast = moment.multicasts[m];
      for (std::size_t to = 0; to < moment.ranks(); ++to) {
        if (!multicast.receivers.test(to) || made[m].receivers.test(to)) continue;
        Load more = load;
        more.add(m, to);
        CHECK(more.fullest() > 1 / kRounding);
      }
      const Urgency otherwise = multicast.blocked_s > 0 ? Urgency::kAhead : Urgency::kNormal;
      CHECK(made[m].urgency == (multicast.is_awaited ? Urgency::kAwaited : otherwise));
    }
  });
}

TEST_CASE("a multicast alone goes to the receivers that have it first") {
  for (const Replication replication : {Replication::kNetwork, Replication::kSender}) {
    OnlineRequest request;
    request.selection = {.ranks = {{8, 8}, {8, 2}, {8, 8}, {8, 1}, {8, 4}},
                         .update_bytes = kUpdateBytes,
                         .receivers = 2,
                         .freshness = UINT32_MAX,
                         .replication = replication};
    request.stretch = 1;
    Multicast multicast;
    multicast.receivers = Bitmap(5);
    multicast.receivers.reset(5);
    multicast.receivers.set_range(1, 5);
    multicast.remaining_bytes.assign(5, kUpdateBytes);
    const auto made = select_online(request, {&multicast, 1}, Meetings(5)).front();
    CHECK(made.receivers.count() == 2);
    CHECK(made.receivers.test(2));
    CHECK(made.receivers.test(4));
    CHECK(made.seconds == Approx(8e6 / 4));
    request.stretch = 2;
    CHECK(select_online(request, {&multicast, 1}, Meetings(5)).front().receivers.test(1));
  }
}

TEST_CASE("a sender that has to wait anyway chooses last") {
  OnlineRequest request;
  request.selection = {.ranks = {{8, 8}, {8, 8}, {8, 8}, {8, 5}},
                       .update_bytes = kUpdateBytes,
                       .receivers = 1,
                       .freshness = UINT32_MAX,
                       .replication = Replication::kNetwork};
  request.stretch = 1;
  std::vector<Multicast> multicasts(2);
  for (std::size_t from = 0; from < multicasts.size(); ++from) {
    multicasts[from].from = from;
    multicasts[from].receivers = Bitmap(4);
    multicasts[from].receivers.reset(4);
    multicasts[from].receivers.set_range(2, 4);
    multicasts[from].remaining_bytes.assign(4, kUpdateBytes);
  }
  multicasts[0].blocked_s = 1;
  for (const auto& made : {select_online(request, multicasts, Meetings(4)),
                           select_online_as_published(request, multicasts, Meetings(4))}) {
    CHECK(made[0].seconds == Approx(8e6 / 5));
    CHECK(made[1].seconds == Approx(8e6 / 8));
  }
}

TEST_CASE("the times of fair shares are those of progressive filling") {
  Seeds(300).each("plan_staleness", [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const Moment moment = drawn_moment(random);
    const bool is_one_copy = moment.request.selection.replication == Replication::kNetwork;
    std::vector<Bitmap> receivers;
    std::vector<LinkFlow> flows;
    std::vector<std::size_t> whose;
    for (const Multicast& multicast : moment.multicasts) {
      receivers.push_back(multicast.receivers);
      LinkFlow flow;
      flow.from = multicast.from;
      for (std::size_t to = 0; to < moment.ranks(); ++to) {
        if (multicast.receivers.test(to) && multicast.remaining_bytes[to] > 0)
          flow.receivers.push_back(to);
      }
      if (is_one_copy && !flow.receivers.empty()) flows.push_back(flow);
      for (std::size_t n = 0; !is_one_copy && n < flow.receivers.size(); ++n)
        flows.push_back({flow.from, {flow.receivers[n]}});
      whose.resize(flows.size(), receivers.size() - 1);
    }
    FairLinks(moment.request.selection.ranks).share(flows);
    std::vector<double> seconds(receivers.size());
    for (std::size_t f = 0; f < flows.size(); ++f) {
      for (const std::size_t to : flows[f].receivers) {
        const auto bytes = static_cast<double>(moment.multicasts[whose[f]].remaining_bytes[to]);
        seconds[whose[f]] = std::max(seconds[whose[f]], 8 * bytes / flows[f].bits_per_s);
      }
    }
    const auto made = fair_seconds(moment.request.selection, moment.multicasts, receivers);
    REQUIRE(made.size() == seconds.size());
    for (std::size_t m = 0; m < made.size(); ++m)
      CHECK(made[m] == Approx(seconds[m]).epsilon(1e-4));
  });
}

TEST_CASE("trainings keep all bounds through delays, losses and deaths") {
  std::uint64_t dropped = 0;
  std::uint64_t restarts = 0;
  Seeds(100).each("plan_staleness", [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    StalenessCase settings = drawn_case(random);
    const StalenessResult result = train(settings);
    CHECK(result.added_again == 0);
    CHECK(result.too_few == 0);
    CHECK(result.too_long_apart == 0);
    CHECK(result.too_far_ahead == 0);
    CHECK(result.idle_in_vain == 0);
    CHECK(result.fewest_rounds > 0);
    CHECK(train(settings).digest == result.digest);
    ++settings.seed;
    CHECK(train(settings).digest != result.digest);
    dropped += result.dropped;
    restarts += result.restarts;
  });
  if (Seeds(100).count < 100) return;
  CHECK(dropped > 100);
  CHECK(restarts > 100);
}

TEST_CASE("nobody waits for a dead rank once it is told") {
  StalenessCase settings =
      published_case(Selector::kOnline, Sharing::kUrgency, Workload::kTransformer);
  settings.ranks = 10;
  settings.request.selection.receivers = 3;
  settings.straggler = 1000;
  const StalenessResult stuck = train(settings);
  CHECK(stuck.fewest_rounds == 0);
  CHECK(stuck.updates == 9 * (settings.bound_rounds + 1));
  CHECK(stuck.utilisation < 0.3);
  settings.deaths = {{10, 0}};
  const StalenessResult freed = train(settings);
  CHECK(freed.fewest_rounds > 20);
}
