// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/awareness/sounding_policy.h"

#include <algorithm>
#include <utility>

#include "dataplane/awareness/link_estimate.h"

namespace gradplane::awareness {
namespace {

/// The price of a sounding: the packets that must be sent for it.
constexpr std::uint32_t price_of(std::uint32_t blocks) {
  return static_cast<std::uint32_t>(blocks * kSoundingOneOf);
}
constexpr std::uint32_t kMaxReserved = kReservedSoundings * price_of(kSoundingBlocks);
constexpr std::uint32_t kMaxCredit = kSavedSoundings * price_of(kSoundingBlocks) - kMaxReserved;
constexpr std::uint32_t kMostDoublings = 5;
static_assert(kSoundingPause * (std::int64_t{1} << kMostDoublings) >= kLongestSoundingPause);

Duration pause_of(const SoundingCause& why) {
  if (!why.is_used) return why.alarm ? kSoundingPause : kUnusedLinkPause;
  return why.is_asked ? kSoundingPause : kUnaskedPause;
}

/// A receiver that asks again so soon has seen something new.
bool is_urgent(Instant now, const Sounding& link, const SoundingCause& why) {
  return why.alarm || (why.is_used && link.in_vain == 0 && now - link.began < kTrainPatience);
}

}  // namespace

bool SoundingPolicy::may_begin(Instant now, const Sounding& link, const SoundingCause& why) const {
  // The last sounding may not have been answered yet.
  const std::uint32_t doublings = link.in_vain > 0 ? link.in_vain - 1 : 0;
  const Duration longer = pause_of(why) * (std::int64_t{1} << doublings);
  const bool is_due = now - link.began >= std::min(longer, kLongestSoundingPause) &&
                      now - began_ >= kSoundingsApart;
  const std::uint32_t budget = credit_ + (is_urgent(now, link, why) ? reserved_ : 0);
  // A short sounding also waits for the price of a long one. Otherwise, if the budget is scarce,
  // short ones would always be paid first, and links that need a long one would never begin.
  return !link.is_on() && is_due && budget >= price_of(kSoundingBlocks);
}

void SoundingPolicy::begin(Instant now, Sounding& link) {
  link.left = link.blocks = link.next_blocks();
  const std::uint32_t price = price_of(link.blocks);
  const std::uint32_t from_credit = std::min(credit_, price);
  credit_ -= from_credit;
  reserved_ -= price - from_credit;
  ++link.number;
  link.began = began_ = now;
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
