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

/// The sender's side of grants: what one peer lets this node send to it in one job. All counts are
/// cumulative since the peer came into use and wrap at 2^32, so a grant may be lost or arrive
/// twice.
///
/// Some blocks may always be in flight in addition to the granted ones. The peer says how many.
/// (Homa calls such blocks unscheduled, SIGCOMM 2018, section 3.2, but allows them only at the
/// start of a message.) They announce the demand, and keep the link busy while a grant is late.
/// They are sent at an even share of the peer's link, because all senders may begin at once and
/// must not fill the peer's queue together.
class CreditLine {
 public:
  /// The maximum credit that this node accepts. A peer that grants more at once is broken or lies.
  static constexpr std::uint32_t kMaxCreditBlocks = 1U << 16;
  /// The number of unscheduled blocks until the peer has said one. It is what TCP begins with.
  static constexpr std::uint32_t kFirstUnscheduledBlocks = 16;

  /// `share_bits_per_second` is this sender's share of the peer's link (0: not paced), and
  /// `senders` is the number of senders that have such a share. `sent_blocks` is the number of
  /// blocks sent until now.
  explicit CreditLine(std::uint64_t share_bits_per_second, std::size_t senders = 1,
                      std::uint32_t sent_blocks = 0)
      : total_(sent_blocks),
        sent_(sent_blocks),
        share_(share_bits_per_second, burst_bytes(share_bits_per_second, senders)) {}

  /// The time at which one more block may go while `in_flight` blocks are in flight. A time in the
  /// past means now; never() means not before the next message of the peer.
  Instant next_send(std::uint32_t in_flight) const {
    if (credit() > 0) return Instant();
    return in_flight < unscheduled_ ? share_.next_send() : Instant::never();
  }
  void on_sent(Instant now, std::size_t wire_bytes) {
    if (credit() == 0) share_.on_sent(now, wire_bytes);
    ++sent_;
  }

  /// Changes the share from now on; see the constructor.
  void set_share(Instant now, std::uint64_t share_bits_per_second, std::size_t senders) {
    share_.set_link_rate(now, share_bits_per_second, burst_bytes(share_bits_per_second, senders));
  }

  /// The number of blocks that may go however many are in flight.
  std::uint32_t credit() const {
    const auto left = static_cast<std::int32_t>(total_ - sent_);
    return left > 0 ? static_cast<std::uint32_t>(left) : 0;
  }
  std::uint32_t sent() const { return sent_; }
  std::uint32_t unscheduled() const { return unscheduled_; }

  /// Takes a new total. Returns false for a total that no correct peer gives. A total that is older
  /// than the present one is fine and has no effect.
  [[nodiscard]] bool on_total(std::uint32_t total_blocks) {
    const auto ahead = static_cast<std::int32_t>(total_blocks - sent_);
    if (ahead > static_cast<std::int32_t>(kMaxCreditBlocks)) return false;
    if (static_cast<std::int32_t>(total_blocks - total_) > 0) total_ = total_blocks;
    return true;
  }
  /// At least one, because a sender that may send nothing could never announce its demand.
  void on_unscheduled(std::uint32_t blocks) {
    unscheduled_ = std::clamp<std::uint32_t>(blocks, 1, kMaxCreditBlocks);
  }

 private:
  static constexpr std::size_t kFullBlockBytes = kMaxHeaderBytes + kDefaultBlockBytes;
  /// The bursts of all senders together. All of them may begin at once, and then their bursts meet
  /// in the peer's queue.
  static constexpr std::size_t kBurstsOfAllBytes = 64 << 10;
  static constexpr std::size_t kMaxBurstBlocks = 4;
  /// The burst of one sender. It is at least what the share sends during one sleep of the poll
  /// loop, however many blocks that is. The number of blocks that may be in flight also bounds it.
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
