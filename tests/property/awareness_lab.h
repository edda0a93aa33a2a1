// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "dataplane/awareness/incoming_links.h"
#include "dataplane/awareness/sounding_policy.h"
#include "dataplane/hop/pacer.h"
#include "tests/lab/link.h"

namespace gradplane::testing {

inline constexpr std::size_t kFrameBytes = 1514;
inline constexpr std::uint32_t kWireBytes = lab::wire_bytes(kFrameBytes);
/// The interval between polls of a sender, and the shortest interval between polls of the receiver.
inline constexpr Duration kLabStep = Duration::us(20);
inline constexpr std::size_t kLabBurst = 32;
inline constexpr std::size_t kLabFlows = 16;  // the most flows

/// Traffic of one sender: rounds of blocks with pauses between them. The window grows with each
/// ack, until it fills the path and half of the queue.
struct LabTraffic {
  std::uint32_t rounds = 10;
  std::uint32_t blocks = 600;  // in a round
  Duration pause_max = Duration::ms(100);
  Duration first_at;
  std::uint64_t paced_bits_per_second = 0;  // 0: no pacing
  bool soundings = false;
  std::int64_t clock_offset_us = 0;  // of the sender's clock
  std::int64_t clock_drift_ppm = 0;
};

struct LabReceiver {
  Duration poll_every = kLabStep;
  Duration stall;  // sometimes it does not poll for so long
};

/// Several senders send over one direction of one link to one receiver, in virtual time. Acks are
/// not lost.
class AwarenessLab {
 public:
  AwarenessLab(const lab::LinkSettings& link, const LabReceiver& receiver, std::uint64_t seed)
      : link_(link), receiver_(receiver), random_(seed) {}

  /// Adds a sender. If `same_as` is given, it is another job of that sender and shares its
  /// LinkEstimate.
  void add(const LabTraffic& traffic, std::optional<std::size_t> same_as = {}) {
    const std::size_t estimate = same_as.value_or(flows_.size());
    flows_.emplace_back(traffic, estimate, burst_bytes(traffic));
    flows_.back().next_round_at = now_ + traffic.first_at;
    flows_.back().rounds_left = traffic.rounds;
  }

  /// Runs until all rounds have ended and all packets have arrived.
  void run() {
    while (std::any_of(flows_.begin(), flows_.end(), [](const Flow& f) { return !f.is_done(); })) {
      now_ = now_ + kLabStep;
      for (std::size_t f = 0; f < flows_.size(); ++f) step(f);
      if (now_ >= next_poll_) poll();
      if (links_.alarm(now_)) alarm_time_ += kLabStep;
    }
  }
  /// Runs further rounds of every flow.
  void again(std::uint32_t rounds) {
    for (Flow& f : flows_) f.rounds_left = rounds;
    run();
  }
  void set(const lab::LinkSettings& settings) { link_.set(settings); }

  Instant now() const { return now_; }
  const awareness::LinkEstimate& estimate(std::size_t flow) const {
    return *links_.find(static_cast<std::uint16_t>(flow));
  }
  awareness::RateEstimate rate(std::size_t flow) const { return estimate(flow).rate(now_); }
  /// How long the receiver has been in alarm.
  Duration alarm_time() const { return alarm_time_; }
  const awareness::SoundingPolicy& soundings(std::size_t flow) const {
    return flows_[flow].soundings;
  }
  /// The share of the packets that the link has lost or dropped.
  double lost() const {
    const auto& c = link_.counters();
    return static_cast<double>(c.queue_drops + c.random_drops) / static_cast<double>(c.frames);
  }

 private:
  struct Flow {
    Flow(const LabTraffic& t, std::size_t e, std::size_t burst)
        : traffic(t), estimate(e), pacer(t.paced_bits_per_second, burst) {}
    bool is_done() const { return rounds_left == 0 && left == 0 && acks.empty(); }

    LabTraffic traffic;
    std::size_t estimate;
    hop::Pacer pacer;
    awareness::SoundingPolicy soundings;
    awareness::Sounding sounding;
    awareness::LossMeter losses;
    std::uint32_t rounds_left = 0;
    std::uint32_t left = 0;  // blocks of the round that are still to be sent
    double window = 32;
    std::uint64_t number = 0;
    Instant next_round_at;
    std::priority_queue<Instant, std::vector<Instant>, std::greater<>> acks;
  };
  struct Frame {
    Instant at;
    std::size_t flow = 0;
    std::uint64_t number = 0;
    std::uint32_t sent_us = 0;
    bool operator<(const Frame& o) const { return at > o.at; }  // the queue pops the greatest
  };

