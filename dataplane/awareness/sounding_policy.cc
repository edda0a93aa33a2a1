// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/awareness/sounding_policy.h"

#include <utility>

namespace gradplane::awareness {

bool SoundingPolicy::begin(Instant now, Sounding& link, std::uint64_t ready) {
  if (link.is_on() || ready < kSoundingBlocks || now < link.next) return false;
  if ((promised_ + kSoundingBlocks) * kSoundingOneOf > blocks_) return false;
  promised_ += kSoundingBlocks;
  link = {.left = kSoundingBlocks, .next = now + kSoundingPause};
  return true;
}

void SoundingPolicy::on_sent(Sounding& link) {
  ++blocks_;
  if (!link.is_on()) return;
  ++sounding_blocks_;
  --link.left;
}

void SoundingPolicy::end(Sounding& link) {
  promised_ -= std::exchange(link.left, 0);
}

}  // namespace gradplane::awareness
