// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "dataplane/hop/edge.h"
#include "dataplane/job/state.h"
#include "dataplane/model/group_name.h"
#include "dataplane/wire/ack.h"
#include "dataplane/wire/block.h"

namespace gradplane::job {

/// A bound on OutEdge::backoff. limit_of() says that the peer does not answer as soon as this many
/// probes have gone. Each later probe shrinks the window, because then this many were not answered.
inline constexpr std::uint8_t kSilentAfterProbes = 2;

/// What keeps a flow from sending a block now.
enum class FlowLimit : std::uint8_t {
  kApplication,  // nothing is queued for the peer
  kPeer,         // the peer does not answer
  kWindow,
  kGrant,     // the peer grants no credit, and its unscheduled blocks are in flight
  kPacing,    // the controller's pacing
  kPeerLink,  // the share of the peer's link
  kOwnLink,   // the node's own link is busy, or it is another flow's turn
};
std::string_view flow_limit_name(FlowLimit limit);

/// A packet that has been written.
struct Outgoing {
  std::uint16_t node = 0;
  std::uint32_t length_bytes = 0;
  // If set, the packet goes to this group and not to `node`.
  std::optional<GroupName> group = std::nullopt;
  /// The part of a block's payload that is not copied into `out`. It goes before the tag. It lies
  /// in a rank's arena or in a sum, and stays valid as long as the job is polled only for packets.
  std::span<const std::byte> lent = {};

  std::size_t packet_bytes() const { return length_bytes + lent.size(); }
};

/// Writes the packets of a job: acks, grants, and blocks, for which its peers take turns. It also
/// probes silent peers.
class Transmitter {
 public:
  explicit Transmitter(State& state);

  /// Writes the next ack that is due to `out` (wire::kMaxAckBytes).
  std::optional<Outgoing> poll_ack(std::span<std::byte> out, Instant now);
  /// Writes the next block that may be sent to `out` (header and block bytes).
  std::optional<Outgoing> poll_data(std::span<std::byte> out, Instant now);
  /// Writes the next packet that this node relays for another node to `out` (size as in
  /// poll_data()).
  std::optional<Outgoing> poll_relayed(std::span<std::byte> out);
  bool has_relayed() const;
  /// Writes the grant of a peer to `out`, which must have room for one.
  Outgoing write_grant(hop::PeerIndex peer, std::span<std::byte> out, Instant now);

  /// Sends blocks again that have waited too long for an ack.
  void probe(Instant now);
  bool any_in_flight() const;
  /// When poll_ack() has an ack, if nothing comes before.
  Instant next_ack() const;
  /// When poll_data() has a block; Instant::never() if nothing waits or a window is full.
  Instant next_data() const;
  FlowLimit limit_of(const hop::Peer& peer, Instant now) const;

 private:
  struct Work {
    hop::OutEdge* edge = nullptr;
    std::size_t slot = 0;
  };

  /// A round whose blocks go to a group.
  struct GroupWork {
    Plan* plan = nullptr;
    hop::Group* group = nullptr;
    std::size_t slot = 0;
  };

  /// A block, the path on which it can go, and when.
  struct Detouring {
    Work work;
    std::size_t path = hop::kDirectPath;
    Instant at = Instant::never();
  };

  std::optional<Outgoing> write_ack(Plan& plan, const hop::AckRequest& request,
                                    std::span<std::byte> out, Instant now);
  Outgoing write_retired_ack(const RetiredPlan::Ack& request, std::span<std::byte> out,
                             Instant now);
  wire::AckHeader header_of(const hop::EdgeId& edge, std::uint32_t round) const;
  Outgoing write_filled_ack(wire::PacketType type, const wire::AckHeader& header,
                            hop::PeerIndex peer, std::span<std::byte> out, Instant now);
  void say_ended();
  void say_nothing();
  /// What acks of one round of an edge are made from.
  struct AckSource {
    hop::BlockReceiver* receiver = nullptr;  // nullptr: the round has ended here
    bool ended = false;                      // the round has ended, and its receiver is still known
  };
  AckSource ack_source(hop::InEdge& edge, std::uint32_t round);
  bool ack_may_wait(const hop::BlockReceiver& receiver, hop::PeerIndex from, Instant now) const;
  bool fill_ack(const AckSource& source, Instant now);
  Work next_work(const hop::Peer& peer) const;
  bool opens_a_tree(const Work& work) const;
  bool goes_before(const Work& work, const Work& other) const;
  bool round_goes_before(std::size_t slot, std::size_t other) const;
  Instant next_send_to(const hop::Peer& peer) const;
  void begin_soundings(Instant now);
  Outgoing write_sounding(hop::Peer& peer, std::span<std::byte> out, Instant now);
  std::optional<Outgoing> write_answer(std::span<std::byte> out, Instant now);
  std::optional<Outgoing> write_refusal(std::span<std::byte> out, Instant now);
  bool may_take_route(const Work& work) const;
  Instant route_opens(const hop::Peer& peer, const hop::OutEdge& edge, std::size_t r,
                      std::uint32_t queued) const;
  Detouring next_detour(const hop::Peer& peer) const;
  void reclaim(hop::Peer& peer, Instant now);
  wire::BlockHeader header_of(const Work& work, std::uint32_t block) const;
  /// The blocks of one packet, whose numbers are consecutive.
  struct Load {
    /// A block in int8 takes a little more than a quarter of the longest payload.
    static constexpr std::size_t kMaxBlocks = 4;
    std::array<aggregate::Tree::Outbound, kMaxBlocks> blocks{};
    std::size_t count = 0;
    std::size_t bytes = 0;
    std::uint8_t parity_rows = 0;

