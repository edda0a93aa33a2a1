// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "dataplane/base/time.h"

/// Congestion controllers: how much one sender may have in flight towards one peer, and how fast it
/// may send. Controllers are pure state machines: events come in, and a decision goes out. The unit
/// of windows, losses, acks and marks is the block. A packet carries one block, or several of a
/// narrow wire type.
namespace gradplane::congestion {

/// The largest window, in blocks.
inline constexpr double kMaxWindow = 4096;
/// The smallest window, in blocks. Below one block, pacing spaces single blocks.
inline constexpr double kMinWindow = 0.01;

/// An ack or another message of the peer. Any number may be zero. An ack may only measure, or
/// report marks on blocks that were already known to have arrived. A result that stands for an ack
/// measures nothing.
struct AckEvent {
  Instant now = {};
  std::uint32_t acked_blocks = 0;      // blocks that are newly acked
  std::uint32_t in_flight_blocks = 0;  // blocks in flight before this event
  /// Blocks in packets that the network marked (RFC 3168), which no earlier event counted.
  std::uint32_t marked_blocks = 0;
  /// Some of the acked blocks were sent while nothing more waited, so a rate measured from them is
  /// below what the path can carry.
  bool app_limited = false;
  Duration rtt = {};           // a new sample; zero: none
  Duration smoothed_rtt = {};  // zero: never measured
  Duration min_rtt = {};       // the minimum of the last seconds; zero: never measured
  /// The time that packets wait in queues on the way to the peer, smoothed. None if it cannot be
  /// told apart from the way back.
  std::optional<Duration> queueing = {};

  /// The same; if it is not known, the queueing time of both directions.
  Duration queueing_or_both() const { return queueing.value_or(smoothed_rtt - min_rtt); }
};

struct LossEvent {
  /// kGap: later packets have arrived. kSilence: several probes were not answered.
  enum class Why : std::uint8_t { kGap, kSilence };
  Instant now = {};
  Why why = Why::kGap;
  std::uint32_t lost_blocks = 0;
  Instant newest_sent = {};  // when the last of these blocks was sent
  Duration smoothed_rtt = {};
};

/// Where a job is in its iteration.
struct Phase {
  double ratio = 0;  // share of blocks that are acked or written off, 0 to 1
};

struct Decision {
  double window_blocks = kMinWindow;         // kMinWindow..kMaxWindow
  std::uint64_t pacing_bits_per_second = 0;  // with all overhead on the link; 0: not paced
};

/// Why a decision is what it is.
enum class Reason : std::uint8_t {
  kStart,    // nothing has limited the window yet: it grows fast
  kGrowth,   // it probes for more
  kLoss,     // reduced after a loss
  kMark,     // reduced because the network marked packets
  kDelay,    // reduced because packets waited in a queue, or to measure the path without one
  kSilence,  // reduced because the peer does not answer
  kIdle,     // started anew after an idle time
  kPath,     // covers what the path holds at its known or measured rate
  kRate,     // a configured rate
};
std::string_view reason_name(Reason reason);

struct Stats {
  Reason reason = Reason::kStart;
  std::uint64_t reductions = 0;  // how often window or rate were reduced
  double gain = 1;               // a decorator's factor on increases
};

/// One controller of one flow. Time comes in as an argument and never goes back. Nothing is
/// allocated after construction. For one thread.
class Controller {
 public:
  virtual ~Controller() = default;
  virtual std::string_view name() const = 0;

  /// A block of `wire_bytes` is sent. `in_flight_blocks` does not include it.
  virtual void on_sent(Instant /*now*/, std::uint32_t /*wire_bytes*/,
                       std::uint32_t /*in_flight_blocks*/) {}
  virtual void on_ack(const AckEvent& event) = 0;
  virtual void on_loss(const LossEvent& event) = 0;
  /// Runs the controller's timers. It may be called late, or never while nothing is in flight.
  virtual void on_tick(Instant /*now*/) {}
  virtual Instant next_tick() const { return Instant::never(); }
  /// Only a decorator listens to this.
  virtual void on_phase(const Phase& /*phase*/) {}
  /// This sender's share of the peer's link changes; 0: not known. See Path.
  virtual void set_link_rate(std::uint64_t /*bits_per_second*/) {}
  /// Multiplies every increase of the controller, except in slow start, and does not change
  /// reductions. Greater than 0. At first it is 1, which is the controller as published.
  virtual void set_gain(double /*gain*/) {}

  virtual Decision decide(Instant now) const = 0;
  virtual Stats stats() const = 0;
};

}  // namespace gradplane::congestion
