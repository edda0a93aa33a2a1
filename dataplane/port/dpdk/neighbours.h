// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "dataplane/base/endpoint.h"
#include "dataplane/base/time.h"
#include "dataplane/model/limits.h"
#include "dataplane/port/dpdk/frame.h"

namespace gradplane::port {

/// The neighbour table is a set-associative cache: an address can be in kNeighbourWays places. So
/// no sender of ARP packets can make searches long or the table large.
inline constexpr std::size_t kNeighbourSets = 256;
inline constexpr std::size_t kNeighbourWays = 16;
static_assert(kNeighbourSets * kNeighbourWays >= 4 * kMaxNodes,
              "a full cluster leaves every set room to spare");

/// The number of requests for an unknown neighbour, and the pause after the first one; it doubles
/// each time.
inline constexpr std::size_t kMaxResolveAttempts = 6;
inline constexpr Duration kFirstResolvePause = Duration::ms(25);
/// How long a sign of life keeps a neighbour fresh, and how often a silent neighbour in use is
/// probed before it is forgotten.
inline constexpr Duration kNeighbourFresh = Duration::seconds(30);
inline constexpr std::size_t kMaxNeighbourProbes = 3;
inline constexpr Duration kProbePause = Duration::seconds(1);
/// A neighbour to which nothing is sent is kept this long after its last sign of life.
inline constexpr Duration kNeighbourForgotten = Duration::seconds(600);

struct SubnetOptions {
  Ipv4 address;
  std::uint8_t prefix_length = 24;
  Ipv4 gateway;                 // zero: none
  std::uint64_t hash_seed = 0;  // the place of an address must not be guessable
};

/// The Ethernet addresses of neighbours, as a state machine: time and ARP packets come in, and ARP
/// requests to be sent come out. One thread; no allocation after construction.
class Neighbours {
 public:
  explicit Neighbours(const SubnetOptions& options);

  /// The next hop of a datagram: its destination if that is on the subnet, otherwise the gateway.
  /// None if there is no route.
  std::optional<Ipv4> next_hop(Ipv4 destination) const noexcept;

  /// The Ethernet address of a next hop. Null while it is unknown; then due() requests it.
  const MacAddress* resolve(Ipv4 next_hop, Instant now) noexcept;

  /// Learns an address from an ARP packet. A packet that was not for us changes known entries but
  /// adds none.
  enum class Trust : std::uint8_t { kKnownOnly, kForUs };
  void learn(Ipv4 address, const MacAddress& mac, Trust trust, Instant now) noexcept;

  /// A datagram came from this source. It keeps an entry with the same address fresh, but never
  /// changes one.
  void confirm(Ipv4 source, const MacAddress& mac, Instant now) noexcept;

  struct Question {
    Ipv4 target;
    std::optional<MacAddress> ask_only;  // none: broadcast
  };
  /// Writes the requests that are due; call it again as long as it fills `out`.
  std::size_t due(Instant now, std::span<Question> out) noexcept;
  /// due() has no request before this time.
  Instant next_deadline() const noexcept { return next_deadline_; }

  /// For tests.
  std::size_t known_count() const noexcept;

 private:
  enum class State : std::uint8_t { kFree, kResolving, kKnown, kProbing };
  struct Entry {
    Ipv4 address;
    MacAddress mac;
    State state = State::kFree;
    std::uint8_t attempts = 0;
    Instant confirmed_at;
    Instant used_at;
    Instant deadline;
  };

  bool on_subnet(Ipv4 address) const noexcept;
  std::span<Entry> set_of(Ipv4 address) noexcept;
  Entry* find(Ipv4 address) noexcept;
  Entry* claim(Ipv4 address, bool wanted, Instant now) noexcept;
  void set_deadline(Entry& entry, Instant deadline) noexcept;
  void set_known(Entry& entry, const MacAddress& mac, Instant now) noexcept;
  bool expire(Entry& entry, Instant now, Question& question) noexcept;

  SubnetOptions options_;
  std::uint32_t mask_;
  std::unique_ptr<Entry[]> entries_;
  Instant next_deadline_ = Instant::never();
};

}  // namespace gradplane::port
