// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/time.h"
#include "dataplane/hop/pacer.h"
#include "dataplane/model/limits.h"

namespace gradplane::hop {

/// What one peer lets this node send it in one job: the sender's side of a grant. All counts are
/// cumulative since the plan began and wrap at 2^32, so that grants may be lost or come twice.
///
/// Besides what is granted some blocks may always be on their way, as many as the peer says
/// (Homa's unscheduled ones, SIGCOMM 2018, section 3.2, but not only at the start of a message):
/// they say what waits, and keep the link busy while a grant is late. They go at an even share of
/// the peer's link, because all senders may begin at once and together must not fill its queue.
class CreditLine {
 public:
  /// A peer that lets this node send more than so many blocks at once is wrong or lies.
  static constexpr std::uint32_t kMaxCreditBlocks = 1U << 16;
  /// Unscheduled, until the peer has said how many: as TCP begins.
  static constexpr std::uint32_t kFirstUnscheduledBlocks = 16;

  /// `share_bits_per_second` of the peer's link (0: not paced), which is what `senders` of them
  /// have. `sent_blocks` until now.
  explicit CreditLine(std::uint64_t share_bits_per_second, std::size_t senders = 1,
                      std::uint32_t sent_blocks = 0)
      : total_(sent_blocks),
        sent_(sent_blocks),
        share_(share_bits_per_second, burst_bytes(share_bits_per_second, senders)) {}

  /// When one more block may go, with `in_flight` on their way; in the past: now; never(): not
  /// before the peer says something.
  Instant next_send(std::uint32_t in_flight) const {
    if (credit() > 0) return Instant();
    return in_flight < unscheduled_ ? share_.next_send() : Instant::never();
  }
  void on_sent(Instant now, std::size_t wire_bytes) {
    if (credit() == 0) share_.on_sent(now, wire_bytes);
    ++sent_;
  }

  /// Blocks that may go whatever is in flight.
  std::uint32_t credit() const {
    const auto left = static_cast<std::int32_t>(total_ - sent_);
    return left > 0 ? static_cast<std::uint32_t>(left) : 0;
  }
  std::uint32_t sent() const { return sent_; }
  std::uint32_t unscheduled() const { return unscheduled_; }

  /// False when the total is one that no honest peer gives. Older ones are fine, and mean nothing.
  [[nodiscard]] bool on_total(std::uint32_t total_blocks) {
    const auto ahead = static_cast<std::int32_t>(total_blocks - sent_);
    if (ahead > static_cast<std::int32_t>(kMaxCreditBlocks)) return false;
    if (static_cast<std::int32_t>(total_blocks - total_) > 0) total_ = total_blocks;
    return true;
  }
  /// At least one: a sender that may send nothing could never say that it wants to.
  void on_unscheduled(std::uint32_t blocks) {
    unscheduled_ = std::clamp<std::uint32_t>(blocks, 1, kMaxCreditBlocks);
  }

 private:
  static constexpr std::size_t kFullBlockBytes = kMaxHeaderBytes + kDefaultBlockBytes;
  /// All senders may begin at once, and what they send at once meets in the peer's queue.
  static constexpr std::size_t kBurstsOfAllBytes = 64 << 10;
  static constexpr std::size_t kMaxBurstBlocks = 4;
  /// A poll loop that naps makes up for it, however many blocks that is: what may be on its way
  /// bounds it too.
  static constexpr std::size_t burst_bytes(std::uint64_t share_bits_per_second,
                                           std::size_t senders) {
    const std::size_t each =
        kBurstsOfAllBytes / kFullBlockBytes / std::max<std::size_t>(senders, 1);
    const auto nap_us = static_cast<std::uint64_t>(kPacerBurst.count_ns() / 1000);
    return std::max(std::clamp<std::size_t>(each, 1, kMaxBurstBlocks) * kFullBlockBytes,
                    static_cast<std::size_t>(share_bits_per_second / 8 * nap_us / 1'000'000));
  }

  std::uint32_t total_;  // may be sent
  std::uint32_t sent_;
  std::uint32_t unscheduled_ = kFirstUnscheduledBlocks;
  Pacer share_;
};

}  // namespace gradplane::hop
