// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "control/session/link_reports.h"

namespace gradplane::testing {

/// A sample of the link from `from` with full confidence.
inline protocol::LinkSample sample_of(api::NodeId from, std::uint64_t bits_per_s) {
  protocol::LinkSample sample;
  sample.from = from;
  sample.bits_per_s = bits_per_s;
  sample.rate_confidence = 100;
  return sample;
}

}  // namespace gradplane::testing
