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

/// Of each such time, the best rate is a sample, so that a few samples cover seconds of traffic.
inline constexpr Duration kSamplePeriod = Duration::ms(100);
inline constexpr std::size_t kRateSamples = 8;
/// The estimate is the sample that this share of the samples does not exceed: other traffic makes a
/// train slower, and next to nothing makes it faster.
inline constexpr std::size_t kRatePercentile = 80;
/// After this time a sample counts half.
inline constexpr Duration kSampleHalfLife = Duration::seconds(15);
/// After this time a sample is forgotten.
inline constexpr Duration kSampleLifetime = Duration::seconds(60);
/// So many fresh samples that agree, to kAgreePercent, are worth full confidence.
inline constexpr double kEnoughSamples = 3;
inline constexpr std::uint64_t kAgreePercent = 10;
/// So many packets are worth full confidence in a loss: 1 % of them is known to a sixth.
inline constexpr double kEnoughPackets = 4096;
static_assert(kEnoughSamples < kRateSamples);
/// So many samples in a row that agree, over at least this time, show that a link has become
/// slower: faster ones from before them are forgotten. Other traffic does not slow trains down
/// evenly for so long.
inline constexpr std::size_t kSlowerSamples = 3;
inline constexpr Duration kSlowerTime = Duration::seconds(1);
static_assert(kSlowerSamples < kRateSamples);
/// A receiver that has measured no train of a sender for this time asks it for one. In calm times
/// the budget of soundings is saved for others.
inline constexpr Duration kTrainPatience = Duration::seconds(4);
/// A link is slow for so long after the train that has shown it.
inline constexpr Duration kSlowLifetime = kSampleHalfLife;
static_assert(kSlowLifetime > kTrainPatience, "a link that is asked for trains stays slow");
/// The same while the newest train is odd, which means that it differs from the estimate by more
/// than kOddPercent, and on all links to a node for kAlarm after one of them has changed: links
/// that share something change together.
inline constexpr std::uint64_t kOddPercent = 25;
static_assert(kOddPercent > kAgreePercent);
inline constexpr Duration kUnsettledPatience = Duration::ms(500);
inline constexpr Duration kAlarm = Duration::seconds(3);
static_assert(kUnsettledPatience > kSamplePeriod, "another train is another sample");
static_assert(kAlarm > kUnsettledPatience * kSlowerSamples, "a link that is slower is found so");
/// Trains that are odd for so long are no accident.
inline constexpr Duration kChangedTime = Duration::ms(200);
static_assert(kChangedTime > kSamplePeriod);

/// How much a sample of this age counts: 1 when it is new, 0 after kSampleLifetime.
double freshness(Duration age);

/// A value, how long ago it was last measured, and how sure it is: from 0, which means that nothing
/// is known, to 1.
struct RateEstimate {
  std::uint64_t bits_per_second = 0;
  bool is_lower_bound = false;  // the link has not been filled, and may be faster
  double confidence = 0;
  Duration age = Duration::max();
};
struct RttEstimate {
  Duration rtt;  // the least of the last kSampleLifetime or less
  double confidence = 0;
  Duration age = Duration::max();
};
struct LossEstimate {
  double share = 0;
  double confidence = 0;
  Duration age = Duration::max();
};

/// The best rate of each of the last kRateSamples periods in which there was one.
class RateSamples {
 public:
  /// A rate that is not `sure` counts only in a period that has no other.
  void add(Instant now, std::uint64_t bits_per_second, bool sure = true);
  void clear() { count_ = 0; }
  RateEstimate estimate(Instant now) const;

 private:
  struct Sample {
    Instant begin;  // of its period
    Instant newest;
    std::uint64_t rate = 0;
    bool sure = true;
  };
  const Sample& newest(std::size_t index) const {  // 0: the newest of all
    return samples_[(count_ - 1 - index) % kRateSamples];
  }
  bool has_become_slower() const;
  void keep_newest(std::size_t count);

  std::array<Sample, kRateSamples> samples_{};  // a ring
  std::size_t count_ = 0;                       // all that were ever begun since clear()
};

/// What is lost of the packets of all streams of one sender. Old ones count less.
class LossSamples {
 public:
  void add(Instant now, const LossCount& count);
  LossEstimate estimate(Instant now) const;

 private:
  void age_until(Instant now);

  double sent_ = 0;  // as they counted at aged_at_
  double lost_ = 0;
  Instant aged_at_;
  Instant newest_;
  bool known_ = false;
};

/// What a packet tells of the link, besides when it was sent and when it came.
struct Told {
  LossCount loss;       // that it has settled in its stream
  Duration round_trip;  // that its sender has measured; 0: it says none
};

/// What the receiver knows of the directed link from one sender, for all jobs: rate, round trip and
/// loss. Time and packets are arguments; the state is this object and nothing else.
class LinkEstimate {
 public:
  /// Whether it was the last one of a train.
  bool on_packet(const Packet& packet, const Arrival& arrival) {
    const Measured measured = meter_.on_packet(packet, arrival);
    if (measured.train > 0 || measured.bound > 0) on_measured(arrival.at, measured);
    return measured.train > 0;
  }
  /// A LossMeter of one of the sender's streams has counted a stretch. Nothing happens if it has
  /// not.
  void on_loss(Instant now, const LossCount& count) {
    if (count.sent > 0) loss_.add(now, count);
  }
  /// The sender has told a round trip that it measured.
  void on_round_trip(Instant now, Duration rtt);

  RateEstimate rate(Instant now) const;
  /// Whether no train of the sender has come for kTrainPatience: nobody fills the link, so its
  /// present rate may be another one than that of the last train. Sooner while they are odd, or
  /// in an `alarm`.
  bool wants_train(Instant now, bool alarm = false) const {
    const bool is_calm = !odd_since_ && !alarm;
    return now - newest_train_ > (is_calm ? kTrainPatience : kUnsettledPatience);
  }
  /// Whether its trains have been others than before for kChangedTime.
  bool is_changing() const { return odd_since_ && newest_train_ - *odd_since_ >= kChangedTime; }
  /// Whether a train of kSlowTrainPackets is enough to measure the link, by its newest train of the
  /// last kSlowLifetime. Packets of a link that has become faster come faster, even if they are too
  /// few for a train. Where they show nothing, the train becomes too old.
  bool is_slow(Instant now) const { return is_slow_ && now - newest_train_ <= kSlowLifetime; }
  RttEstimate round_trip(Instant now) const;
  LossEstimate loss(Instant now) const { return loss_.estimate(now); }

 private:
  void on_measured(Instant now, const Measured& measured);

  TrainMeter meter_;
  RateSamples trains_;
  RateSamples bounds_;  // since the last train
  Instant newest_train_ = Instant::from_ns(INT64_MIN / 4);
  std::optional<Instant> odd_since_;  // all trains were odd
  bool is_slow_ = false;
  LossSamples loss_;
  WindowedMin rtt_{kSampleLifetime / 2};
  Instant rtt_newest_;
  bool has_rtt_ = false;
};

}  // namespace gradplane::awareness
