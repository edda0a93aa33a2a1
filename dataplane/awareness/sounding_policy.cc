// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/awareness/sounding_policy.h"

#include <algorithm>
#include <utility>

namespace gradplane::awareness {
namespace {

constexpr std::uint64_t kPrice = kSoundingBlocks * kSoundingOneOf;
constexpr std::uint64_t kMaxCredit = kSavedSoundings * kPrice;
constexpr std::uint32_t kMostDoublings = 4;
static_assert(kSoundingPause * (std::int64_t{1} << kMostDoublings) >= kLongestSoundingPause);

}  // namespace

bool SoundingPolicy::may_begin(Instant now, const Sounding& link) const {
  return !link.is_on() && now >= link.next && credit_ >= kPrice;
}

void SoundingPolicy::begin(Instant now, Sounding& link, Duration pause) {
  credit_ -= kPrice;
  link.left = kSoundingBlocks;
  ++link.number;
  link.next = now + std::min(pause * (std::int64_t{1} << link.in_vain), kLongestSoundingPause);
  link.in_vain = std::min(link.in_vain + 1, kMostDoublings);
}

void SoundingPolicy::on_sent(Sounding& link) {
  ++packets_;
  credit_ = std::min(credit_ + 1, kMaxCredit);
  if (!link.is_on()) return;
  ++sounding_packets_;
  --link.left;
}

void SoundingPolicy::end(Sounding& link) {
  credit_ = std::min(credit_ + std::exchange(link.left, 0) * kSoundingOneOf, kMaxCredit);
}

}  // namespace gradplane::awareness
