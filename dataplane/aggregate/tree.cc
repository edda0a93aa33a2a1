// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/aggregate/tree.h"

#include <algorithm>

#include "dataplane/base/assert.h"
#include "dataplane/reduce/partial.h"
#include "dataplane/reduce/wire_codec.h"

namespace gradplane::aggregate {
namespace {

/// One block in this many is measured, a different one in each round.
constexpr std::uint32_t kEnergySampling = 16;

}  // namespace

Tree::Tree(TreeConfig config, const Limits& limits)
    : config_(std::move(config)),
      epoch_(limits.epoch),
      number_(limits.number),
      hosts_(limits.hosts),
      own_host_(limits.own_host),
      own_set_(limits.hosts->words()),
      missing_(limits.hosts->words()),
      carried_(config_.member ? limits.max_blocks : 0),
      local_ranks_(static_cast<std::uint16_t>(limits.local_ranks)),
      sums_(config_.member &&
            (config_.is_root() || !config_.children.empty() || limits.local_ranks != 1)) {
  if (own_host_ != HostTable::kNone) add_host(own_set_, own_host_);
  subtree_ = own_set_;
  if (config_.member) {
    add_edges(limits);
    index_shards(limits);
  }
  edge_of_peer_.reserve(kMaxNodes);  // peer indices of the job may be any
  index_edges();
  subtree_ranks_ = hosts_->ranks_in(subtree_);
  make_slots(limits);
}

void Tree::make_slots(const Limits& limits) {
  const std::size_t blocks = sums_ ? limits.max_blocks : 0;
  const std::size_t bytes = kRoundSlots * Accumulator::memory_bytes(blocks, limits.block_bytes);
  if (bytes > 0) sums_memory_ = std::make_unique<std::pmr::monotonic_buffer_resource>(bytes);
  std::pmr::memory_resource* const memory =
      sums_memory_ ? sums_memory_.get() : std::pmr::null_memory_resource();
  slots_.reserve(kRoundSlots);
  for (std::size_t slot = 0; slot < kRoundSlots; ++slot) {
    slots_.push_back(
        {.range = {}, .sums = Accumulator(blocks, limits.block_bytes, hosts_->words(), *memory)});
  }
}

void Tree::add_edges(const Limits& limits) {
  const auto add = [&](hop::PeerIndex peer, wire::PacketType out, wire::PacketType in,
                       std::uint16_t ranks) {
    const hop::EdgeId id{limits.epoch, limits.number, hop::EdgeIndex::from_index(out_.size())};
    hop::OutEdge& leaving = out_.emplace_back();
    leaving.id = id;
    leaving.peer = peer;
    leaving.type = out;
    leaving.ended_before = limits.first_round;
    leaving.senders.assign(kRoundSlots, hop::BlockSender(limits.max_blocks));
    hop::InEdge& coming = in_.emplace_back();
    coming.id = id;
    coming.peer = peer;
    coming.type = in;
    coming.ranks = ranks;
    coming.receivers.assign(kRoundSlots, hop::BlockReceiver(limits.max_blocks));
    if (limits.has_streams && config_.is_root())
      coming.stream.assign(kRoundSlots, hop::StreamSlot(limits.max_blocks));
    edge_hosts_.emplace_back(hosts_->words());
  };
  if (has_parent()) {
    add(config_.parent, wire::PacketType::kPush, wire::PacketType::kResult, limits.world_size);
    edge_hosts_.back().assign(hosts_->all().begin(), hosts_->all().end());
  }
  for (const ChildConfig& child : config_.children) {
    add(child.peer, wire::PacketType::kResult, wire::PacketType::kPush, child.ranks);
    for (const std::uint16_t host : child.hosts) {
      add_host(edge_hosts_.back(), host);
      add_host(subtree_, host);
    }
    GP_ASSERT(hosts_->ranks_in(edge_hosts_.back()) == child.ranks);
  }
  if (!config_.multicasts_results || config_.children.size() < kMinGroupMembers) return;
  std::vector<hop::OutEdge*> children;
  for (hop::OutEdge& edge : child_results()) children.push_back(&edge);
  group_.emplace(hop::Group::Config{.max_blocks = limits.max_blocks, .tree = limits.number},
                 children);
}

void Tree::rename_peers(std::span<const hop::PeerIndex> names) {
  if (has_parent()) config_.parent = names[config_.parent.index()];
  for (ChildConfig& child : config_.children) child.peer = names[child.peer.index()];
  for (hop::OutEdge& edge : out_) edge.peer = names[edge.peer.index()];
  for (hop::InEdge& edge : in_) edge.peer = names[edge.peer.index()];
  index_edges();
}

void Tree::index_edges() {
  edge_of_peer_.clear();
  for (const hop::OutEdge& edge : out_) {
    const std::size_t peer = edge.peer.index();
    if (edge_of_peer_.size() <= peer) edge_of_peer_.resize(peer + 1, hop::kNoEdge);
    edge_of_peer_[peer] = edge.id.index;
  }
}

hop::EdgeIndex Tree::find_out(wire::PacketType type, hop::PeerIndex peer) const {
  const hop::EdgeIndex e = edge_of(peer);
  return e != hop::kNoEdge && out_[e.index()].type == type ? e : hop::kNoEdge;
}

hop::EdgeIndex Tree::find_in(wire::PacketType type, hop::PeerIndex peer) const {
  const hop::EdgeIndex e = edge_of(peer);
  return e != hop::kNoEdge && in_[e.index()].type == type ? e : hop::kNoEdge;
}

void Tree::begin_at(std::uint32_t round) {
  for (hop::OutEdge& edge : out_)
    edge.ended_before = round - static_cast<std::uint32_t>(kRoundSlots);
}

void Tree::open(Round& round, BlockRange range) {
  const std::size_t slot = round.slot();
  Slot& own = slots_[slot];
  own.range = range;
  if (!config_.member) return;
  own.whole_push = all_contribute(round.geometry.operation) ? subtree_ranks_ : 1;
  if (sums_) {
    const std::size_t sources = config_.children.size() + local_ranks_;
    own.sums.open(round.geometry, range, static_cast<std::uint16_t>(sources), round.narrows());
    own.local_left = range.size() * local_ranks_;
  }
  for (hop::OutEdge& edge : out_) {
    edge.senders[slot].open(
        range, rotation_of(round),
        edge.is_push() && round.bucket != nullptr ? &round.bucket->critical() : nullptr);
    edge.rounds[slot] = round.id;
    edge.backoff[slot] = 0;
    edge.heard = static_cast<std::uint16_t>(edge.heard & ~hop::OutEdge::bit(slot));
    if (edge.is_push()) {
      edge.release(slot);
    } else {
      edge.hold(slot);
    }
  }
  for (hop::InEdge& edge : in_) edge.receivers[slot].open(range);
  const Operation operation = round.geometry.operation;
  own.sends_update = true;
  if (round.streamed) {
    open_streamed(round, range);
  } else if (operation == Operation::kExchange) {
    leave_out_of_exchange(round, range);
  } else if (operation != Operation::kAllReduce && range.size() > 0) {
    leave_out(round, range);
  }
  if (group_ && results_leave_root(operation)) group_->open(slot, range, rotation_of(round));
  for (const hop::OutEdge& edge : child_results()) {
    round.results_unacked += edge.senders[slot].complete() ? 0 : 1;
  }
  if (has_parent()) {
    round.results_awaited += results().receivers[slot].missing();
  } else if (!round.streamed) {
    round.results_awaited += range.size();
  }
  open_gather(round);
}

void Tree::offer_all(const Round& round) {
  if (slots_[round.slot()].range.size() == 0) return;
  push().senders[round.slot()].offer_all();
  push().refresh(round.slot());
}

std::uint32_t Tree::next_local(std::size_t slot, std::uint32_t from) const {
  const Slot& own = slots_[slot];
  while (from < own.range.end && own.sums.is_gathered(from)) ++from;
  return from;
}

void Tree::add_local(Context& job, Round& round, std::uint32_t block, std::size_t local_rank) {
  Slot& own = slots_[round.slot()];
  --own.local_left;
  const std::span<const std::byte> bytes = job.ranks.bytes(local_rank, round, block);
  note_energy(job, round, block, bytes);
  const std::uint16_t contributors = round.is_in(job.ranks.number(local_rank), block) ? 1 : 0;
  if (own.sums.add_lasting(block, bytes, contributors, own_set_)) on_gathered(job, round, block);
  close_if_arrived(job, round);
}

void Tree::add_push(Context& job, Round& round, hop::EdgeIndex edge,
                    const wire::BlockPacket& packet, HostSet covered, Duration rtt, Instant now) {
  const wire::BlockHeader& h = packet.header;
  Slot& own = slots_[round.slot()];
  if (own.gather != nullptr) {
    HostSet missing;
    if (h.contributors < in(edge).ranks) {
      for (std::size_t w = 0; w < missing_.size(); ++w) {
        missing_[w] = hosts_of(edge)[w] & ~covered[w];
      }
      missing = missing_;
    }
    own.gather->on_block(source_of(edge),
                         {.block = h.block,
                          .last = (packet.envelope->flags & wire::kFlagLast) != 0,
                          .has_rows = packet.envelope->parity_rows > 0,
                          .bounded = (packet.envelope->flags & wire::kFlagBounded) != 0,
                          .rtt = rtt,
                          .patience = wire::patience_of(h.patience),
                          .missing = missing},
                         now);
  }
  note_energy(job, round, h.block, packet.payload, h.wire_type);
  if (own.sums.add(h.block, packet.payload, h.contributors, covered, h.wire_type)) {
    on_gathered(job, round, h.block);
  }
  close_if_arrived(job, round);
}

/// Seals a block that nothing more will enter, and passes it on.
void Tree::on_gathered(Context& job, Round& round, std::uint32_t block) {
  Slot& own = slots_[round.slot()];
  const std::uint16_t came = own.sums.contributors(block);
  if (has_parent()) {
    own.sums.seal(block);
    narrow_push(job, round, block);
    push().senders[round.slot()].offer(block);
    push().refresh(round.slot());
    return;
  }
  const bool is_whole = came == round.whole_ranks;
  own.sums.seal(block, factor_of(job, round, came));
  const std::span<const std::byte> bytes = round_result(job, round, block);
  if (is_whole && is_measured(job, round, block)) {
    round.bucket->end_parts(block, reduce::energy(round.geometry.type, bytes.data(),
                                                  round.geometry.elements_in(block)));
  }
  on_result(job, round, block, bytes, WireType::kElements, came, own.sums.hosts(block));
}

/// The factor for a sum over `came` ranks. An exchange is always a mean, whoever is in it.
double Tree::factor_of(const Context& job, const Round& round, std::uint16_t came) {
  if (came == 0) return 1;
  if (round.geometry.operation == Operation::kExchange)
    return static_cast<double>(job.world_size) / came;
  const bool rescale = job.compensation == Compensation::kRescale;
  return rescale ? static_cast<double>(round.whole_ranks) / came : 1;
}

void Tree::deliver(const Context& job, Round& round, std::uint32_t block) const {
  if (!round.streamed)
    return job.ranks.deliver(round, block, slots_[round.slot()].sums.sealed(block));
  const std::span<std::byte> own{job.ranks.at(0, round, block), round.geometry.bytes_in(block)};
  const std::uint16_t came = round.bucket->inbox()->take(block, own, job.world_size);
  round.partial_blocks += came < round.whole_ranks ? 1 : 0;
  round.min_contributors = std::min(round.min_contributors, came);
}

std::uint32_t Tree::oldest_round(std::uint32_t own) const {
  std::uint32_t oldest = own;
  for (const hop::OutEdge& edge : out_) {
    if (!edge.is_push() && is_older(edge.ended_before, oldest)) oldest = edge.ended_before;
  }
  return oldest;
}

bool Tree::may_have_result(const Round& round, std::uint32_t block, HostSet covered) const {
  const std::size_t slot = round.slot();
  if (covers_own_push(covered)) return push().senders[slot].was_sent(block);
  return slots_[slot].local_left == 0;
}

std::uint32_t Tree::take_result(Context& job, Round& round, const wire::BlockPacket& packet,
                                HostSet covered, Instant now) {
  const wire::BlockHeader& h = packet.header;
  Slot& own = slots_[round.slot()];
  const bool is_own_in = own_host_ != HostTable::kNone && has_host(covered, own_host_);
  if (is_own_in) keep_push_error(job, round, h.block);
  // A node with children relays the result from where its sum was. It need not push the block any
  // more.
  if (!config_.children.empty()) {
    own.sums.stop_waiting(h.block);
    own.sums.replace(h.block, packet.payload, h.contributors, covered, h.wire_type);
  }
  on_result(job, round, h.block, packet.payload, h.wire_type, h.contributors, covered);
  if (!results().receivers[round.slot()].complete() || own.gather == nullptr) return 0;
  // The nodes above have closed without the blocks that are still missing here.
  const std::uint32_t missing = close_children(job, round, now);
  end_gather(job, round, CloseReason::kDeadline, now);
  return missing;
}

void Tree::on_result(Context& job, Round& round, std::uint32_t block,
                     std::span<const std::byte> bytes, WireType wire, std::uint16_t contributors,
                     HostSet covered) {
  const std::size_t slot = round.slot();
  const bool is_partial = contributors < round.whole_ranks;
  const bool is_own_missing =
      is_partial && own_host_ != HostTable::kNone && !has_host(covered, own_host_);
  if (is_own_missing) keep_contribution(job, round, block);
  round.partial_blocks += is_partial ? 1 : 0;
  if (round.geometry.operation != Operation::kExchange)
    job.ranks.deliver(round, block, bytes, wire);
  round.min_contributors = std::min(round.min_contributors, contributors);
  for (hop::OutEdge& edge : child_results()) {
    edge.senders[slot].offer(block);
    edge.refresh(slot);
  }
  if (group_ && results_leave_root(round.geometry.operation)) group_->offer(slot, block);
  GP_ASSERT(round.results_awaited > 0);
  --round.results_awaited;
}

std::uint32_t Tree::results_awaited(std::size_t slot) const {
  if (has_parent()) return results().receivers[slot].missing();
  const Slot& own = slots_[slot];
  std::uint32_t blocks = 0;
  for (std::uint32_t b = own.range.begin; b < own.range.end; ++b) {
    blocks += own.sums.is_gathered(b) ? 0 : 1;
  }
  return blocks;
}

Tree::Outbound Tree::bytes_to_send(const Context& job, const Round& round, bool is_push,
                                   std::uint32_t block) const {
  if (!sums_) {
    const bool is_in = round.is_in(job.ranks.number(0), block);
    if (!is_in || !slots_[round.slot()].sends_update) return {.partial = true};
    const std::span<const std::byte> elements = job.ranks.bytes(0, round, block);
    const WireType wire = fitting_wire_type(round, block, elements);
    return {.bytes = elements,
            .contributors = 1,
            .wire = wire,
            .is_narrowed_late = wire != WireType::kElements};
  }
  const Slot& own = slots_[round.slot()];
  Outbound out{.bytes = own.sums.sealed(block),
               .contributors = own.sums.contributors(block),
               .wire = own.sums.wire_type(block)};
  out.partial = out.contributors < (is_push ? own.whole_push : round.whole_ranks);
  if (!out.partial) return out;
  if (!all_contribute(round.geometry.operation)) return {.partial = true};
  out.hosts = own.sums.hosts(block);
  return out;
}

bool Tree::is_bounded(const Round& round) const {
  if (round.bucket == nullptr) return false;
  const Slot& own = slots_[round.slot()];
  return config_.children.empty() || own.bounded ||
         (own.gather != nullptr && own.gather->all_bounded());
}

void Tree::note_energy(const Context& job, Round& round, std::uint32_t block,
                       std::span<const std::byte> bytes, WireType wire) {
  if (!is_measured(job, round, block)) return;
  const std::size_t count = round.geometry.elements_in(block);
  alignas(64) std::byte elements[kMaxBlockBytes];
  const std::byte* from = bytes.data();
  if (wire != WireType::kElements) {
    reduce::decode(wire, elements, from, count);
    from = elements;
  }
  round.bucket->add_part(block, reduce::energy(round.geometry.type, from, count));
}

bool Tree::is_measured(const Context& job, const Round& round, std::uint32_t block) const {
  return job.measure_energy && round.geometry.operation == Operation::kAllReduce &&
         slots_[round.slot()].gather != nullptr &&
         block % kEnergySampling == round.id % kEnergySampling;
}

}  // namespace gradplane::aggregate
