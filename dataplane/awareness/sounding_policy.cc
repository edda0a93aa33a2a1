// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/awareness/sounding_policy.h"

#include <algorithm>
#include <utility>

namespace gradplane::awareness {
namespace {

constexpr std::uint64_t kPrice = kSoundingBlocks * kSoundingOneOf;
constexpr std::uint64_t kMaxCredit = kSavedSoundings * kPrice;

}  // namespace

bool SoundingPolicy::begin(Instant now, Sounding& link, std::uint64_t ready) {
  if (link.is_on() || ready < kSoundingBlocks || now < link.next) return false;
  if (credit_ < kPrice) return false;
  credit_ -= kPrice;
  link = {.left = kSoundingBlocks, .next = now + kSoundingPause};
  return true;
}

void SoundingPolicy::on_sent(Sounding& link) {
  ++blocks_;
  credit_ = std::min(credit_ + 1, kMaxCredit);
  if (!link.is_on()) return;
  ++sounding_blocks_;
  --link.left;
}

void SoundingPolicy::end(Sounding& link) {
  credit_ = std::min(credit_ + std::exchange(link.left, 0) * kSoundingOneOf, kMaxCredit);
}

}  // namespace gradplane::awareness
