// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/aggregate/round.h"
#include "dataplane/base/fixed_queue.h"
#include "dataplane/hop/edge.h"

namespace gradplane::job {

/// What a job remembers of the plan that ended here last. If the last ack of a round is lost, the
/// peer sends its blocks again and again, and its own plan cannot end until it hears that they have
/// arrived.
///
/// One such plan is enough: a peer that still needs this plan has two live plans and refuses a
/// third one, so no further plan ends here and replaces this one.
class RetiredPlan {
 public:
  /// An ack of a round that has ended: all blocks of the peer have arrived.
  struct Ack {
    hop::PeerIndex peer;
    wire::PacketType type = wire::PacketType::kPushAck;
    std::uint8_t tree = 0;
    std::uint32_t round = 0;
  };
  RetiredPlan() : owed_(kOwedAcks) {}

  void remember(std::uint32_t epoch, std::uint32_t activation) {
    epoch_ = epoch;
    activation_ = activation;
    while (!owed_.empty()) owed_.pop();
  }
  /// Packets carry the low half of an epoch.
  bool is(std::uint16_t epoch) const {
    return epoch_ && static_cast<std::uint16_t>(*epoch_) == epoch;
  }
  std::uint32_t epoch() const { return *epoch_; }
  /// Every round before it has ended.
  std::uint32_t activation() const { return activation_; }
  bool carried(std::uint32_t round) const { return aggregate::is_older(round, activation_); }

  /// A full queue costs only time: the peer sends the block again and gets its ack then.
  void owe(const Ack& ack) { (void)owed_.push(ack); }
  bool owes_ack() const { return !owed_.empty(); }
  std::optional<Ack> take() {
    if (owed_.empty()) return std::nullopt;
    const Ack ack = owed_.front();
    owed_.pop();
    return ack;
  }

 private:
  static constexpr std::size_t kOwedAcks = 256;

  std::optional<std::uint32_t> epoch_;
  std::uint32_t activation_ = 0;  // activation of the next plan
  FixedQueue<Ack> owed_;
};

}  // namespace gradplane::job
