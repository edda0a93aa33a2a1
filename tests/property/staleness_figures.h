// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "tests/property/staleness_lab.h"

/// Trainings with the paper's parameters and with others, and their mean figures.
namespace gradplane::testing {

struct Figures {
  double utilisation = 0, scale = 0;
};

/// Means over `networks` networks.
inline Figures figures_of(StalenessCase settings, std::uint64_t networks = 2) {
  Figures mean;
  for (settings.seed = 1; settings.seed <= networks; ++settings.seed) {
    const StalenessResult result = train(settings);
    mean.utilisation += result.utilisation / static_cast<double>(networks);
    mean.scale += result.scale / static_cast<double>(networks);
  }
  return mean;
}

/// Means over the three workloads.
template <typename Change>
Figures mean_figures(Selector selector, Sharing sharing, const Change& change,
                     std::uint64_t networks = 2) {
  Figures mean;
  for (const Workload workload : {Workload::kLstm, Workload::kTransformer, Workload::kResnet}) {
    StalenessCase settings = published_case(selector, sharing, workload);
    change(settings);
    const Figures figures = figures_of(settings, networks);
    mean.utilisation += figures.utilisation / 3;
    mean.scale += figures.scale / 3;
  }
  return mean;
}

inline constexpr auto kUnchanged = [](StalenessCase&) {};
inline constexpr auto kLessStretch = [](StalenessCase& c) { c.request.stretch = 1.1; };
inline constexpr auto kNoStretch = [](StalenessCase& c) { c.request.stretch = 1; };
inline constexpr auto kDropsAlways = [](StalenessCase& c) { c.request.droppable_share = 0; };
inline constexpr auto kNoFreshness = [](StalenessCase& c) {
  c.request.selection.freshness = UINT32_MAX;
};
inline constexpr auto kSlowRank = [](StalenessCase& c) { c.straggler = 2; };
inline constexpr auto kMoreReceivers = [](StalenessCase& c) { c.request.selection.receivers = 20; };
/// The sender makes the copies. Updates are a fifth as large, because its link could not carry
/// more.
inline constexpr auto kSenderCopies = [](StalenessCase& c) {
  c.request.selection.replication = plan::Replication::kSender;
  c.request.selection.update_bytes /= 5;
};

}  // namespace gradplane::testing
