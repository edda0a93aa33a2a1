// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/link_table.h"

#include <cmath>
#include <cstdlib>
#include <set>

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

/// A core that carries nothing keeps its old measurement. If another core has measured the link so
/// much later, the old one counts no more.
constexpr Duration kMuchOlder = Duration::seconds(5);

bool has_better_rate(const api::LinkSnapshot& link, const api::LinkSnapshot& than) {
  if (link.rate_confidence_percent == 0) return false;
  if (than.rate_confidence_percent == 0) return true;
  const std::int64_t later_ns = than.rate_age_ns - link.rate_age_ns;
  if (std::abs(later_ns) > kMuchOlder.count_ns()) return later_ns > 0;
  return link.rate_bits_per_second > than.rate_bits_per_second;
}

/// Adds what a core has measured of a link. Other cores' values of the same link come directly
/// before.
void add(std::vector<api::LinkSnapshot>& out, const api::LinkSnapshot& link) {
  if (out.empty() || out.back().node != link.node) return out.push_back(link);
  api::LinkSnapshot& sum = out.back();
  if (has_better_rate(link, sum)) {
    sum.rate_bits_per_second = link.rate_bits_per_second;
    sum.rate_is_lower_bound = link.rate_is_lower_bound;
    sum.rate_confidence_percent = link.rate_confidence_percent;
    sum.rate_age_ns = link.rate_age_ns;
  }
  if (link.rtt_ns != 0 && (sum.rtt_ns == 0 || link.rtt_ns < sum.rtt_ns)) {
    sum.rtt_ns = link.rtt_ns;
    sum.rtt_age_ns = link.rtt_age_ns;
  }
  if (link.loss_confidence_percent > sum.loss_confidence_percent) {
    sum.loss_ppm = link.loss_ppm;
    sum.loss_confidence_percent = link.loss_confidence_percent;
    sum.loss_age_ns = link.loss_age_ns;
  }
}

}  // namespace

void LinkTable::update(const api::EngineSnapshot& snapshot, Instant now, std::size_t core) {
  for (std::size_t l = 0; l < snapshot.link_count; ++l) {
    entries_[{snapshot.links[l].node, core}] = {.link = snapshot.links[l], .taken_at = now};
  }
}

std::vector<api::LinkSnapshot> LinkTable::take_updated(Instant now) {
  std::set<std::uint16_t> nodes;
  for (const auto& [key, entry] : entries_) {
    if (entry.taken_at == now) nodes.insert(key.first);
  }
  std::vector<api::LinkSnapshot> all;
  for (const auto& [key, entry] : entries_) {
    if (nodes.contains(key.first)) add(all, aged(entry.link, now - entry.taken_at));
  }
  if (all.size() <= api::kSnapshotLinks) return all;
  std::vector<api::LinkSnapshot> out;
  for (std::size_t l = 0; l < api::kSnapshotLinks; ++l) out.push_back(all[next_++ % all.size()]);
  return out;
}

std::vector<api::LinkSnapshot> LinkTable::links(Instant now) const {
  std::vector<api::LinkSnapshot> out;
  for (const auto& [key, entry] : entries_) {
    const api::LinkSnapshot link = aged(entry.link, now - entry.taken_at);
    if (link.rate_confidence_percent == 0 && link.rtt_ns == 0 && link.loss_confidence_percent == 0)
      continue;
    add(out, link);
  }
  return out;
}

}  // namespace gradplane::daemon
