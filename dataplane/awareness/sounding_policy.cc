// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/awareness/sounding_policy.h"

namespace gradplane::awareness {

bool SoundingPolicy::begin(Instant now, std::size_t link, const RateEstimate& known,
                           std::uint64_t ready) {
  Link& l = links_[link];
  const bool is_known = !known.is_lower_bound && known.confidence >= kSoundingConfidence;
  if (is_known || ready < kSoundingBlocks || now < l.next) return false;
  promised_ -= l.left;  // what a sounding did not use when its time was over
  l.left = 0;
  if ((promised_ + kSoundingBlocks) * kSoundingOneOf > blocks_) return false;
  promised_ += kSoundingBlocks;
  l = {.left = kSoundingBlocks, .until = now + kSoundingTime, .next = now + kSoundingPause};
  return true;
}

void SoundingPolicy::on_sent(Instant now, std::size_t link) {
  ++blocks_;
  if (!is_sounding(now, link)) return;
  ++sounding_blocks_;
  --links_[link].left;
}

}  // namespace gradplane::awareness
