// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/aggregate/accumulator.h"
#include "dataplane/aggregate/context.h"
#include "dataplane/aggregate/gather.h"
#include "dataplane/aggregate/round.h"
#include "dataplane/aggregate/tree_config.h"
#include "dataplane/hop/edge.h"
#include "dataplane/hop/group.h"
#include "dataplane/hop/peer_table.h"
#include "dataplane/wire/block.h"

namespace gradplane::aggregate {

/// One tree of a plan at this node: it gathers blocks from local ranks and children, sums them,
/// pushes the sums to the parent and passes results down. A leaf, a relay and a root differ only in
/// their edges. Rounds are open side by side, in slots.
///
/// A tree does not touch another tree. It counts down in the round what it still waits for, and the
/// job sees from the round when it is done.
class Tree {
 public:
  struct Limits {
    std::uint32_t epoch = 0;
    std::uint8_t number = 0;  // number of the tree in its plan
    std::uint32_t first_round = 0;
    std::size_t max_blocks = 0;
    std::size_t block_bytes = 0;
    std::size_t local_ranks = 0;
    std::uint16_t world_size = 0;
    bool has_streams = false;                 // exchanges of buckets are under bounded staleness
    const HostTable* hosts = nullptr;         // the plan's; must outlive the tree
    const Partition* partition = nullptr;     // the plan's; only the constructor uses it
    std::size_t own_host = HostTable::kNone;  // this node's index in `hosts`
  };
  /// Allocates everything that its rounds will need.
  Tree(TreeConfig config, const Limits& limits);

  /// Replaces peer indices: peer p becomes entry p of `names`. Called before the first round.
  void rename_peers(std::span<const hop::PeerIndex> names);

  const TreeConfig& config() const { return config_; }
  /// Whether this node sums contributions. A leaf with one rank does not: it sends that rank's
  /// bytes as they are.
  bool sums() const { return sums_; }
  /// Whether rounds under bounds may close here without all blocks.
  bool gathers() const { return config_.member && !config_.children.empty(); }

  // Edges. Edge i of out() and edge i of in() lead to the same peer. If there is a parent, it has
  // edge 0.
  std::span<hop::OutEdge> out() { return out_; }
  std::span<const hop::OutEdge> out() const { return out_; }
  std::span<hop::InEdge> in() { return in_; }
  std::span<const hop::InEdge> in() const { return in_; }
  bool has_parent() const { return config_.parent != hop::kNoPeer; }
  hop::OutEdge& push() { return out_[0]; }
  const hop::OutEdge& push() const { return out_[0]; }
  hop::InEdge& results() { return in_[0]; }
  const hop::InEdge& results() const { return in_[0]; }
  std::span<hop::OutEdge> child_results() { return out().subspan(has_parent() ? 1 : 0); }
  std::span<const hop::OutEdge> child_results() const {
    return out().subspan(has_parent() ? 1 : 0);
  }
  std::span<hop::InEdge> child_pushes() { return in().subspan(has_parent() ? 1 : 0); }
  std::span<const hop::InEdge> child_pushes() const { return in().subspan(has_parent() ? 1 : 0); }
  /// The hosts at or below the peer of an edge; all hosts for the edge to the parent.
  HostSet hosts_of(hop::EdgeIndex edge) const { return edge_hosts_[edge.index()]; }
  const HostTable& hosts() const { return *hosts_; }
  /// Shards of ranks below an edge; for the edge to the parent, shards of ranks at or below this
  /// node. Shards are given by their place among those of this tree. The time to open a round with
  /// shards grows with their number.
  std::span<const std::uint32_t> shards_below(hop::EdgeIndex edge) const {
    return edge_shards_[edge.index()];
  }
  hop::OutEdge& out(hop::EdgeIndex edge) { return out_[edge.index()]; }
  hop::InEdge& in(hop::EdgeIndex edge) { return in_[edge.index()]; }
  /// The edge to `peer` over which blocks of `type` (pushes or results) leave, or come in;
  /// hop::kNoEdge if the tree has none.
  hop::EdgeIndex find_out(wire::PacketType type, hop::PeerIndex peer) const;
  hop::EdgeIndex find_in(wire::PacketType type, hop::PeerIndex peer) const;

