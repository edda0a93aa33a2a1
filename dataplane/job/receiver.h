// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "dataplane/awareness/link_estimate.h"
#include "dataplane/hop/edge.h"
#include "dataplane/job/ack_receiver.h"
#include "dataplane/job/rounds.h"
#include "dataplane/job/state.h"
#include "dataplane/job/streams.h"
#include "dataplane/job/watchdog.h"
#include "dataplane/wire/ack.h"
#include "dataplane/wire/block.h"
#include "dataplane/wire/seal.h"
#include "dataplane/wire/sounding.h"

namespace gradplane::job {

/// Checks every packet of a job against the round that it names, and passes valid blocks to their
/// trees.
class Receiver {
 public:
  Receiver(State& state, Rounds& rounds, Streams& streams, Watchdog& watchdog);

  /// Handles a datagram with this job's id, of which only the envelope has been read. `from` is the
  /// node that it came from: the sender, or the last relay of a routed block. Returns what the
  /// packet tells about the link from that node. Returns nothing if the packet may be forged, was
  /// received before, or was relayed to this node.
  std::optional<awareness::Told> handle(std::uint16_t from, const wire::Envelope& envelope,
                                        std::span<const std::byte> datagram,
                                        bool congestion_experienced, Instant now);
  /// Updates the number of blocks after which an ack is sent.
  void update_ack_interval() { ack_every_ = state_.incoming.ack_every(); }

 private:
  std::optional<std::span<const std::byte>> open(std::span<const std::byte> datagram,
                                                 std::uint64_t number, const hop::Peer& peer) const;
  bool is_new(std::uint16_t epoch, std::uint64_t number, hop::Peer& peer, Instant now);
  bool is_heard_by_parent(const aggregate::Tree& tree, const Round& round,
                          aggregate::HostSet covered) const;
  std::optional<awareness::Told> handle_for_group(hop::PeerIndex index,
                                                  const wire::Envelope& envelope,
                                                  std::span<const std::byte> datagram,
                                                  bool congestion_experienced, Instant now);
  void handle_routed(std::uint16_t from, std::span<const std::byte> datagram,
                     bool congestion_experienced, Instant now);
  void relay(Plan& plan, const RoutePlace& place, std::span<const std::byte> datagram, Instant now);
  void handle_block(const wire::BlockPacket& packet, hop::PeerIndex peer,
                    bool congestion_experienced, Instant now);
  void handle_retired(const wire::BlockPacket& packet, hop::PeerIndex peer);
  std::size_t count_blocks(const wire::BlockPacket& packet) const;
  std::optional<Geometry> geometry_of(const wire::BlockHeader& h) const;
  void take_blocks(Plan& plan, const wire::BlockPacket& packet, std::size_t count,
                   hop::PeerIndex peer, Instant now);
  void take_block(Plan& plan, const wire::BlockPacket& packet, hop::PeerIndex peer, Instant now);
  Round* round_for(Plan& plan, const wire::BlockPacket& packet, aggregate::HostSet covered,
                   const hop::EdgeId& edge, Instant now);
  bool knows_rounds_before(const Plan& plan, const wire::BlockHeader& h,
                           const hop::EdgeId& edge) const;
  bool may_have_result(const aggregate::Tree& tree, const Round& round, std::uint32_t block,
                       aggregate::HostSet covered) const;
  std::optional<aggregate::HostSet> hosts_of(const aggregate::Tree& tree, const hop::InEdge& edge,
                                             const wire::BlockPacket& packet);
  void take_update(Plan& plan, hop::InEdge& edge, const wire::BlockPacket& packet, Instant now);
  bool accept(Plan& plan, const hop::EdgeId& edge, hop::BlockReceiver& receiver, bool is_over,
              const wire::BlockPacket& packet, Instant now);
  void take_result(Plan& plan, Round& round, const wire::BlockPacket& packet,
                   aggregate::HostSet covered, Instant now);
  void handle_parity(const wire::BlockPacket& packet, hop::PeerIndex peer,
                     bool congestion_experienced, Instant now);
  void follow_parity(Plan& plan, hop::InEdge& edge, const wire::BlockPacket& packet,
                     hop::PeerIndex peer, Instant now);
  void recover(Plan& plan, hop::InEdge& edge, const wire::BlockPacket& packet, hop::PeerIndex peer,
               Instant now);
  void handle_grant(const wire::Grant& grant, hop::Peer& peer);
  void handle_sounding(const wire::Envelope& envelope, const wire::Sounding& sounding,
                       hop::PeerIndex peer, Instant now);

  State& state_;
  Rounds& rounds_;
  Streams& streams_;
  AckReceiver acks_;
  std::uint32_t ack_every_ = hop::kAckEveryPackets;
  // The packet that is being handled.
  wire::BlockPacket block_;
  std::size_t path_ = hop::kDirectPath;  // the path from the sender on which the block came
  wire::AckPacket ack_;
  bool is_recovering_ = false;  // the block was computed from parity
  // Hosts whose ranks are in the block.
  std::unique_ptr<std::array<std::uint64_t, wire::kMaxCoverageWords>> covered_;
};

}  // namespace gradplane::job