  static std::size_t burst_bytes(const LabTraffic& t) {
    const auto bits = static_cast<double>(t.paced_bits_per_second) * hop::kPacerBurst.to_seconds();
    return std::max<std::size_t>(static_cast<std::size_t>(bits / 8), 2 * kWireBytes);
  }
  std::uint64_t draw(std::uint64_t below) { return below == 0 ? 0 : random_() % below; }
  double max_window() const {
    const lab::LinkSettings& s = link_.settings();
    const double path = static_cast<double>(s.rate_bits_per_second) / 8 *
                        (s.delay * 2 + receiver_.poll_every).to_seconds();
    const auto share = static_cast<double>(flows_.size());
    return (path + static_cast<double>(s.queue_bytes) / 2) / kWireBytes / share;
  }
  std::uint32_t clock_of(const Flow& f) const {
    const std::int64_t us = now_.count_ns() / 1000;
    return static_cast<std::uint32_t>(us + us * f.traffic.clock_drift_ppm / 1'000'000 +
                                      f.traffic.clock_offset_us);
  }

  void step(std::size_t index) {
    Flow& f = flows_[index];
    while (!f.acks.empty() && f.acks.top() <= now_) {
      f.acks.pop();
      f.window = std::min(f.window + 1, std::max(max_window(), 4.0));
    }
    if (f.left == 0 && f.acks.empty() && f.rounds_left > 0) begin_round(f);
    if (now_ < f.next_round_at) return;
    const auto node = static_cast<std::uint16_t>(f.estimate);
    const bool asks = f.traffic.soundings && links_.wants_train(node, now_);
    f.sounding.is_slow = links_.is_slow(node, now_);
    if (asks && f.left >= f.sounding.next_blocks() &&
        f.soundings.may_begin(now_, f.sounding, {.alarm = true})) {
      f.soundings.begin(now_, f.sounding);
    }
    if (!asks) f.sounding.on_use();
    for (std::size_t i = 0; i < kLabBurst && f.left > 0; ++i) {
      const bool has_room = static_cast<double>(f.acks.size()) < f.window;
      if (!f.sounding.is_on() && (!has_room || !f.pacer.may_send(now_))) return;
      send(f, index);
    }
    if (f.left == 0) f.soundings.end(f.sounding);
  }

  void begin_round(Flow& f) {
    --f.rounds_left;
    f.left = f.traffic.blocks;
    f.window = std::min(f.window, 32.0);
    const auto pause = static_cast<std::uint64_t>(f.traffic.pause_max.count_ns());
    const Duration drawn = Duration::ns(static_cast<std::int64_t>(draw(pause)));
    f.next_round_at = std::max(f.next_round_at, now_ + drawn);
  }

  void send(Flow& f, std::size_t index) {
    --f.left;
    f.soundings.on_sent(f.sounding);
    f.pacer.on_sent(now_, kWireBytes);
    const Frame frame{.at = now_, .flow = index, .number = ++f.number, .sent_us = clock_of(f)};
    const lab::Passage passage = link_.offer(now_, kFrameBytes, false, random_);
    for (std::size_t i = 0; i < passage.arrival_count; ++i) {
      Frame copy = frame;
      copy.at = passage.arrivals[i];
      on_the_way_.push(copy);
    }
    const Duration back = link_.settings().delay + receiver_.poll_every;
    f.acks.push((passage.arrival_count > 0 ? passage.arrivals[0] : now_ + back * 2) + back);
  }

  void poll() {
    std::vector<Frame> taken;
    while (taken.size() < kLabBurst && !on_the_way_.empty() && on_the_way_.top().at <= now_) {
      taken.push_back(on_the_way_.top());
      on_the_way_.pop();
    }
    const bool all = on_the_way_.empty() || on_the_way_.top().at > now_;
    const awareness::Arrival arrival{
        .at = now_, .waited = now_ - last_poll_, .took_all = taken.size() < kLabBurst};
    for (const Frame& frame : taken) {
      Flow& f = flows_[frame.flow];
      links_.on_packet(static_cast<std::uint16_t>(f.estimate),
                       {.sent_us = frame.sent_us, .wire_bytes = kWireBytes}, arrival,
                       {.loss = f.losses.on_packet(frame.number),
                        .round_trip = link_.settings().delay * 2 + link_wait()});
    }
    if (arrival.took_all) last_poll_ = now_;
    // After a poll that took a full burst, the next poll comes at once.
    next_poll_ = now_ + (all ? receiver_.poll_every : kLabStep);
    if (receiver_.stall > Duration{} && draw(500) == 0) next_poll_ = next_poll_ + receiver_.stall;
  }
  Duration link_wait() {
    const double bits = static_cast<double>(link_.queued_bytes(now_)) * 8;
    const auto rate = static_cast<double>(link_.settings().rate_bits_per_second);
    return Duration::ns(static_cast<std::int64_t>(bits * 1e9 / rate));
  }

  lab::Link link_;
  LabReceiver receiver_;
  lab::Rng random_;
  Instant now_ = Instant::from_ns(1'000'000'000);
  Instant last_poll_ = now_;
  Instant next_poll_ = now_;
  std::vector<Flow> flows_;
  awareness::IncomingLinks links_{kLabFlows};
  Duration alarm_time_;
  std::priority_queue<Frame> on_the_way_;
};

}  // namespace gradplane::testing
