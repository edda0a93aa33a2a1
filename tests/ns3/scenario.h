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

/// Many senders to one receiver in ns-3: its links, queues, IP and UDP under the production engine,
/// and its TCP for comparison. Virtual time; everything follows from the scenario.
namespace gradplane::ns3_incast {

/// Who sends. `gradplane-shares` and `gradplane-grants` know the rate of the links, the latter the
/// queue too; the others of gradplane know neither, and have the controller of that name. `tcp-`:
/// ns-3's own.
inline constexpr std::array<std::string_view, 12> kContestants = {
    "gradplane-shares", "gradplane-grants", "gradplane-delay", "gradplane-reno",
    "gradplane-cubic",  "gradplane-dctcp",  "gradplane-swift", "gradplane-bbr",
    "tcp-reno",         "tcp-cubic",        "tcp-bbr",         "tcp-dctcp"};

/// Nodes of a cluster, without the receiver.
inline constexpr std::size_t kMaxSenders = 1023;
/// One sender's bytes of one push: a round of gradplane's.
inline constexpr std::size_t kMaxPushBytes = std::size_t{4} << 20;
inline constexpr std::uint32_t kMaxRounds = 1000;
/// Of ns-3's TCP: with timestamps it fills an Ethernet MTU.
inline constexpr std::uint32_t kTcpSegmentBytes = 1448;

/// Every sender brings `push_bytes` to the receiver, `rounds` times, over connections that are up.
/// A round begins `pause` after the end of the one before.
struct Scenario {
  std::string contestant = "gradplane-grants";
  std::size_t senders = 8;  // 1 to kMaxSenders
  std::size_t push_bytes = 256 << 10;
  std::uint32_t rounds = 5;
  std::uint64_t link_bits_per_second = 1'000'000'000;
  Duration link_delay = Duration::us(50);  // of each of the two links of a path
  std::size_t queue_bytes = 128 << 10;     // before the receiver's link
  std::size_t mark_bytes = 0;              // above, ECN marks; 0: none, the queue is drop-tail
  Duration jitter = Duration::us(100);     // a sender begins its round that much late, uniform
  Duration pause = Duration::ms(10);
  Duration limit = Duration::seconds(600);
  std::uint64_t seed = 1;
};

struct Round {
  Duration push;                        // until the receiver has everything of everyone
  Duration all_reduce;                  // until every sender has the sum; 0: nobody sums
  std::vector<Duration> sender_pushes;  // until the receiver has everything of this one
  double spread() const;                // last over first of sender_pushes
};

struct Outcome {
  std::string failure;  // empty: every round ended, and every sum was right
  std::vector<Round> rounds;
  Duration bound;           // of `push`, for the contestant's own packets
  std::uint64_t drops = 0;  // by the queue before the receiver's link, as all of these
  std::uint64_t marks = 0;
  std::size_t deepest_bytes = 0;
  std::uint64_t drops_elsewhere = 0;
  std::uint64_t marks_heard = 0;     // of these, on pushes, by gradplane's senders
  std::uint64_t needed_bytes = 0;    // of all pushes, without headers
  std::uint64_t repeated_bytes = 0;  // sent beyond that
};

/// Runs a scenario with one of kContestants. Throws std::invalid_argument for one that is out of
/// the bounds above.
Outcome run(const Scenario& scenario);

/// When the last byte of a push can be there at the earliest: all wire bytes over the receiver's
/// link, a packet over the sender's, and the delay of both.
Duration bound(const Scenario& scenario);

}  // namespace gradplane::ns3_incast
