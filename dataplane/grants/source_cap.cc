// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/grants/source_cap.h"

#include <algorithm>

namespace gradplane::grants {
namespace {

constexpr double kMaxCut = 0.5;

}  // namespace

void SourceCap::on_granted(std::uint32_t blocks, std::uint32_t total, std::uint32_t unused,
                           Instant now) {
  if (watching_) return;
  watching_ = true;
  sampled_ = false;
  watched_from_ = total - blocks;
  watched_total_ = total;
  watched_unused_ = unused;
  watched_at_ = now;
}

std::optional<Duration> SourceCap::round_trip_sample(std::uint32_t sent_blocks, Instant now) {
  if (!watching_ || sampled_) return std::nullopt;
  if (static_cast<std::int32_t>(sent_blocks - watched_from_) <= 0) return std::nullopt;
  sampled_ = true;
  return now - watched_at_;
}

void SourceCap::on_used(std::uint32_t sent_blocks, Duration in_time, std::uint32_t window,
                        Instant now) {
  if (!watching_ || static_cast<std::int32_t>(sent_blocks - watched_total_) < 0) return;
  watching_ = false;
  double cut = path_.take_mark_cut();
  cut = std::max(cut, path_.loss_cut());
  if (path_.has_loss_verdict()) path_.forget_losses();
  const Duration took = now - watched_at_;
  const Duration allowed = std::max(in_time, min_credit_took_ * 3 / 2);
  if (watched_unused_ <= kMin) min_credit_took_ = took;
  if (took > allowed) cut = std::max(cut, 1 - allowed.to_seconds() / took.to_seconds());
  if (cut > 0) {
    const double kept = watched_unused_ * (1 - std::min(cut, kMaxCut));
    blocks_ = std::max(static_cast<std::uint32_t>(kept), kMin);
  } else if (blocks_ != UINT32_MAX && watched_unused_ >= blocks_ / 2) {
    blocks_ += blocks_ / 4 + 1;
    if (blocks_ > window) blocks_ = UINT32_MAX;
  }
}

void SourceCap::on_expired(std::uint32_t unused) {
  // The grant stays watched: its long time may be all that can be learnt about the path.
  blocks_ = std::max(std::min(blocks_, unused) / 2, kMin);
}

}  // namespace gradplane::grants
