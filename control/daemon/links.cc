// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/links.h"

#include <algorithm>

#include "dataplane/base/time.h"

namespace gradplane::daemon {
namespace {

/// `ns` in units of `unit`, clamped to 0..`most`.
std::uint32_t in_units(std::int64_t ns, Duration unit, std::uint32_t most) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(ns / unit.count_ns(), 0, std::int64_t{most}));
}

std::uint32_t age_ms(std::int64_t ns) {
  return in_units(ns, Duration::ms(1), protocol::kMaxLinkAgeMs);
}

}  // namespace

std::vector<protocol::LinkSample> samples_of(const std::vector<api::LinkSnapshot>& links,
                                             std::uint16_t self) {
  std::vector<protocol::LinkSample> samples;
  for (std::size_t i = 0; i < std::min(links.size(), api::kSnapshotLinks); ++i) {
    const api::LinkSnapshot& link = links[i];
    protocol::LinkSample& sample = samples.emplace_back();
    sample.from = link.node;
    sample.to = self;
    sample.bits_per_s = std::min(link.rate_bits_per_second, protocol::kMaxLinkBitsPerSecond);
    sample.is_lower_bound = link.rate_is_lower_bound;
    sample.rate_confidence = std::min(link.rate_confidence_percent, protocol::kFullConfidence);
    sample.rate_age_ms = age_ms(link.rate_age_ns);
    sample.rtt_us = in_units(link.rtt_ns, Duration::us(1), protocol::kMaxLinkRttUs);
    sample.rtt_age_ms = age_ms(link.rtt_age_ns);
    sample.loss_ppm = std::min(link.loss_ppm, protocol::kMaxLinkLossPpm);
    sample.loss_confidence = std::min(link.loss_confidence_percent, protocol::kFullConfidence);
    sample.loss_age_ms = age_ms(link.loss_age_ns);
  }
  return samples;
}

}  // namespace gradplane::daemon
