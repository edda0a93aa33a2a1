// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/link_table.h"

#include <cmath>

#include "dataplane/awareness/link_estimate.h"

namespace gradplane::daemon {
namespace {

std::uint8_t aged(std::uint8_t percent, double freshness) {
  return static_cast<std::uint8_t>(std::ceil(percent * freshness));
}

bool is_known(std::int64_t age_ns) {
  return age_ns <= awareness::kSampleLifetime.count_ns();
}

api::LinkSnapshot aged(api::LinkSnapshot link, Duration by) {
  const double freshness = awareness::freshness(by);
  link.rate_age_ns += by.count_ns();
  link.rtt_age_ns += by.count_ns();
  link.loss_age_ns += by.count_ns();
  link.rate_confidence_percent =
      is_known(link.rate_age_ns) ? aged(link.rate_confidence_percent, freshness) : 0;
  link.loss_confidence_percent =
      is_known(link.loss_age_ns) ? aged(link.loss_confidence_percent, freshness) : 0;
  if (!is_known(link.rtt_age_ns)) link.rtt_ns = 0;
  return link;
}

}  // namespace

void LinkTable::update(const api::EngineSnapshot& snapshot, Instant now) {
  for (std::size_t l = 0; l < snapshot.link_count; ++l) {
    entries_[snapshot.links[l].node] = {.link = snapshot.links[l], .taken_at = now};
  }
}

std::vector<api::LinkSnapshot> LinkTable::links(Instant now) const {
  std::vector<api::LinkSnapshot> out;
  for (const auto& [node, entry] : entries_) {
    const api::LinkSnapshot link = aged(entry.link, now - entry.taken_at);
    if (link.rate_confidence_percent == 0 && link.rtt_ns == 0 && link.loss_confidence_percent == 0)
      continue;
    out.push_back(link);
  }
  return out;
}

}  // namespace gradplane::daemon
