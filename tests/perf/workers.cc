// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/perf/workers.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "dataplane/hop/clock.h"
#include "dataplane/wire/ack.h"
#include "dataplane/wire/seal.h"

namespace gradplane::testing {
namespace {

constexpr std::uint32_t kJob = 1;
constexpr std::uint16_t kEpoch = 1;
constexpr float kContribution = 1;
/// The longest time for which an ack waits for more results. An aggregator's window may be only a
/// few blocks.
constexpr Duration kAckDelay = Duration::us(20);

wire::Envelope envelope_of(wire::PacketType type, std::uint16_t node, Instant now) {
  wire::Envelope envelope;
  envelope.type = type;
  envelope.job = kJob;
  envelope.sender = node;
  envelope.timestamp_us = hop::clock_us(now);
  return envelope;
}

}  // namespace

Workers::Workers(port::PortQueue& queue, const Settings& settings)
    : queue_(queue),
      settings_(settings),
      geometry_(Geometry::of(ElementType::kFloat32,
                             static_cast<std::uint32_t>(settings.round_bytes / sizeof(float)),
                             settings.block_bytes)),
      key_(wire::Key{}),
      payload_(settings.block_bytes),
      workers_(settings.count + 1u) {
  for (std::size_t at = 0; at < payload_.size(); at += sizeof kContribution) {
    std::memcpy(payload_.data() + at, &kContribution, sizeof kContribution);
  }
  for (Worker& worker : workers_) {
    worker.results.assign(kAhead, hop::BlockReceiver(geometry_.blocks));
    for (std::uint32_t r = 0; r < kAhead; ++r) {
      worker.results[r].open({0, geometry_.blocks});
      worker.result_rounds.push_back(r);
    }
  }
}

void Workers::turn(Instant now) {
  while (receive(now)) {
  }
  ack_what_is_due(now);
  send(now);
}

bool Workers::receive(Instant now) {
  std::array<port::RxDatagram, port::kMaxBurst> burst;
  const std::size_t count = queue_.receive(burst);
  const auto got = std::span(burst).first(count);
  for (const port::RxDatagram& datagram : got) take(datagram, now);
  queue_.release(got);
  return count > 0;
}

void Workers::take(const port::RxDatagram& datagram, Instant now) {
  const std::size_t node = std::size_t{datagram.destination_udp_port} - settings_.first_udp_port;
  wire::Envelope envelope;
  if (node == 0 || node >= workers_.size() ||
      wire::read_envelope(datagram.payload, envelope) != wire::ParseError::kNone ||
      envelope.type != wire::PacketType::kResult) {
    return;
  }
  const auto packet = wire::open_unsealed(datagram.payload);
  if (wire::read_block(envelope, packet, packet_) != wire::ParseError::kNone) return;
  take_result(workers_[node], static_cast<std::uint16_t>(node), packet_, now);
}

void Workers::take_result(Worker& worker, std::uint16_t node, const wire::BlockPacket& packet,
                          Instant now) {
  const std::uint32_t round = packet.header.round;
  hop::BlockReceiver& results = worker.results[round % kAhead];
  if (round >= next_.round + 1 || round + kAhead < next_.round) return;
  if (worker.result_rounds[round % kAhead] != round) {
    // The worker has all results of this round.
    if (worker.result_rounds[round % kAhead] > round) return;
    worker.result_rounds[round % kAhead] = round;
    results.open({0, geometry_.blocks});
  }
  float sum = 0;
  std::memcpy(&sum, packet.payload.data(), sizeof sum);
  correct_ = correct_ && sum == kContribution * static_cast<float>(settings_.count);
  const bool is_new = results.accept(packet.header.block);
  const bool at_once =
      results.note_packet({.timestamp_us = packet.envelope->timestamp_us,
                           .duplicate = !is_new,
                           .last = (packet.envelope->flags & wire::kFlagLast) != 0},
                          now);
  if (at_once) ack(worker, node, round, results, now);
  while (worker.result_rounds[worker.completed % kAhead] == worker.completed &&
         worker.results[worker.completed % kAhead].complete()) {
    ++worker.completed;
  }
}

void Workers::ack(Worker& worker, std::uint16_t node, std::uint32_t round,
                  hop::BlockReceiver& results, Instant now) {
  port::TxDatagram datagram;
  if (!queue_.allocate(datagram)) return;
  hop::BlockReceiver::Ack ack;
  results.fill_ack(ack, now);
  ack.body.oldest_round = worker.completed;
  worker.acked_at = now;
  wire::Envelope envelope = envelope_of(wire::PacketType::kResultAck, node, now);
  envelope.flags = ack.flags;
  const wire::AckHeader header{
      .epoch = kEpoch, .tree = 0, .path = 0, .round = round, .first_word = ack.first_word};
  const std::size_t bytes = wire::write_ack(datagram.buffer, envelope, header, ack.body,
                                            std::span(ack.words).first(ack.word_count));
  finish(datagram, node, static_cast<std::uint32_t>(bytes));
  worker.ack_again[round % kAhead] = queue_.transmit({&datagram, 1}) == 0;
}

void Workers::ack_what_is_due(Instant now) {
  for (std::uint16_t n = 1; n < workers_.size(); ++n) {
    Worker& worker = workers_[n];
    const bool is_late = now >= worker.acked_at + kAckDelay;
    for (std::uint32_t slot = 0; slot < kAhead; ++slot) {
      const bool is_owed = is_late && worker.results[slot].owes_ack();
      if (!is_owed && !worker.ack_again[slot]) continue;
      ack(worker, n, worker.result_rounds[slot], worker.results[slot], now);
    }
  }
}

/// Sends a burst of blocks. Those for which the ring has no room are sent later with new packet
/// numbers.
void Workers::send(Instant now) {
  oldest_ = workers_[1].completed;
  for (std::size_t n = 2; n < workers_.size(); ++n) {
    oldest_ = std::min(oldest_, workers_[n].completed);
  }
  std::array<port::TxDatagram, port::kMaxBurst> burst;
  std::array<Cursor, port::kMaxBurst> cursors;
  std::size_t count = 0;
  for (Cursor at = next_; count < burst.size() && at.round < oldest_ + kAhead; at = after(at)) {
    if (!queue_.allocate(burst[count])) break;
    finish(burst[count], at.worker, write_push(burst[count].buffer, at, now));
    cursors[count++] = at;
  }
  if (count == 0) return;
  const std::size_t sent = queue_.transmit(std::span(burst).first(count));
  next_ = sent < count ? cursors[sent] : after(cursors[count - 1]);
}

std::uint32_t Workers::write_push(std::span<std::byte> out, const Cursor& at, Instant now) {
  wire::Envelope envelope = envelope_of(wire::PacketType::kPush, at.worker, now);
  envelope.flags = wire::kFlagCritical;
  if (at.block + 1 == geometry_.blocks) envelope.flags |= wire::kFlagLast;
  wire::BlockHeader header;
  header.epoch = kEpoch;
  header.round = at.round;
  header.block = static_cast<std::uint16_t>(at.block);
  header.round_elements = geometry_.elements;
  header.contributors = 1;
  const wire::HopFeedback hop{
      .sent_blocks = ++workers_[at.worker].sent_blocks, .waiting_blocks = 1, .round_trip = 1};
  const std::size_t at_payload = wire::write_block(out, envelope, header, &hop);
  const std::size_t bytes = geometry_.bytes_in(at.block);
  std::memcpy(out.data() + at_payload, payload_.data(), bytes);
  return static_cast<std::uint32_t>(at_payload + bytes + wire::kTagBytes);
}

/// Gives a packet its number and its tag, and sets its destination.
void Workers::finish(port::TxDatagram& datagram, std::uint16_t node, std::uint32_t bytes) {
  const std::uint64_t number = ++workers_[node].number;
  const std::span<std::byte> packet = datagram.buffer.first(bytes);
  if (settings_.authenticate) {
    wire::seal(packet, key_,
               {.writer = node, .receiver = wire::Receiver::node(0), .number = number});
  } else {
    wire::number_unsealed(packet, number);
  }
  datagram.length_bytes = bytes;
  datagram.destination = Endpoint{settings_.aggregator, settings_.aggregator_udp_port};
  datagram.source_udp_port = static_cast<std::uint16_t>(settings_.first_udp_port + node);
  datagram.is_tagged = settings_.authenticate;
}

/// Sends a block of all workers before the next block, as they would reach a slow aggregator.
Workers::Cursor Workers::after(Cursor at) const {
  if (++at.worker < workers_.size()) return at;
  at.worker = 1;
  if (++at.block < geometry_.blocks) return at;
  return {.round = at.round + 1, .block = 0, .worker = 1};
}

}  // namespace gradplane::testing
