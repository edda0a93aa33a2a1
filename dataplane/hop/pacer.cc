// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/pacer.h"

#include <algorithm>

namespace gradplane::hop {
namespace {

/// Pacing a little below the link's rate prevents a standing queue (docs/protocol.md, section 6).
constexpr std::uint64_t kPacedPercent = 99;

Duration time_of(std::size_t bytes, std::uint64_t rate) {
  return Duration::ns(
      static_cast<std::int64_t>(static_cast<double>(bytes) * 8e9 / static_cast<double>(rate)));
}

}  // namespace

Pacer::Pacer(std::uint64_t rate_bits_per_second, std::size_t burst)
    : rate_(rate_bits_per_second * kPacedPercent / 100),
      burst_(rate_ == 0 ? Duration{} : time_of(burst, rate_)) {}

void Pacer::set_link_rate(Instant now, std::uint64_t rate_bits_per_second, std::size_t burst) {
  set_rate(now, rate_bits_per_second * kPacedPercent / 100, burst);
}

void Pacer::set_rate(Instant now, std::uint64_t rate_bits_per_second, std::size_t burst) {
  if (rate_bits_per_second == 0) {
    free_at_ = std::min(free_at_, now);
  } else if (rate_ > 0 && free_at_ > now) {
    const double scale = static_cast<double>(rate_) / static_cast<double>(rate_bits_per_second);
    const auto left_ns = static_cast<double>((free_at_ - now).count_ns());
    free_at_ = now + Duration::ns(static_cast<std::int64_t>(left_ns * scale));
  }
  rate_ = rate_bits_per_second;
  burst_ = rate_ == 0 ? Duration{} : time_of(burst, rate_);
}

void Pacer::on_sent(Instant now, std::size_t bytes) {
  if (rate_ == 0) return;
  free_at_ = std::max(free_at_, now - burst_) + time_of(bytes, rate_);
}

}  // namespace gradplane::hop
