// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "dataplane/base/assert.h"
#include "dataplane/job/job.h"

namespace gradplane::job {
namespace {

/// How often the edges are scanned for silent peers.
constexpr Duration kScanInterval = Duration::us(500);
/// A probe timeout doubles with each unanswered probe, this many times at most, and up to the
/// longest pause. A peer that loses much (or whose address is being resolved) is asked again soon:
/// one block each pause is no load, and a job that stands still costs more.
constexpr std::uint8_t kMaxBackoff = 5;
constexpr Duration kLongestProbePause = Duration::ms(40);

Duration probe_pause(const hop::Flow& flow, std::uint8_t backoff) {
  const Duration timeout = flow.probe_timeout();
  return std::max(timeout, std::min(timeout * (std::int64_t{1} << backoff), kLongestProbePause));
}

/// From this round trip on repairs go twice where nothing else waits; and where blocks get lost, so
/// does the end of a round, as much of it as fits this part of a round trip.
constexpr Duration kLongPath = Duration::ms(10);
constexpr std::int64_t kTailShare = 4;

/// A sample, because who hears of it wants to know how short the path can be, too.
std::uint16_t round_trip_to(const hop::Flow& flow) {
  const std::int64_t units = flow.latest_rtt().count_ns() / wire::kRoundTripUnit.count_ns();
  if (flow.latest_rtt() <= Duration{}) return 0;
  return static_cast<std::uint16_t>(std::clamp<std::int64_t>(units, 1, UINT16_MAX));
}

/// Unanswered probes after which the window shrinks.
constexpr std::uint8_t kSilentAfterProbes = 2;

}  // namespace

wire::Header Job::header_for(wire::PacketType type, std::uint8_t tree, std::uint32_t round,
                             Instant now) const {
  wire::Header h;
  h.type = type;
  h.tree = tree;
  h.job = config_.job;
  h.epoch = config_.epoch;
  h.round = round;
  h.sender = config_.self;
  h.timestamp_us = hop::clock_us(now);
  return h;
}

Job::Outgoing Job::finish_packet(std::uint16_t peer, std::span<std::byte> packet) const {
  const std::uint16_t node = config_.peers[peer].node;
  if (config_.authenticate) {
    wire::authenticate(packet, config_.key, wire::Receiver::node(node));
  }
  return {node, static_cast<std::uint32_t>(packet.size())};
}

std::optional<Job::Outgoing> Job::poll_ack(std::span<std::byte> out, Instant now) {
  while (!urgent_acks_.empty()) {
    const AckRequest request = urgent_acks_.front();
    urgent_acks_.pop();
    if (const auto sent = write_ack(request, out, now)) return sent;
  }
  while (!delayed_acks_.empty() && delayed_acks_.front().deadline <= now) {
    const AckRequest request = delayed_acks_.front();
    delayed_acks_.pop();
    if (const auto sent = write_ack(request, out, now)) return sent;
  }
  return std::nullopt;
}

std::optional<Job::Outgoing> Job::write_ack(const AckRequest& request, std::span<std::byte> out,
                                            Instant now) {
  InEdge& edge = edges_.in[request.edge];
  const Round& round = slot_of(request.round);
  hop::BlockReceiver::Ack& ack = *ack_;
  hop::BlockReceiver& receiver = edge.receivers[request.round % kRoundSlots];
  const bool is_open = round.open && round.id == request.round;
  const bool ended_last = !round.open && round.id - kRoundSlots == request.round;
  if (is_open) {
    if (!receiver.owes_ack()) return std::nullopt;  // an earlier one has said it all
    if (waits_for_closing(round, edge)) return std::nullopt;
    receiver.fill_ack(ack, now);
  } else if (ended_last && receiver.closed()) {
    receiver.fill_ack(ack, now);
    ack.flags |= wire::kFlagEnded;
  } else {
    // The round has ended here, and was not closed: every block of the edge has arrived.
    ack.flags = wire::kFlagComplete | wire::kFlagEnded;
    ack.first_word = 0;
    ack.word_count = 0;
    ack.body = {};
  }
  const auto type = edge.type == wire::PacketType::kPush ? wire::PacketType::kPushAck
                                                         : wire::PacketType::kResultAck;
  wire::Header h = header_for(type, edge.tree, request.round, now);
  h.flags = ack.flags;
  h.block = ack.first_word;
  h.elements = static_cast<std::uint16_t>(ack.word_count);
  ack.body.marked_packets = marks_[edge.peer].came;
  if (grants_ != nullptr) {
    const wire::GrantBody grant = grant_of(edge.peer);
    ack.body.unscheduled_blocks = grant.unscheduled_blocks;
    ack.body.total_blocks = grant.total_blocks;
  }
  const std::size_t bytes = wire::write_ack(out, h, ack.body, {ack.words.data(), ack.word_count});
  ++counters_.acks_sent;
  return finish_packet(edge.peer, out.first(bytes));
}

/// The parent ends a round when we have all its results, and forgets what of ours is in them. So it
/// learns that we have them only when we know that too.
bool Job::waits_for_closing(const Round& round, const InEdge& edge) const {
  const std::size_t slot = round.id % kRoundSlots;
  if (edge.type != wire::PacketType::kResult || !edge.receivers[slot].complete()) return false;
  return !edges_.out[edges_.push_out_of_tree[edge.tree]].senders[slot].settled();
}

Job::Work Job::next_work(std::uint16_t peer) const {
  Work best;
  for (const std::uint16_t index : edges_.out_of_peer[peer]) {
    for (unsigned bits = edges_.out[index].queued; bits != 0; bits &= bits - 1) {
      const Work work{index, static_cast<std::size_t>(std::countr_zero(bits))};
      if (best.edge == kNoPeer || goes_before(work, best)) best = work;
    }
  }
  return best;
}

bool Job::goes_before(const Work& work, const Work& other) const {
  const auto newer = static_cast<std::int32_t>(rounds_[work.slot].id - rounds_[other.slot].id);
  // Of the same round results go first: they let somebody finish.
  if (newer == 0) return edges_.out[work.edge].type == wire::PacketType::kResult;
  if (!config_.forward_order) return newer < 0;
  if (iteration_->is_earlier(work.slot, other.slot)) return true;
  return newer > 0 && !iteration_->is_earlier(other.slot, work.slot);
}

std::optional<Job::Outgoing> Job::poll_data(std::span<std::byte> out, Instant now) {
  const std::size_t peers = config_.peers.size();
  for (std::size_t i = 0; i < peers; ++i) {
    const auto peer = static_cast<std::uint16_t>((next_peer_ + i) % peers);
    if (next_send_to(peer) > now) continue;
    const Work work = next_work(peer);
    if (work.edge == kNoPeer) {
      flows_[peer].note_app_limited();
      continue;
    }
    next_peer_ = static_cast<std::uint16_t>((peer + 1) % peers);
    return write_block(edges_.out[work.edge], work.slot, out, now);
  }
  return std::nullopt;
}

/// send = min(grant, window), and a probe goes whatever they say (docs/protocol.md, section 6).
Instant Job::next_send_to(std::uint16_t peer) const {
  const hop::Flow& flow = flows_[peer];
  if (!config_.grants || flow.has_probe_due()) return flow.next_send();
  return std::max(flow.next_send(), credits_[peer].next_send(flow.in_flight()));
}

/// Blocks that could go to a peer if it let them.
std::uint16_t Job::waiting_for(std::uint16_t peer) const {
  std::uint32_t blocks = 0;
  for (const std::uint16_t index : edges_.out_of_peer[peer]) {
    const OutEdge& edge = edges_.out[index];
    for (unsigned bits = edge.queued; bits != 0; bits &= bits - 1) {
      blocks += edge.senders[static_cast<std::size_t>(std::countr_zero(bits))].queued();
    }
  }
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(blocks, UINT16_MAX));
}

