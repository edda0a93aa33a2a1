// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "dataplane/base/time.h"
#include "dataplane/base/windowed_min.h"

namespace gradplane::awareness {

/// A measurement spans at least this many packets. The bytes between two polls are known to within
/// one packet, so the error is at most one part in this many.
inline constexpr std::uint32_t kTrainPackets = 32;
/// A measurement takes at least this long, so that the microseconds of the sender's clock and of
/// the poll loop do not matter.
inline constexpr Duration kMinTrainTime = Duration::ms(1);
/// If the beginning of a train takes this long, fewer packets make a measurement, which counts
/// until there is a better one. So a short train is enough on a slow link. One packet that was
/// overtaken causes an error of 6 %.
inline constexpr std::uint32_t kSlowTrainPackets = 16;
inline constexpr Duration kSlowTrainTime = Duration::ms(4);
static_assert(kSlowTrainPackets < kTrainPackets && kSlowTrainTime > kMinTrainTime);
/// A measurement takes at most this long. Packets that come more slowly tell nothing about the
/// link.
inline constexpr Duration kMaxTrainTime = Duration::seconds(1);
/// A train was sent in at most this share of the time in which it arrived. If the two times are
/// nearly the same, the sender set the pace.
inline constexpr std::int64_t kMaxSentPercent = 90;
/// The minimum delay within this time counts as that of an empty queue.
inline constexpr Duration kLeastDelayLifetime = Duration::seconds(1);
/// How far the clocks of two hosts drift apart in twice kLeastDelayLifetime, at 50 parts per
/// million.
inline constexpr Duration kClockSlack = Duration::us(100);
static_assert(kMaxTrainTime <= kLeastDelayLifetime,
              "a train is judged by a least delay of its own time");
/// No packet is overtaken by as much as this. An older sending time comes from a sender whose clock
/// was reset.
inline constexpr Duration kMaxOvertaken = Duration::seconds(1);

/// When a packet arrived, as far as the poll loop can tell: after `at` - `waited`, and not after
/// `at`.
struct Arrival {
  Instant at;            // time of the poll that took it
  Duration waited;       // time since the last poll that left the receive queue empty
  bool took_all = true;  // the poll left nothing in the receive queue
};

/// A packet from the sender, of any job and type.
struct Packet {
  std::uint32_t sent_us = 0;     // the sender's clock, as in the envelope
  std::uint32_t wire_bytes = 0;  // with all overhead on the link
};

/// Rates in bits per second that were measured on the link.
struct Measured {
  // From packets that had waited: the rate of the slowest link on the path; 0: none.
  std::uint64_t train = 0;
  std::uint64_t bound = 0;  // from any packets: a lower bound; 0: none
  bool is_short = false;    // the train has fewer packets than kTrainPackets
};

/// Measures the rate of the directed path from one sender by the dispersion of trains (Dovrolis,
/// Ramanathan, Moore: "What do packet dispersion techniques measure?", INFOCOM 2001): L bytes that
/// leave a link of rate C back to back take the time L / C, whatever their distance before the
/// link.
///
/// The poll loop sees packets in batches. At the end of a poll that emptied the receive queue, it
/// knows how many bytes have arrived, to within the packet that is arriving. So a measurement goes
/// from the end of one such poll to the end of another one: rate = (bytes at b - bytes at a) / (b -
/// a).
///
/// The clocks of sender and receiver have an unknown offset. It does not matter, because only
/// changes of the delay d = arrival - sending time are used, as in SLoPS (Jain, Dovrolis:
/// "End-to-end available bandwidth", SIGCOMM 2002). While d is above its recent minimum, packets
/// wait in a queue. A train is a run of packets that all waited, and that the sender sent in at
/// most kMaxSentPercent of the time in which they arrived. Every other run gives a lower bound:
/// (bytes - one packet) / max(time of arrival, time of sending). A train that ends before it is
/// long enough gives one, too.
class TrainMeter {
 public:
  /// Packets must be passed in the order of their polls. Whatever they say, the memory stays that
  /// of this object.
  Measured on_packet(const Packet& packet, const Arrival& arrival) {
    Measured measured;
    if (has_packets_ && arrival.at != poll_.at) measured = end_of_poll();
    poll_ = arrival;
    bytes_ += packet.wire_bytes;
    ++packets_;
    largest_ = std::max(largest_, packet.wire_bytes);
    if (static_cast<std::int32_t>(packet.sent_us - newest_us_) < 0 && has_packets_) {
      note_sent_before(packet.sent_us);
    } else {
      newest_us_ = packet.sent_us;
      has_newer_ = true;
    }
    has_packets_ = true;
    return measured;
  }
  /// Whether kSlowTrainPackets of the largest packets that came take kSlowTrainTime at this rate.
  bool is_slow(std::uint64_t bits_per_second) const {
    const double bits = 8.0 * kSlowTrainPackets * largest_;
    return static_cast<double>(bits_per_second) * kSlowTrainTime.to_seconds() <= bits;
  }

 private:
  /// What is known at the end of a poll that emptied the receive queue.
  struct Checkpoint {
    Instant at;
    std::uint64_t bytes = 0;
    std::uint64_t packets = 0;
    std::uint32_t sent_us = 0;  // of the newest packet
  };
  struct Span {
    std::uint64_t bytes = 0;
    std::uint64_t packets = 0;
    Duration came_in;
    Duration sent_in;
  };

  void note_sent_before(std::uint32_t sent_us);
  Measured end_of_poll();
  bool has_waited(const Checkpoint& here);
  Measured measure_train(const Checkpoint& here);
  std::uint64_t end_train();
  std::uint64_t measure_bound(const Checkpoint& here);
  std::uint64_t bound_of(const Span& span) const;
  static Span between(const Checkpoint& from, const Checkpoint& to);

  std::uint64_t bytes_ = 0;
  std::uint64_t packets_ = 0;
  std::uint32_t largest_ = 0;    // the largest wire bytes of a packet
  std::uint32_t newest_us_ = 0;  // the newest sending time of a packet
  bool has_packets_ = false;

  Arrival poll_;            // the current poll
  bool has_newer_ = false;  // the poll brought a packet that was sent after all before it

  std::optional<WindowedMin> least_delay_;  // minimum of the delay, relative to delay_base_us_
  std::uint32_t delay_base_us_ = 0;
  Instant least_delay_used_;

  std::optional<Checkpoint> train_from_;  // the queue has not been empty since
  std::optional<Checkpoint> train_to_;
  bool train_begins_ = false;  // no part of it has been measured
  std::optional<Checkpoint> bound_from_;
};

}  // namespace gradplane::awareness
