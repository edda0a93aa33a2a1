// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "dataplane/hop/edge.h"
#include "dataplane/job/rounds.h"
#include "dataplane/job/state.h"
#include "dataplane/job/watchdog.h"
#include "dataplane/wire/ack.h"

namespace gradplane::job {

/// Handles the acks of blocks that this node has sent.
class AckReceiver {
 public:
  AckReceiver(State& state, Rounds& rounds, Watchdog& watchdog)
      : state_(state),
        rounds_(rounds),
        watchdog_(watchdog),
        words_(std::make_unique<std::array<std::uint64_t, wire::kMaxAckWords>>()) {}

  /// Handles an authentic ack of `peer` that comes for the first time.
  void handle(const wire::AckPacket& packet, hop::PeerIndex peer, Instant now);

 private:
  static hop::OutEdge* edge_of(Plan& plan, const wire::AckPacket& packet, hop::PeerIndex peer);
  void take_ack(Plan& plan, hop::OutEdge& edge, Round& round, const wire::AckPacket& packet,
                std::uint32_t marked, Instant now);
  std::span<const std::uint64_t> words_of(const wire::AckPacket& packet);
  void learn_path(hop::Flow& flow, const wire::AckPacket& packet, bool is_new, Instant now);

  State& state_;
  Rounds& rounds_;
  Watchdog& watchdog_;
  // Bitmap of the ack that is being handled.
  std::unique_ptr<std::array<std::uint64_t, wire::kMaxAckWords>> words_;
};

}  // namespace gradplane::job