  /// The tree carries no round before `round`. It is not known yet which rounds have ended below.
  void begin_at(std::uint32_t round);
  /// The group of results; null if results go to each child alone.
  hop::Group* group() { return group_ ? &*group_ : nullptr; }
  /// The place in a range at which a round begins to send. All senders go in the same order, so
  /// that blocks complete one after the other at the root. The order differs in every round, so
  /// that the tail is never the same blocks.
  static std::uint32_t rotation_of(const Round& round) { return round.id * kRotationStride; }
  /// Opens the round here, with the blocks of `range`.
  ///
  /// A block goes up over an edge if some host below the edge contributes to it, and its result
  /// goes down if some host below gets it. The first block of the range goes up over every edge. If
  /// nobody below contributes to it, the push is empty and says that all ranks below are in the
  /// round. So no round is done anywhere before every rank has submitted it, and no node gets
  /// results before it has sent something.
  ///
  /// In an exchange only the nodes that the selection names send blocks to the root, and no result
  /// goes down. Under bounded staleness the other nodes send an empty first block, and nothing is
  /// gathered here; see job::Streams.
  void open(Round& round, BlockRange range);
  BlockRange range(std::size_t slot) const { return slots_[slot].range; }

  /// The contribution of the only local rank may be sent as it is. Only if sums() is false.
  void offer_all(const Round& round);
  /// The first block from `from` on that local ranks have to add; the end of the range if there is
  /// none. Each local rank adds all of them in order, even those to which it contributes nothing.
  std::uint32_t next_local(std::size_t slot, std::uint32_t from) const;
  /// Adds one block of a local rank, by its index.
  void add_local(Context& job, Round& round, std::uint32_t block, std::size_t local_rank);
  /// Copies a block of an exchange to the local ranks, at its root. Results of an exchange are
  /// ready while other nodes still need the contributions in the same memory, so they wait in the
  /// sums.
  void deliver(const Context& job, Round& round, std::uint32_t block) const;
  /// Counts the blocks whose result is not here. For tests.
  std::uint32_t results_awaited(std::size_t slot) const;
  /// Blocks of local ranks that are not added.
  std::uint32_t local_left(std::size_t slot) const { return slots_[slot].local_left; }
  /// Whether a result with these hosts contains some of this node's push.
  bool covers_own_push(HostSet covered) const { return meets(covered, subtree_); }
  /// The oldest round that may not have ended at this node (`own`) or at some node below it.
  std::uint32_t oldest_round(std::uint32_t own) const;
  /// Whether nothing can enter a block here any more. Only for a node with children.
  bool is_over(std::size_t slot, std::uint32_t block) const {
    return slots_[slot].sums.is_gathered(block);
  }
  /// Whether a child's push with `contributors` contributions names as many as this block can have
  /// below the child. If all ranks contribute, Receiver::hosts_of() has checked the rest.
  bool names_its_ranks(hop::EdgeIndex edge, const Geometry& geometry, const Partition& partition,
                       std::uint32_t block, std::uint16_t contributors) const {
    if (geometry.operation == Operation::kExchange) return contributors > 0;
    return all_contribute(geometry.operation) ||
           (contributors > 0) == has_host(hosts_of(edge), partition.host_of(geometry, block));
  }
  /// Adds one block of a child that in(edge) has accepted. `covered`: the hosts whose ranks are in
  /// it. `rtt`: the smallest round trip to the child.
  void add_push(Context& job, Round& round, hop::EdgeIndex edge, const wire::BlockPacket& packet,
                HostSet covered, Duration rtt, Instant now);
  /// Takes the result of one block from the parent. Returns how many blocks of children will never
  /// come.
  std::uint32_t take_result(Context& job, Round& round, const wire::BlockPacket& packet,
                            HostSet covered, Instant now);
  /// Whether a result with these hosts can exist, as far as this node knows. If it contains this
  /// node's push, the push must have been sent; otherwise all local ranks must have added their
  /// blocks.
  bool may_have_result(const Round& round, std::uint32_t block, HostSet covered) const;

