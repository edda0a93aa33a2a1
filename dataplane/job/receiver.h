// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "dataplane/hop/edge.h"
#include "dataplane/job/rounds.h"
#include "dataplane/job/state.h"
#include "dataplane/job/watchdog.h"
#include "dataplane/wire/packet.h"

namespace gradplane::job {

/// Checks every packet of a job against the round that it names, and hands what is left to the
/// packet's tree.
class Receiver {
 public:
  Receiver(State& state, Rounds& rounds, Watchdog& watchdog);

  /// A packet of this job's id. `datagram` is the whole of it, for the tag.
  void handle(const wire::Packet& packet, std::span<const std::byte> datagram,
              bool congestion_experienced, Instant now);
  /// Packets after which acks go from now on.
  void update_ack_interval() { ack_every_ = state_.incoming.ack_every(); }

 private:
  void handle_data(Plan& plan, const wire::Packet& packet, std::uint16_t peer, Instant now);
  Round* round_for(const aggregate::Tree& tree, const wire::Packet& packet, const hop::EdgeId& edge,
                   Instant now);
  bool answers_a_push(const aggregate::Tree& tree, const Round& round,
                      const wire::Header& header) const;
  static bool names_its_ranks(const aggregate::Tree& tree, const hop::InEdge& edge,
                              const wire::Header& header);
  bool accept(hop::InEdge& edge, const wire::Packet& packet, Instant now);
  void take_result(aggregate::Tree& tree, Round& round, const wire::Packet& packet, Instant now);
  void handle_ack(Plan& plan, const wire::Packet& packet, std::uint16_t peer, Instant now);
  void learn_path(hop::Peer& peer, const wire::AckBody& ack, bool is_new, Instant now);
  void find_lost(hop::OutEdge& edge, std::size_t slot, std::uint32_t echo_us, Instant now);
  void take_grant(const wire::GrantBody& grant, hop::Peer& peer);

  State& state_;
  Rounds& rounds_;
  Watchdog& watchdog_;
  std::uint32_t ack_every_ = hop::kAckEveryPackets;
  std::unique_ptr<std::array<std::uint64_t, wire::kMaxAckWords>> words_;  // of the ack at hand
};

}  // namespace gradplane::job