Job::Outgoing Job::write_block(OutEdge& edge, std::size_t slot, std::span<std::byte> out,
                               Instant now) {
  const Round& round = rounds_[slot];
  hop::BlockSender& sender = edge.senders[slot];
  hop::Flow& flow = flows_[edge.peer];
  const bool is_long = flow.min_rtt() >= kLongPath;
  const hop::BlockSender::Pick pick = sender.take(hop::clock_us(now), is_long);
  if (is_long && flow.is_lossy() && sender.all_sent() && !sender.has_queued()) {
    sender.copy_tail(hop::clock_us(now), flow.min_rtt() / kTailShare);
  }
  wire::Header h = header_for(edge.type, edge.tree, round.id, now);
  if (sender.is_critical(pick.block)) h.flags |= wire::kFlagCritical;
  if (pick.retransmission) h.flags |= wire::kFlagRetransmission;
  if (sender.all_sent()) h.flags |= wire::kFlagLast;
  if (edge.type == wire::PacketType::kPush && round.bucket != nullptr) {
    h.flags |= wire::kFlagBounded;
  }
  h.element_type = round.geometry.type;
  h.bucket = round.geometry.bucket;
  h.block = pick.block;
  h.elements = static_cast<std::uint16_t>(round.geometry.elements_in(pick.block));
  h.round_elements = round.geometry.elements;
  const std::span<const std::byte> bytes = bytes_to_send(edge, round, pick.block, h.contributors);
  if (edge.type == wire::PacketType::kResult && h.contributors < config_.world_size) {
    h.flags |= wire::kFlagPartial;
  }
  refresh(edge, slot);
  const std::size_t wire_bytes = round.geometry.bytes_in(pick.block) + kWireOverheadBytes;
  h.waiting_blocks = waiting_for(edge.peer);
  credits_[edge.peer].on_sent(now, wire_bytes);
  h.sent_blocks = credits_[edge.peer].sent();
  h.round_trip = round_trip_to(flow);
  wire::write_header(out, h);
  std::memcpy(out.data() + wire::kHeaderBytes, bytes.data(), bytes.size());

  if (pick.copy) {
    flow.on_copy_sent(now, wire_bytes);
  } else {
    flow.on_sent(now, wire_bytes, pick.retransmission);
  }
  edge.active_us[slot] = hop::clock_us(now);
  ++counters_.blocks_sent;
  if (pick.retransmission) ++counters_.blocks_retransmitted;
  counters_.payload_bytes_sent += bytes.size();
  return finish_packet(edge.peer, out.first(wire::kHeaderBytes + bytes.size()));
}

