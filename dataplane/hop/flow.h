// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "dataplane/awareness/sounding_policy.h"
#include "dataplane/base/time.h"
#include "dataplane/base/windowed_min.h"
#include "dataplane/congestion/controller.h"
#include "dataplane/hop/pacer.h"
#include "dataplane/model/congestion_settings.h"

namespace gradplane::hop {

/// The lifetime of the minimum round trip. A flow learns after one to two lifetimes that its path
/// has become longer.
inline constexpr Duration kMinRttLifetime = Duration::seconds(10);

/// From this round trip on, a second copy costs less than the time that it may save.
inline constexpr Duration kLongPath = Duration::ms(10);

/// A longer sample comes from a process that stood still, or from a false ack, so it must not set
/// the pace.
inline constexpr Duration kMaxRtt = Duration::seconds(1);

/// Measures the rate of the last second. It counts all bytes of the current second. From the second
/// before, it counts the part that is less than a second old, as if the bytes of that second had
/// been sent evenly.
class RateMeter {
 public:
  void on_sent(Instant now, std::size_t bytes);
  std::uint64_t bits_per_second(Instant now) const;

 private:
  Instant begin_ = Instant::from_ns(INT64_MIN / 4);  // begin of the current second
  std::uint64_t bytes_ = 0;                          // bytes since begin_
  std::uint64_t bytes_before_ = 0;                   // bytes in the second before
};

/// The state of the path to one peer, for all rounds of a job: timing, losses and blocks in flight.
/// A congestion controller decides how many blocks may be in flight and how fast they may go. The
/// rate of the peer's link bounds both.
class Flow {
 public:
  struct Limits {
    std::uint64_t rate_bits_per_second = 0;  // 0: not paced
    std::size_t block_wire_bytes = 1500;
    CongestionSettings congestion = {};
  };
  explicit Flow(Limits limits);

  bool may_send(Instant now) const {
    return has_room() && link_.may_send(now) && (probe_due_ || pacer_.may_send(now));
  }
  /// Changes this sender's share of the peer's link. What the flow has learned of the path stays.
  void set_link_rate(Instant now, std::uint64_t rate_bits_per_second);
  bool knows_link_rate() const { return link_.is_paced(); }
  /// When pacing lets the next block go; Instant::never() while the window is full.
  Instant next_send() const;

  void on_sent(Instant now, std::size_t wire_bytes, bool retransmission);
  /// Counts a packet that puts no block in flight: a copy, a question or a row of parity.
  void on_copy_sent(Instant now, std::size_t wire_bytes);
  /// The peer has acknowledged `blocks` blocks. It also reports `marked` further blocks whose
  /// packets the network marked; if there are any, `blocks` may be 0.
  void on_acked(Instant now, std::uint32_t blocks, std::uint32_t marked = 0);
  /// A packet of a sounding is being sent; on_sent() follows if it is a block. The queue that a
  /// sounding causes is no reason to send less. So the controller learns neither round trips nor
  /// losses of packets sent from the sounding's begin until a packet that was sent after it has
  /// been answered.
  void note_sounding(Instant now);
  /// A packet of padding is being sent.
  void on_padding_sent(Instant now, std::size_t wire_bytes) {
    link_.on_sent(now, wire_bytes);
    meter_.on_sent(now, wire_bytes);
  }
  static constexpr Duration kClockStep = Duration::us(1);  // resolution of the times in packets
  /// Whether a packet sent at `sent` was part of the last sounding, or waited in its queue.
  bool is_of_sounding(Instant sent) const {
    if (sent < sounding_from_ - kClockStep) return false;
    return sounding_is_open_ || sent <= sounding_to_ + kClockStep;
  }
  awareness::Sounding& sounding() { return sounding_; }
  const awareness::Sounding& sounding() const { return sounding_; }
  /// An ack has answered a packet that was sent at `sent`.
  void note_answered(Instant now, Instant sent);
  /// Whether a sounding could show anything. The peer must have answered a packet sent after the
  /// last sounding, and the flow must be so slow that a sounding takes as long as a measurement
  /// needs.
  bool is_worth_sounding(Instant now) const;
  void on_rtt(Instant now, Duration rtt);
  /// The one-way delay of a packet to the peer, by the clocks of both ends. The clocks may differ
  /// by any amount, because only changes count. Call it before the on_rtt() of the same packet.
  void on_forward_delay(Instant now, std::uint32_t delay_us);
  /// Packets take another path from now on. Its round trips and its delay are not known, and a
  /// longer path would look like a queue on the old one.
  void forget_way();
  /// `newest_sent` is the time at which the last of the lost blocks was sent.
  void on_lost(Instant now, std::uint32_t blocks, Instant newest_sent);
  /// Whether an echo is later than all earlier ones. Then it measures a round trip, whatever the
  /// ack acknowledges.
  bool is_newer_echo(std::uint32_t echo_us) const {
    return static_cast<std::int32_t>(echo_us - newest_echo_us_) > 0;
  }
  void note_echo(Instant now, std::uint32_t echo_us) {
    newest_echo_us_ = echo_us;
    echo_at_ = now;
  }
  /// The sending time of the newest packet that the peer has answered.
  std::uint32_t newest_echo_us() const { return newest_echo_us_; }
  /// Whether the answer to a packet sent at `sent_us` is overdue, because the peer has answered a
  /// packet that was sent later by more than overtaking_time().
  bool is_overtaken(Instant now, std::uint32_t sent_us) const;
  /// The flow no longer waits for these blocks, and it learns nothing about the network from them.
  void on_forgotten(std::uint32_t blocks);

