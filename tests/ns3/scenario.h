// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/time.h"

/// Many senders to one receiver in ns-3: ns-3's links, queues, IP and UDP under the production
/// engine, and ns-3's TCP for comparison. Time is virtual, and everything follows from the
/// scenario.
namespace gradplane::ns3_incast {

/// The transports. `gradplane-shares` and `gradplane-grants` know the rate of the links, and the
/// latter also the size of the queue. The other gradplane engines know neither, and have the
/// controller of that name. Those with `tcp-` are ns-3's own.
inline constexpr std::array<std::string_view, 12> kContestants = {
    "gradplane-shares", "gradplane-grants", "gradplane-delay", "gradplane-reno",
    "gradplane-cubic",  "gradplane-dctcp",  "gradplane-swift", "gradplane-bbr",
    "tcp-reno",         "tcp-cubic",        "tcp-bbr",         "tcp-dctcp"};

/// The most nodes of a cluster, without the receiver.
inline constexpr std::size_t kMaxSenders = 1023;
/// The limit of one sender's push, which is one round of gradplane.
inline constexpr std::size_t kMaxPushBytes = std::size_t{4} << 20;
inline constexpr std::uint32_t kMaxRounds = 1000;
/// The segment size of ns-3's TCP: with timestamps it fills an Ethernet MTU.
inline constexpr std::uint32_t kTcpSegmentBytes = 1448;

/// Every sender sends `push_bytes` to the receiver in each of `rounds` rounds, over established
/// connections. A round begins `pause` after the end of the one before.
struct Scenario {
  std::string contestant = "gradplane-grants";
  std::size_t senders = 8;  // 1 to kMaxSenders
  std::size_t push_bytes = 256 << 10;
  std::uint32_t rounds = 5;
  std::uint64_t link_bits_per_second = 1'000'000'000;
  Duration link_delay = Duration::us(50);  // of each of a path's two links
  std::size_t queue_bytes = 128 << 10;     // before the receiver's link
  std::size_t mark_bytes = 0;              // ECN marks when the queue is longer; 0: no marks
  Duration jitter = Duration::us(100);     // a sender begins its round late by up to this, uniform
  Duration pause = Duration::ms(10);
  Duration limit = Duration::seconds(600);
  std::uint64_t seed = 1;
};

struct Round {
  Duration push;                        // until the receiver has all pushes
  Duration all_reduce;                  // until every sender has the sum; 0: there are no sums
  std::vector<Duration> sender_pushes;  // until the receiver has this sender's push
  double spread() const;                // the last of sender_pushes over the first
};

struct Outcome {
  std::string failure;  // empty: every round ended, and every sum was right
  std::vector<Round> rounds;
  Duration bound;           // of `push`, with the packet sizes of this transport
  std::uint64_t drops = 0;  // by the queue before the receiver's link, as are the next two
  std::uint64_t marks = 0;
  std::size_t deepest_bytes = 0;
  std::uint64_t drops_elsewhere = 0;
  std::uint64_t marks_heard = 0;     // marks on pushes that acks have told gradplane's senders
  std::uint64_t needed_bytes = 0;    // of all pushes, without headers
  std::uint64_t repeated_bytes = 0;  // retransmitted bytes
};

/// Runs a scenario with one of kContestants. Throws std::invalid_argument if a value is beyond the
/// limits above.
Outcome run(const Scenario& scenario);

/// The earliest time at which the last byte of a push can arrive: the time of all wire bytes on the
/// receiver's link, of one packet on the sender's link, and the delays of both.
Duration bound(const Scenario& scenario);

}  // namespace gradplane::ns3_incast
