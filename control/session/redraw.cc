// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/redraw.h"

#include <algorithm>

namespace gradplane::session {
namespace {

constexpr std::uint32_t kMostDoublings = 10;

}  // namespace

bool is_worth_switch(std::optional<Duration> now, Duration then, Duration price,
                     const RedrawSettings& settings) {
  if (!now) return true;
  const double saved = 1 - then.to_seconds() / std::max(now->to_seconds(), 1e-9);
  const Duration paid = std::min(price, kMostSwitchPrice);
  return saved >= settings.gain && saved * kRedrawHorizon.to_seconds() > paid.to_seconds();
}

void Redraw::on_ask(Instant now, std::uint64_t version) {
  if (asked_version_ != version) earlies_ = 0;
  asked_version_ = version;
  asked_at_ = now;
  again_at_.reset();
}

void Redraw::on_kept(Instant now, const RedrawSettings& settings) {
  const Duration pause = std::min(settings.every, kKeptPause);
  next_at_ = std::max(begun_at_ + settings.every,
                      now + std::max(pause, (now - asked_at_) * kRestForPlanning));
}

void Redraw::on_early(Instant now, const RedrawSettings& settings) {
  on_kept(now, settings);
  again_at_ = now + std::min(kKeptPause * (std::int64_t{1} << earlies_), kLongestEarlyPause);
  earlies_ = std::min(earlies_ + 1, kMostDoublings);
}

void Redraw::on_switch(Instant now, const RedrawSettings& settings) {
  begun_at_ = now;
  next_at_ = now + settings.every;
}

void Redraw::on_failure(const RedrawSettings& settings) {
  failures_ = std::min(failures_ + 1, kMostDoublings);
  const Duration pause = settings.every * (std::int64_t{1} << failures_);
  next_at_ = std::max(begun_at_, asked_at_) +
             std::min(pause, std::max(kLongestRedrawPause, settings.every));
  asked_version_.reset();  // the planner must be asked about this network again
}

Instant Redraw::due(std::uint64_t version, const RedrawSettings& settings) const {
  if (!settings.enabled || !depends_on_network_) return Instant::never();
  if (asked_version_ != version) return next_at_;
  return again_at_ ? std::max(next_at_, *again_at_) : Instant::never();
}

}  // namespace gradplane::session