std::span<const std::byte> Job::bytes_to_send(const OutEdge& edge, const Round& round,
                                              std::uint32_t block,
                                              std::uint16_t& contributors) const {
  if (sums_in(edge.tree)) {
    const aggregate::Accumulator& sums = round.accumulators[edge.tree];
    contributors = sums.contributors(block);
    return sums.sealed(block);
  }
  contributors = 1;
  const std::byte* slot =
      config_.local_ranks[0].arena + (round.id % kRoundSlots) * config_.round_bytes;
  return {slot + round.geometry.offset_bytes(block), round.geometry.bytes_in(block)};
}

void Job::refresh(OutEdge& edge, std::size_t slot) {
  const auto bit = static_cast<std::uint16_t>(1U << slot);
  const hop::BlockSender& sender = edge.senders[slot];
  const bool may_go = sender.has_queued() && (edge.held & bit) == 0;
  edge.queued = static_cast<std::uint16_t>(may_go ? edge.queued | bit : edge.queued & ~bit);
  edge.waiting =
      static_cast<std::uint16_t>(sender.in_flight() > 0 ? edge.waiting | bit : edge.waiting & ~bit);
}

/// A child takes no result of a round before it has contributed to it (see answers_a_push()). Its
/// first push shows that it has. Until then results would fill its window, be dropped and be sent
/// again and again, and keep from it the results of the older rounds that it is at.
void Job::release_results(const InEdge& push, std::size_t slot) {
  OutEdge& results = edges_.out[push.results];
  results.held = static_cast<std::uint16_t>(results.held & ~(1U << slot));
  refresh(results, slot);
}