    std::span<const aggregate::Tree::Outbound> parts() const { return {blocks.data(), count}; }
  };
  aggregate::Tree::Outbound bytes_of(const Work& work, std::uint32_t block) const;
  std::optional<aggregate::Tree::Outbound> one_more(const Work& work, std::uint32_t last,
                                                    const Load& load) const;
  const Load& take_load(const Work& work, const hop::BlockSender::Pick& first, std::size_t path,
                        Instant now);
  Outgoing write_block(const Work& work, std::size_t path, std::span<std::byte> out, Instant now);
  void note_sent(hop::Peer& peer, const hop::BlockSender::Pick& pick, std::size_t path,
                 std::size_t wire_bytes, Instant now);
  std::optional<Outgoing> poll_peers(std::span<std::byte> out, Instant now, bool groups_wait);
  std::optional<Outgoing> poll_peer(std::size_t index, std::span<std::byte> out, Instant now,
                                    bool groups_wait);
  bool waits_for_group(const hop::Peer& peer) const;
  /// Calls visit(work, has_members) for each round with blocks for a group; `has_members` says
  /// whether some member takes them now.
  template <typename Visit>
  void for_group_work(Visit visit) const;
  bool goes_before(const GroupWork& work, const GroupWork& other) const;
  std::optional<Outgoing> poll_groups(std::span<std::byte> out, Instant now);
  std::optional<Outgoing> try_groups(std::span<std::byte> out, Instant now);
  Instant group_opens(const GroupWork& work) const;
  Instant next_group() const;
  bool find_lost_to_group(hop::OutEdge& edge, std::size_t slot, Duration window, Instant now);
  void look_for_slow_members(const GroupWork& work, Instant now);
  Outgoing write_to_group(const GroupWork& work, std::uint32_t block, std::span<std::byte> out,
                          Instant now);
  void charge_members(hop::Group& group, std::size_t slot, std::uint32_t block,
                      std::size_t wire_bytes, Instant now);
  /// Counts the payload bytes of a sent block, and the bytes that its wire type has saved.
  void count_payload(const Round& round, std::uint32_t block,
                     const aggregate::Tree::Outbound& sent) {
    state_.counters.payload_bytes_sent += sent.size();
    if (sent.wire == WireType::kElements) return;
    state_.counters.payload_bytes_saved += round.geometry.bytes_in(block) - sent.size();
  }
  std::size_t full_bytes(WireType type) const;
  std::size_t blocks_per_packet(WireType type) const;
  std::size_t parity_rows(const hop::Peer& peer, std::uint32_t blocks, WireType narrowest) const;
  hop::Parity* begin_parity(hop::OutEdge& edge, std::size_t slot,
                            const aggregate::Tree::Outbound& sent);
  std::uint8_t add_to_parity(hop::OutEdge& edge, std::size_t slot, std::uint32_t block,
                             const aggregate::Tree::Outbound& sent);
  void guard_tail(hop::OutEdge& edge, std::size_t slot, Instant now) const;
  Outgoing write_parity(const Work& work, std::uint32_t row, std::span<std::byte> out, Instant now);
  void probe_edge(hop::OutEdge& edge, Instant now);
  void ask(hop::OutEdge& edge, std::size_t slot, Instant now);
  wire::Envelope envelope_of(wire::PacketType type, std::uint8_t flags, Instant now) const;
  Outgoing finish(hop::Peer& peer, std::span<std::byte> packet,
                  std::span<const std::byte> lent = {}) const;

  State& state_;
  std::unique_ptr<hop::BlockReceiver::Ack> ack_;  // being written
  Load load_;                                     // being written
  std::vector<std::byte> narrowed_;               // a block of parity, as it is on the wire
  std::size_t next_peer_ = 0;                     // the index of the peer whose turn it is
  bool group_had_turn_ = false;                   // the last block went to a group
};

}  // namespace gradplane::job