  /// A block as it is sent. `hosts` is empty if the block lacks nobody that it could have. Without
  /// bytes and hosts it is an empty push.
  struct Outbound {
    std::span<const std::byte> bytes = {};
    std::uint16_t contributors = 0;
    WireType wire = WireType::kElements;
    /// The bytes are fp32 elements, which write() converts to `wire`.
    bool is_narrowed_late = false;
    HostSet hosts = {};
    bool partial = false;

    std::size_t size() const {
      return is_narrowed_late
                 ? wire_bytes(wire, ElementType::kFloat32, bytes.size() / sizeof(float))
                 : bytes.size();
    }
    /// Writes size() bytes of payload.
    void write(std::byte* out) const;
  };
  Outbound bytes_to_send(const Context& job, const Round& round, bool is_push,
                         std::uint32_t block) const;
  /// Whether every rank that this node pushes for carries blocks that do not enter.
  bool is_bounded(const Round& round) const;

  // Rounds that may lack blocks.
  /// For how long after its first push this node may still push new blocks; see Gather::Patience.
  Duration patience(const Round& round, Instant now) const;
  /// Slots with a round that is gathered under bounds here, one bit each.
  std::uint16_t gathering() const { return gathering_; }
  /// Whether nodes below may close the round early.
  bool allows_below(std::size_t slot) const {
    const Slot& own = slots_[slot];
    return own.gather != nullptr ? own.gather->allows_below() : own.allowed;
  }
  /// The parent allows this node to close the round early. If the round's gathering is over
  /// already, this counts for the next rounds.
  void allow(const Round& round);
  /// Whether the round may close now without some blocks, and why.
  std::optional<CloseReason> may_close(std::size_t slot, Instant now,
                                       Gather::Absence absence = Gather::Absence::kCounts);
  /// A row of parity of a child's blocks in the round has come.
  void note_row(std::size_t slot, hop::EdgeIndex edge, bool is_last, Instant now);
  /// Whether a child that counts as absent in this round is alive: it has begun the round and sends
  /// other packets, or it has not begun it and ends older rounds one after the other.
  bool has_live_absentee(std::size_t slot, const hop::PeerTable& peers, Instant now) const;
  /// Sums the blocks that have come. From here on nothing more enters, and every child hears which
  /// blocks did. Returns how many blocks will never come, and closes the edges that lack them.
  std::uint32_t close_partial(Context& job, Round& round, CloseReason reason, Instant now);
  /// Repeats an ack that tells a child that the round has closed. A child that has not heard so may
  /// refuse results; then they fill its window, and nothing else would tell it.
  void repeat_closing(Context& job, hop::EdgeIndex edge, std::size_t slot, std::uint32_t round,
                      Instant now);

 private:
  /// One round of the tree: its sums, and whether it may lack blocks.
  struct Slot {
    BlockRange range;
    std::uint32_t local_left = 0;
    std::uint32_t whole_push = 0;    // contributions to a push of this node that lacks nobody
    Gather* gather = nullptr;        // the bucket's gathering while it is open; otherwise null
    bool bounded = false;            // the gathering is over, and every source knew the bounds
    bool sends_update = true;        // in an exchange: this node's update goes to the root
    bool allowed = false;            // the gathering is over, and nodes below may close early
    Gather::Patience patience = {};  // the gathering's, when it ended
    Accumulator sums;
  };

