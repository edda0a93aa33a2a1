// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "control/daemon/ranks.h"

namespace gradplane::daemon {
namespace {

constexpr double kMillion = 1e6;
constexpr double kPercent = 100;

std::string warning_of(const Rank& rank, const protocol::Drift& said, double limit) {
  return fmt::format(
      "job {}: the parameters of rank {} were {:.3g} % away from the mean at step {} (distance "
      "{:.4g}, norm of the mean {:.4g}), and training.drift_limit is {:.3g} %; take the mean more "
      "often (training.average_every), raise training.receivers, or lower the learning rate",
      rank.attach.label, rank.attach.rank, kPercent * relative_drift(said), said.step,
      said.distance, said.norm, kPercent * limit);
}

}  // namespace

bool RankDrift::add(const protocol::Drift& said, double limit) {
  last_ = said;
  ++averages_;
  const bool is_over = relative_drift(said) > limit;
  const bool tells = is_over && !is_told_ && averages_ >= next_warning_;
  if (tells) next_warning_ = averages_ * 2;
  if (tells || !is_over) is_told_ = tells;
  return tells;
}

double relative_drift(const protocol::Drift& drift) {
  constexpr double kMost = std::numeric_limits<double>::max();
  if (drift.distance == 0) return 0;
  return drift.norm > 0 ? std::min(drift.distance / drift.norm, kMost) : kMost;
}

Result<std::string> take_drift(const config::TrainingConfig& training, Rank* rank,
                               const protocol::Drift& said) {
  if (rank == nullptr) return Error{"drift before attach"};
  if (!training.is_selective())
    return Error{"drift, but training.mode is exact here: all ranks have the same parameters"};
  if (!rank->told_ready) return Error{"drift before the job was ready"};
  const double limit = training.drift_limit_ppm / kMillion;
  if (!rank->drift.add(said, limit)) return std::string();
  return warning_of(*rank, said, limit);
}

}  // namespace gradplane::daemon