void Job::tick(Instant now) {
  if (now < next_scan_) return;
  next_scan_ = now + kScanInterval;
  for (hop::Flow& flow : flows_) flow.on_tick(now);
  for (OutEdge& edge : edges_.out) {
    if (edge.waiting != 0) probe_edge(edge, now);
  }
  close_due_rounds(now);
  watch_rounds(now);
  ack_every_ = ack_every();
}

void Job::probe_edge(OutEdge& edge, Instant now) {
  hop::Flow& flow = flows_[edge.peer];
  const std::uint32_t now_us = hop::clock_us(now);
  for (unsigned bits = edge.waiting; bits != 0; bits &= bits - 1) {
    const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
    const auto silent = Duration::us(static_cast<std::int32_t>(now_us - edge.active_us[slot]));
    if (silent < probe_pause(flow, edge.backoff[slot])) continue;
    const std::uint32_t queued = edge.senders[slot].probe(now_us);
    flow.on_forgotten(queued);
    if (queued > 0) flow.on_probe();
    counters_.probes += queued;
    edge.active_us[slot] = now_us;
    edge.backoff[slot] = std::min<std::uint8_t>(kMaxBackoff, edge.backoff[slot] + 1);
    if (edge.backoff[slot] > kSilentAfterProbes) flow.on_silence(now);
    if (edge.type == wire::PacketType::kResult) repeat_closing(edge, slot, now);
    refresh(edge, slot);
  }
}

Instant Job::next_timer() const {
  if (!urgent_acks_.empty() || !local_work_.empty() || !events_.empty()) return Instant();
  Instant deadline = lossy_slots_ != 0 ? next_scan_ : Instant::never();
  if (is_watching()) deadline = std::min(deadline, std::max(watch_.next_look(), next_scan_));
  if (!delayed_acks_.empty()) deadline = std::min(deadline, delayed_acks_.front().deadline);
  for (const OutEdge& edge : edges_.out) {
    if (edge.waiting != 0) deadline = std::min(deadline, next_scan_);
  }
  return deadline;
}

Instant Job::next_data() const {
  Instant deadline = Instant::never();
  for (const OutEdge& edge : edges_.out) {
    if (edge.queued == 0) continue;
    deadline = std::min(deadline, next_send_to(edge.peer));
  }
  return deadline;
}

std::string_view flow_limit_name(FlowLimit limit) {
  constexpr std::array<std::string_view, 7> kNames = {
      "application", "peer", "window", "grant", "pacing", "peer link", "own link"};
  static_assert(kNames.size() == static_cast<std::size_t>(FlowLimit::kOwnLink) + 1);
  return kNames[static_cast<std::size_t>(limit)];
}

FlowLimit Job::limit_of(std::uint16_t peer, Instant now) const {
  bool is_silent = false;
  bool has_queued = false;
  for (const std::uint16_t index : edges_.out_of_peer[peer]) {
    const OutEdge& edge = edges_.out[index];
    has_queued = has_queued || edge.queued != 0;
    for (unsigned bits = edge.waiting; bits != 0; bits &= bits - 1) {
      const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
      is_silent = is_silent || edge.backoff[slot] >= kSilentAfterProbes;
    }
  }
  const hop::Flow& flow = flows_[peer];
  if (is_silent) return FlowLimit::kPeer;
  if (!has_queued) return FlowLimit::kApplication;
  if (flow.window_is_full()) return FlowLimit::kWindow;
  if (config_.grants && credits_[peer].next_send(flow.in_flight()) > now) return FlowLimit::kGrant;
  if (flow.link_is_busy(now)) return FlowLimit::kPeerLink;
  return flow.may_send(now) ? FlowLimit::kOwnLink : FlowLimit::kPacing;
}

bool Job::poll_event(Event& out) {
  if (events_.empty()) return false;
  out = events_.front();
  events_.pop();
  if (out.kind == Event::Kind::kStalled) stall_is_told_ = false;
  return true;
}

}  // namespace gradplane::job
