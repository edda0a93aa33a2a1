// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/awareness/loss_meter.h"
#include "dataplane/awareness/train_meter.h"
#include "dataplane/base/time.h"
#include "dataplane/base/windowed_min.h"

namespace gradplane::awareness {

/// The best rate of each such period is one sample, so that a few samples cover seconds of traffic.
inline constexpr Duration kSamplePeriod = Duration::ms(100);
inline constexpr std::size_t kRateSamples = 8;
/// The estimate is the sample that this share of the samples does not exceed: other traffic makes a
/// train slower, and almost nothing makes it faster.
inline constexpr std::size_t kRatePercentile = 80;
/// After this time a sample counts half.
inline constexpr Duration kSampleHalfLife = Duration::seconds(15);
/// After this time a sample is forgotten.
inline constexpr Duration kSampleLifetime = Duration::seconds(60);
/// This many fresh samples that agree, to within kAgreePercent, give full confidence.
inline constexpr double kEnoughSamples = 3;
inline constexpr std::uint64_t kAgreePercent = 10;
/// This many packets give full confidence in a loss: a loss of 1 % is then known to within a sixth.
inline constexpr double kEnoughPackets = 4096;
static_assert(kEnoughSamples < kRateSamples);
/// This many consecutive samples that agree, over at least this time, show that a link has become
/// slower. Faster samples from before are then forgotten. Other traffic does not slow trains down
/// evenly for so long.
inline constexpr std::size_t kSlowerSamples = 3;
inline constexpr Duration kSlowerTime = Duration::seconds(1);
static_assert(kSlowerSamples < kRateSamples);
/// A receiver that has measured no train of a sender for this time asks it for one. The time is
/// long, so that in calm times the budget of soundings is saved for other links.
inline constexpr Duration kTrainPatience = Duration::seconds(4);
/// A link counts as slow for this time after the train that has shown it.
inline constexpr Duration kSlowLifetime = kSampleHalfLife;
static_assert(kSlowLifetime > kTrainPatience, "a link that is asked for trains stays slow");
/// kTrainPatience is replaced by kUnsettledPatience while the newest train is odd, which means that
/// it differs from the estimate by more than kOddPercent, and on all links to a node for kAlarm
/// after one of them has changed: links that share something change together.
inline constexpr std::uint64_t kOddPercent = 25;
static_assert(kOddPercent > kAgreePercent);
inline constexpr Duration kUnsettledPatience = Duration::ms(500);
inline constexpr Duration kAlarm = Duration::seconds(3);
static_assert(kUnsettledPatience > kSamplePeriod, "another train is another sample");
static_assert(kAlarm > kUnsettledPatience * kSlowerSamples, "a link that is slower is found so");
/// Trains that are odd for this time are no accident.
inline constexpr Duration kChangedTime = Duration::ms(200);
static_assert(kChangedTime > kSamplePeriod);

/// The weight of a sample of this age: 1 when it is new, 0 after kSampleLifetime.
double freshness(Duration age);

/// An estimate is a value, the time since it was last measured, and a confidence from 0, which
/// means that nothing is known, to 1.
struct RateEstimate {
  std::uint64_t bits_per_second = 0;
  bool is_lower_bound = false;  // the link has not been filled and may be faster
  double confidence = 0;
  Duration age = Duration::max();
};
struct RttEstimate {
  Duration rtt;  // the minimum of the last kSampleLifetime, or of less
  double confidence = 0;
  Duration age = Duration::max();
};
struct LossEstimate {
  double share = 0;
  double confidence = 0;
  Duration age = Duration::max();
};

/// The best rates of the last kRateSamples periods that had a rate.
class RateSamples {
 public:
  /// A rate that is not `sure` counts only in a period without a sure one.
  void add(Instant now, std::uint64_t bits_per_second, bool sure = true);
  void clear() { count_ = 0; }
  RateEstimate estimate(Instant now) const;

 private:
  struct Sample {
    Instant begin;  // begin of its period
    Instant newest;
    std::uint64_t rate = 0;
    bool sure = true;
  };
  const Sample& newest(std::size_t index) const {  // 0: the newest
    return samples_[(count_ - 1 - index) % kRateSamples];
  }
  bool has_become_slower() const;
  void keep_newest(std::size_t count);

  std::array<Sample, kRateSamples> samples_{};  // a ring
  std::size_t count_ = 0;                       // samples that were ever begun since clear()
};

/// The loss among the packets of all streams of one sender. Old packets count less.
class LossSamples {
 public:
  void add(Instant now, const LossCount& count);
  LossEstimate estimate(Instant now) const;

 private:
  void age_until(Instant now);

  double sent_ = 0;  // with their weights at aged_at_
  double lost_ = 0;
  Instant aged_at_;
  Instant newest_;
  bool known_ = false;
};

/// What a packet tells about the link, besides its sending time and its arrival.
struct Told {
  LossCount loss;       // the counts of a stretch that the packet has ended
  Duration round_trip;  // the round trip that its sender has measured; 0: none
};

/// What the receiver knows of the directed link from one sender, for all jobs: rate, round trip and
/// loss. Time and packets are arguments, and all state is in this object.
class LinkEstimate {
 public:
  /// Takes a packet. True if it completed a train.
  bool on_packet(const Packet& packet, const Arrival& arrival) {
    const Measured measured = meter_.on_packet(packet, arrival);
    if (measured.train > 0 || measured.bound > 0) on_measured(arrival.at, measured);
    return measured.train > 0;
  }
  /// Adds a stretch that the LossMeter of one of the sender's streams has counted. Does nothing if
  /// `count` is empty.
  void on_loss(Instant now, const LossCount& count) {
    if (count.sent > 0) loss_.add(now, count);
  }
  /// The sender has reported a round trip that it measured.
  void on_round_trip(Instant now, Duration rtt);

  RateEstimate rate(Instant now) const;
  /// Whether no train of the sender has come for kTrainPatience. Then nobody fills the link, and
  /// its present rate may differ from that of the last train. The time is kUnsettledPatience while
  /// trains are odd, or during an `alarm`.
  bool wants_train(Instant now, bool alarm = false) const {
    const bool is_calm = !odd_since_ && !alarm;
    return now - newest_train_ > (is_calm ? kTrainPatience : kUnsettledPatience);
  }
  /// Whether its trains have been odd for kChangedTime.
  bool is_changing() const { return odd_since_ && newest_train_ - *odd_since_ >= kChangedTime; }
  /// Whether a train of kSlowTrainPackets is enough to measure the link, by its newest train of the
  /// last kSlowLifetime. If the link becomes faster, the spacing of its packets shows it, even
  /// without a full train. If they show nothing, the train becomes too old.
  bool is_slow(Instant now) const { return is_slow_ && now - newest_train_ <= kSlowLifetime; }
  RttEstimate round_trip(Instant now) const;
  LossEstimate loss(Instant now) const { return loss_.estimate(now); }

 private:
  void on_measured(Instant now, const Measured& measured);

  TrainMeter meter_;
  RateSamples trains_;
  RateSamples bounds_;  // since the last train
  Instant newest_train_ = Instant::from_ns(INT64_MIN / 4);
  std::optional<Instant> odd_since_;  // since then all trains were odd
  bool is_slow_ = false;
  LossSamples loss_;
  WindowedMin rtt_{kSampleLifetime / 2};
  Instant rtt_newest_;
  bool has_rtt_ = false;
};

}  // namespace gradplane::awareness
