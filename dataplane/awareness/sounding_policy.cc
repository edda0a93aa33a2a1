// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/awareness/sounding_policy.h"

#include <algorithm>
#include <utility>

namespace gradplane::awareness {
namespace {

constexpr std::uint32_t kPrice = kSoundingBlocks * kSoundingOneOf;
constexpr std::uint32_t kMaxReserved = kReservedSoundings * kPrice;
constexpr std::uint32_t kMaxCredit = kSavedSoundings * kPrice - kMaxReserved;
constexpr std::uint32_t kMostDoublings = 5;
static_assert(kSoundingPause * (std::int64_t{1} << kMostDoublings) >= kLongestSoundingPause);

}  // namespace

bool SoundingPolicy::may_begin(Instant now, const Sounding& link, Duration pause,
                               bool is_urgent) const {
  // The last one may just not have been answered yet.
  const std::uint32_t doublings = link.in_vain > 0 ? link.in_vain - 1 : 0;
  const Duration longer = pause * (std::int64_t{1} << doublings);
  const bool is_due = now - link.began >= std::min(longer, kLongestSoundingPause);
  return !link.is_on() && is_due && credit_ + (is_urgent ? reserved_ : 0) >= kPrice;
}

void SoundingPolicy::begin(Instant now, Sounding& link) {
  const std::uint32_t from_credit = std::min(credit_, kPrice);
  credit_ -= from_credit;
  reserved_ -= kPrice - from_credit;
  link.left = kSoundingBlocks;
  ++link.number;
  link.began = now;
  link.in_vain = std::min(link.in_vain + 1, kMostDoublings + 1);
}

void SoundingPolicy::on_sent(Sounding& link) {
  ++packets_;
  const bool may_reserve = reserved_ < kMaxReserved;
  if (may_reserve && (packets_ % 2 == 0 || credit_ == kMaxCredit)) {
    ++reserved_;
  } else {
    credit_ = std::min(credit_ + 1, kMaxCredit);
  }
  if (!link.is_on()) return;
  ++sounding_packets_;
  --link.left;
}

void SoundingPolicy::end(Sounding& link) {
  const auto unused = static_cast<std::uint32_t>(std::exchange(link.left, 0) * kSoundingOneOf);
  credit_ = std::min(credit_ + unused, kMaxCredit);
}

}  // namespace gradplane::awareness
