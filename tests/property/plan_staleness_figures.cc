// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Figures of trainings under bounded staleness, against published ones.
#include "tests/property/staleness_figures.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::testing;

TEST_CASE("trainings take what is published for them") {
  struct Row {
    Workload workload;
    double random, online;
  };
  constexpr double kMargin = 0.03;
  for (const Row& row : {Row{Workload::kLstm, 0.63, 0.68}, Row{Workload::kTransformer, 0.65, 0.70},
                         Row{Workload::kResnet, 0.64, 0.70}}) {
    CAPTURE(static_cast<int>(row.workload));
    StalenessCase orpheus = published_case(Selector::kRandom, Sharing::kFair, row.workload);
    orpheus.request.selection.freshness = UINT32_MAX;
    const Figures random = figures_of(orpheus);
    CHECK(random.utilisation == Approx(row.random).margin(kMargin));
    CHECK(random.scale == Approx(0.30));
    const Figures online =
        figures_of(published_case(Selector::kOnline, Sharing::kUrgency, row.workload));
    CHECK(online.utilisation == Approx(row.online).margin(kMargin));
    CHECK(online.scale > 0.55);
  }
}

TEST_CASE("ranks compute more, and updates reach more, than with the published algorithm") {
  const Figures online = mean_figures(Selector::kOnline, Sharing::kUrgency, kUnchanged);
  const Figures by_time = mean_figures(Selector::kPublished, Sharing::kTime, kUnchanged);
  CHECK(online.utilisation > by_time.utilisation + 0.1);
  CHECK(online.scale > by_time.scale + 0.1);
  const Figures fair = mean_figures(Selector::kPublished, Sharing::kFair, kUnchanged);
  const Figures less = mean_figures(Selector::kOnline, Sharing::kUrgency, kLessStretch);
  CHECK(less.utilisation > fair.utilisation - 0.01);
  CHECK(less.scale > fair.scale + 0.01);
  const Figures slow = mean_figures(Selector::kOnline, Sharing::kUrgency, kSlowRank);
  const Figures slow_fair = mean_figures(Selector::kPublished, Sharing::kFair, kSlowRank);
  CHECK(slow.utilisation > slow_fair.utilisation + 0.05);
  CHECK(slow.scale > slow_fair.scale);
}

TEST_CASE("transfers that may not be dropped late reach more, and ranks compute less") {
  const Figures late = mean_figures(Selector::kOnline, Sharing::kUrgency, kUnchanged);
  const Figures always = mean_figures(Selector::kOnline, Sharing::kUrgency, kDropsAlways);
  CHECK(late.scale / always.scale > 1.3);
  CHECK(late.utilisation / always.utilisation > 0.85);
  const Figures without = mean_figures(Selector::kOnline, Sharing::kUrgency, kNoFreshness);
  CHECK(without.utilisation == Approx(late.utilisation).margin(0.02));
  CHECK(without.scale == Approx(late.scale).margin(0.02));
}
