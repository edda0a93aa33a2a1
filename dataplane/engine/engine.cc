// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/engine/engine.h"

#include <algorithm>
#include <cstring>

#include "dataplane/base/assert.h"
#include "dataplane/engine/addressing.h"
#include "dataplane/wire/seal.h"

namespace gradplane::engine {

using api::Stage;

namespace {

/// Blocks of local contributions that one turn sums at most. This takes some 50 us, so acks never
/// wait long.
constexpr std::size_t kSumBlocksPerTurn = 64;
/// Bursts that one turn sends at most, so that receiving is never starved.
constexpr std::size_t kTransmitBurstsPerTurn = 4;
/// Turns between two passes of housekeeping: commands, beats and timers.
constexpr std::uint64_t kHousekeepingTurns = 32;
static_assert((kHousekeepingTurns & (kHousekeepingTurns - 1)) == 0);
constexpr Duration kBeatInterval = Duration::ms(50);
constexpr std::size_t kControlQueueEntries = 128;
static_assert(kControlQueueEntries <= kTransmitBurstsPerTurn * port::kMaxBurst,
              "a turn sends all control datagrams that wait");
/// Turns in finish(), so that all commands of the control thread are obeyed.
constexpr std::size_t kLastTurns = api::kQueueEntries / kControlQueueEntries + 1;

/// Only the engine of queue 0 grants for its node.
job::Node::Link link_of(const EngineOptions& options, const port::PortQueue& queue) {
  job::Node::Link link = options.link;
  link.lends_from_bytes = queue.lends_from_bytes();
  link.grants = options.queue == 0;
  if (options.shared_link != nullptr) link.share = options.shared_link->share(options.queue);
  return link;
}

/// Lent bytes go between the packet's own bytes and its tag. They stay as they are until the burst
/// has been sent, because until then the node is polled only for packets. A NIC may read them
/// later; see Port::add_memory().
void lend(std::span<const std::byte> bytes, port::TxDatagram& datagram) {
  datagram.lent = bytes;
  datagram.lent_at_bytes = datagram.length_bytes - static_cast<std::uint32_t>(wire::kTagBytes);
}

}  // namespace

Engine::Engine(EngineOptions options, port::PortQueue& queue, api::CommandQueue& commands,
               api::EventQueue& events, api::ReportQueue& reports)
    : options_(std::move(options)),
      queue_(queue),
      commands_(commands),
      events_(events),
      reports_(reports),
      node_(options_.self, link_of(options_, queue), options_.grants),
      control_out_(kControlQueueEntries),
      demand_(options_.link.bits_per_second),
      stages_(options_.clock) {
  for (std::size_t n = 0; n < options_.nodes.size(); ++n) {
    node_by_address_.emplace_back(options_.nodes[n], static_cast<std::uint16_t>(n));
  }
  std::sort(node_by_address_.begin(), node_by_address_.end());
  if (options_.shared_link != nullptr && node_.paced_bits_per_second() > 0) next_lease_ = Instant();
}

bool Engine::poll_once(Instant now) {
  now_ = now;
  stages_.begin_turn(polls_);
  bool worked = receive(now);  // first, because acks open windows that transmit() fills
  stages_.end(Stage::kReceive);
  worked |= take_submissions();
  stages_.end(Stage::kSubmit);
  worked |= node_.sum_local(kSumBlocksPerTurn);
  stages_.end(Stage::kSum);
  // Completions go to trainers before acks go to the network. So an ack of the last result proves
  // that the completion is in the rank's ring, even if this process is killed in between
  // (docs/decisions/0007).
  worked |= report_events();
  stages_.end(Stage::kReport);
  worked |= transmit(now);
  stages_.end(Stage::kTransmit);
  report_rounds();  // before housekeep(), which may give a job back
  if ((polls_++ % kHousekeepingTurns) == 0 || !worked) worked |= housekeep(now);
  stages_.end(Stage::kHousekeep);
  stages_.end_turn(worked);
  busy_polls_ += worked ? 1 : 0;
  return worked;
}

void Engine::finish(Instant now) {
  // The session's last words. A full queue of datagrams holds commands back, so it takes turns.
  for (std::size_t n = 0; n < kLastTurns; ++n) {
    (void)housekeep(now);
    (void)transmit(now);
  }
  for (std::size_t n = 0; n < port::kTicksToTellAll; ++n) queue_.tick(now);
}

bool Engine::receive(Instant now) {
  std::array<port::RxDatagram, port::kMaxBurst> burst;
  const std::size_t count = queue_.receive(burst);
  const awareness::Arrival arrival{
      .at = now, .waited = now - emptied_at_, .took_all = count < burst.size()};
  if (arrival.took_all) emptied_at_ = now;
  for (std::size_t i = 0; i < count; ++i) {
    const port::RxDatagram& datagram = burst[i];
    const std::optional<std::uint16_t> node = node_of(datagram.source.address);
    if (!node || datagram.destination_udp_port != options_.udp_port) {
      node_.counters().drop(hop::Drop::kUnknownNode);
      continue;
    }
    const auto control =
        node_.handle(*node, datagram.payload, datagram.congestion_experienced, arrival);
    if (control) give_up_control(*node, *control);
  }
  queue_.release({burst.data(), count});
  rx_bursts_ += count > 0 ? 1 : 0;
  return count > 0;
}

bool Engine::take_submissions() {
  bool moved = false;
  for (std::size_t j = 0; j < job_count_; ++j) {
    moved = jobs_[j]->take_submissions() || moved;
    if (events_.room() == 0) continue;
    if (const auto broken = jobs_[j]->take_broken()) {
      scratch_event_ = {};
      scratch_event_.kind = api::Event::Kind::kRankBroken;
      scratch_event_.job = jobs_[j];
      scratch_event_.local_rank = broken->local_rank;
      scratch_event_.fault = broken->fault;
      ++rank_faults_[static_cast<std::size_t>(broken->fault)];
      tell(scratch_event_);
      moved = true;  // a turn with work wakes the control thread
    }
  }
  return moved;
}

bool Engine::report_events() {
  bool any = false;
  for (std::size_t j = 0; j < job_count_; ++j) {
    job::Event event;
    while (jobs_[j]->job().poll_event(event)) {
      any = true;
      switch (event.kind) {
        case job::Event::Kind::kRoundDone:
          jobs_[j]->complete(event);
          break;
        case job::Event::Kind::kMismatch:
          report_mismatch(jobs_[j], event);
          break;
        case job::Event::Kind::kStalled:
          report_stall(jobs_[j], event);
          break;
      }
    }
    any = return_ended_plan(jobs_[j]) || any;
  }
  return any;
}

bool Engine::transmit(Instant now) {
  bool any = false;
  for (std::size_t burst_index = 0; burst_index < kTransmitBurstsPerTurn; ++burst_index) {
    std::array<port::TxDatagram, port::kMaxBurst> burst;
    std::size_t count = 0;
    while (count < burst.size()) {
      port::TxDatagram& datagram = burst[count];
      if (!queue_.allocate(datagram)) break;
      job::Node::Outgoing packet;
      if (!control_out_.empty()) {
        packet.node = control_out_.front().node;
        datagram.length_bytes = write_control(datagram.buffer, control_out_.front());
        datagram.traffic_class = port::TrafficClass::kControl;
        packet.is_tagged = true;  // the session has written the tag
        control_out_.pop();
      } else if (const auto next = node_.poll_transmit(datagram.buffer, now)) {
        packet = *next;
        datagram.length_bytes = packet.length_bytes;
        datagram.traffic_class =
            packet.data ? port::TrafficClass::kData : port::TrafficClass::kControl;
      } else {
        queue_.discard(datagram);
        break;
      }
      const Way way = way_of(packet, options_);
      datagram.destination = way.destination;
      datagram.source_udp_port = way.source_udp_port;
      datagram.is_tagged = packet.is_tagged;
      if (!packet.lent.empty()) lend(packet.lent, datagram);
      ++count;
    }
    if (count == 0) break;
    any = true;
    queue_.transmit({burst.data(), count});
    ++tx_bursts_;
    if (count < burst.size()) break;
  }
  return any;
}

bool Engine::housekeep(Instant now) {
  bool worked = false;
  while (const api::Command* command = commands_.front()) {
    // The answer to a command gives back what the command handed over, so a command waits until
    // there is room for its answer.
    if (events_.room() == 0 || !obey(*command)) break;
    commands_.pop();
    worked = true;
  }
  if (now >= next_lease_) share_link(now);
  node_.tick(now);
  queue_.tick(now);
  if (queue_.counters().rx_missed != missed_) {
    missed_ = queue_.counters().rx_missed;
    node_.on_ring_pressure(now);
  }
  if (now >= next_beat_) {
    next_beat_ = now + kBeatInterval;
    for (std::size_t j = 0; j < job_count_; ++j) jobs_[j]->beat();
  }
  return worked;
}

Instant Engine::next_deadline(Instant now) const {
  if (!control_out_.empty()) return Instant();
  return std::min({node_.next_deadline(now), next_beat_, next_lease_});
}

bool Engine::prepare_sleep() {
  for (std::size_t j = 0; j < job_count_; ++j) jobs_[j]->announce_sleep();
  for (std::size_t j = 0; j < job_count_; ++j) {
    if (!jobs_[j]->has_submissions()) continue;
    end_sleep();
    return false;
  }
  ++sleeps_;
  return true;
}

void Engine::end_sleep() {
  for (std::size_t j = 0; j < job_count_; ++j) jobs_[j]->end_sleep();
}

}  // namespace gradplane::engine