  void add_edges(const Limits& limits);
  void make_slots(const Limits& limits);
  void index_shards(const Limits& limits);
  void leave_out(const Round& round, BlockRange range);
  void leave_out_of_exchange(const Round& round, BlockRange range);
  void open_streamed(const Round& round, BlockRange range);
  void mark_blocks_below(const Round& round, BlockRange range, hop::EdgeIndex edge);
  void await_contributors(const Round& round, BlockRange range);
  void index_edges();
  hop::EdgeIndex edge_of(hop::PeerIndex peer) const {
    return peer.index() < edge_of_peer_.size() ? edge_of_peer_[peer.index()] : hop::kNoEdge;
  }
  void open_gather(Round& round);
  void on_gathered(Context& job, Round& round, std::uint32_t block);
  void on_result(Context& job, Round& round, std::uint32_t block, std::span<const std::byte> bytes,
                 WireType wire, std::uint16_t contributors, HostSet covered);
  static double factor_of(const Context& job, const Round& round, std::uint16_t came);
  void note_energy(const Context& job, Round& round, std::uint32_t block,
                   std::span<const std::byte> bytes, WireType wire = WireType::kElements);
  bool is_measured(const Context& job, const Round& round, std::uint32_t block) const;
  void close_if_arrived(Context& job, Round& round);
  std::uint32_t close_children(Context& job, Round& round, Instant now);
  void end_gather(Context& job, Round& round, CloseReason reason, Instant now);
  void keep_contribution(Context& job, Round& round, std::uint32_t block);
  static WireType fitting_wire_type(const Round& round, std::uint32_t block,
                                    std::span<const std::byte> elements);
  void narrow_push(const Context& job, const Round& round, std::uint32_t block);
  std::span<const std::byte> round_result(const Context& job, Round& round, std::uint32_t block);
  void keep_push_error(const Context& job, Round& round, std::uint32_t block);
  std::size_t source_of(hop::EdgeIndex edge) const { return edge.index() - (has_parent() ? 1 : 0); }

  /// A prime: successive rounds begin far from each other in a bucket of any size.
  static constexpr std::uint32_t kRotationStride = 7919;

  TreeConfig config_;
  std::uint32_t epoch_;
  std::uint8_t number_;
  const HostTable* hosts_;
  std::size_t own_host_;
  std::vector<std::uint64_t> own_set_;  // only this node
  std::vector<std::uint64_t> missing_;  // scratch
  Bitmap carried_;                      // scratch, by block of a range
  std::vector<std::uint64_t> subtree_;  // hosts at or below this node
  std::uint32_t subtree_ranks_ = 0;
  std::vector<std::vector<std::uint64_t>> edge_hosts_;
  std::vector<std::vector<std::uint32_t>> edge_shards_;
  // By host: how many children and local ranks a block awaits that only this host contributes to.
  std::vector<std::uint16_t> sources_of_host_;
  std::uint16_t local_ranks_;
  bool sums_;
  std::vector<hop::OutEdge> out_;
  std::vector<hop::InEdge> in_;
  std::optional<hop::Group> group_;
  std::vector<hop::EdgeIndex> edge_of_peer_;  // by peer; every packet looks its edge up
  // The sums of all slots are one piece of memory of std::pmr's default resource, for which a
  // daemon has huge pages, and which it may lend to a NIC. Null if this node does not sum.
  std::unique_ptr<std::pmr::monotonic_buffer_resource> sums_memory_;
  std::vector<Slot> slots_;
  std::uint16_t gathering_ = 0;
};
static_assert(kRoundSlots <= 16, "one bit per slot in Tree::gathering()");

/// The round and the tree of a report.
struct RoundPlace {
  std::uint32_t round = 0;
  std::uint32_t epoch = 0;
  std::uint8_t tree = 0;
};
/// Count a round of a bucket whose gathering has ended, and report it if it ended at a root.
void count_close(hop::Counters& counters, CloseReason reason);
void report_close(Context& job, Bucket& bucket, const Gather& gather, CloseReason reason,
                  const RoundPlace& place, Instant now);

}  // namespace gradplane::aggregate