  /// Makes the next block a probe, which ignores the controller. Otherwise a window full of blocks
  /// that were lost on a dead link would keep the flow from finding out that the link works again.
  void on_probe() { probe_due_ = true; }
  bool has_probe_due() const { return probe_due_; }

  /// A peer has not answered several probes in a row.
  void on_silence(Instant now);

  /// Nothing waits to be sent although there is room.
  void note_app_limited() {
    app_limited_until_ = delivered_ + in_flight_;
    has_rested_ = true;
  }
  /// Whether the flow knows that it has nothing to send.
  bool is_noted_as_app_limited() const {
    return has_rested_ && app_limited_until_ == delivered_ + in_flight_;
  }
  /// The share of the job's iteration that this peer has, from 0 to 1.
  void on_phase(double ratio) { controller_->on_phase({.ratio = ratio}); }
  /// Runs the controller's timers; call it now and then while blocks are in flight.
  void on_tick(Instant now);

  /// The time to wait for an ack before a probe (RFC 6298, with a minimum that covers held-back
  /// acks and scheduling).
  Duration probe_timeout() const;
  /// An earlier packet counts as lost only when a packet that was sent this much later has arrived.
  Duration reorder_window() const;
  /// The same for packets of different rounds, whose acks a receiver delays independently.
  Duration overtaking_time() const;

  struct Counts {
    std::uint64_t sent = 0;  // blocks, with retransmissions
    std::uint64_t retransmitted = 0;
    std::uint64_t suspected_lost = 0;
  };
  const Counts& counts() const { return counts_; }
  /// Whether more than a thousandth of all blocks were lost so far.
  bool is_lossy() const { return counts_.suspected_lost * 1000 > counts_.sent; }
  /// The window in blocks, at least 1. The controller expresses a window below one block by its
  /// pacing rate.
  std::uint32_t window() const { return window_; }
  /// The rate that the flow allows, as far as is known: a window per round trip, at most the
  /// controller's pacing and the share of the peer's link. 0: nothing is known.
  std::uint64_t allowed_bits_per_second() const;
  bool window_is_full() const { return !has_room(); }
  /// A block that went to the peer on another path also uses the peer's link.
  void charge_link(Instant now, std::size_t wire_bytes) { link_.on_sent(now, wire_bytes); }
  /// When the share of the peer's link lets the next block go, on whatever path.
  Instant link_free_at() const { return link_.next_send(); }
  /// Whether the share of the peer's link is used up for now.
  bool link_is_busy(Instant now) const { return !link_.may_send(now); }
  /// The measured sending rate, with all overhead on the link.
  std::uint64_t rate_bits_per_second(Instant now) const { return meter_.bits_per_second(now); }
  const congestion::Controller& controller() const { return *controller_; }
  std::uint32_t in_flight() const { return in_flight_; }
  Duration latest_rtt() const { return latest_; }
  Duration smoothed_rtt() const { return smoothed_; }
  Duration min_rtt() const { return min_rtt_.value(); }

 private:
  void follow_controller(Instant now);
  bool has_nearly_stopped() const;
  void forget_shortest();
  std::optional<Duration> queueing() const;
  bool has_room() const { return probe_due_ || in_flight_ < window_; }

  // The peer's link, or this sender's share of it; 0: not known.
  std::uint64_t link_bits_per_second_;
  Pacer link_;   // paces to the share of the peer's link
  Pacer pacer_;  // paces to the controller's rate
  RateMeter meter_;
  std::size_t block_wire_bytes_;
  std::unique_ptr<congestion::Controller> controller_;
  std::uint32_t window_ = 1;           // blocks
  std::uint64_t controller_pace_ = 0;  // bits per second
  std::uint32_t in_flight_ = 0;
  std::uint64_t delivered_ = 0;          // blocks
  std::uint64_t app_limited_until_ = 0;  // a value of delivered_
  bool probe_due_ = false;
  bool has_rested_ = true;  // when the flow could last send, nothing waited
  std::uint32_t newest_echo_us_ = 0;
  Instant echo_at_ = Instant::from_ns(INT64_MIN / 4);  // when it came
  bool has_rtt_ = false;
  Duration latest_;
  Duration smoothed_;
  Duration variance_;
  WindowedMin min_rtt_{kMinRttLifetime};
  Instant forgot_at_ =
      Instant::from_ns(INT64_MIN / 4);   // when it last forgot a minimum for being slow
  std::uint32_t forward_origin_us_ = 0;  // the first forward delay; later ones count from it
  std::optional<Duration> queueing_;     // queueing delay towards the peer, smoothed
  WindowedMin min_forward_{kMinRttLifetime};
  Counts counts_;
  awareness::Sounding sounding_;
  Instant sounding_from_ = Instant::never();  // when the last sounding's first packet was sent
  // When its last packet so far was sent, or the last packet that waited in its queue.
  Instant sounding_to_;
  bool sounding_is_open_ = false;  // no packet that was sent after it has been answered
};

}  // namespace gradplane::hop
