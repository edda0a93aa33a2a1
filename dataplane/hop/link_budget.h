// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/time.h"
#include "dataplane/model/core_part.h"

namespace gradplane::hop {

/// The most engines of a node.
inline constexpr std::size_t kMaxEngines = kMaxCores;
/// The interval at which leases are renewed.
inline constexpr Duration kLeasePeriod = Duration::ms(5);
/// How long a lease holds. One period would not be enough, because the next lease would have to
/// arrive in no time.
inline constexpr Duration kLeaseTime = kLeasePeriod * 2;
/// This fraction of the link is never leased. Each engine always has its share of it, so it can
/// send something even if the owner of the budget stands still.
inline constexpr std::uint64_t kFloorParts = 16;

/// The rate that an engine may use, and until when. It is a plain value, which the owner of the
/// budget sends to the engine as a message.
struct LinkLease {
  std::uint64_t bits_per_second = 0;  // 0: the link is not paced
  Instant until = Instant::never();
};

/// An engine's side: the newest lease that it has received.
class LinkShare {
 public:
  /// The whole link for ever, for the only engine of a node.
  static LinkShare whole(std::uint64_t link_bits_per_second) {
    return LinkShare({.bits_per_second = link_bits_per_second, .until = Instant::never()}, 0);
  }
  LinkShare(const LinkLease& lease, std::uint64_t floor_bits_per_second)
      : lease_(lease), floor_(floor_bits_per_second) {}

  void take(const LinkLease& lease) { lease_ = lease; }
  /// The rate at `now`: that of the lease, or the floor once the lease has ended.
  std::uint64_t bits_per_second(Instant now) const {
    return now < lease_.until ? lease_.bits_per_second : floor_;
  }

 private:
  LinkLease lease_;
  std::uint64_t floor_;
};

/// The rate of a node's link, and how much of it each engine may use. It leases shares to the
/// engines according to what they want. At no time do all leases that may be in use, plus the
/// floors of the other engines, exceed the link.
///
/// An engine may use any lease that has not ended, because the budget does not wait until the
/// engine has seen the next one. So rate that one engine loses is free for another only when the
/// lease has ended, which takes at most kLeaseTime. The only engine of a node has the whole link
/// for ever.
///
/// One thread owns it. It exchanges only values with the engines, through queues or single atomic
/// words: their demands come in, and leases go out.
class LinkBudget {
 public:
  /// `link_bits_per_second` 0: the rate is not known, and no engine is paced.
  LinkBudget(std::uint64_t link_bits_per_second, std::size_t engines);

  /// The rate that an engine would use if it were alone on the link; 0 if it is idle, and before
  /// the first call.
  void set_demand(std::size_t engine, std::uint64_t bits_per_second);
  /// Gives new leases if they are due; true if it did. Call it about every kLeasePeriod: an earlier
  /// call has no effect, and a late one only lets leases end.
  bool renew(Instant now);
  /// When renew() is due.
  Instant next_renewal() const { return next_renewal_; }

  const LinkLease& lease(std::size_t engine) const;
  /// The rate that every engine has at any time.
  std::uint64_t floor_bits_per_second() const { return floor_; }
  LinkShare share(std::size_t engine) const { return {lease(engine), floor_}; }

 private:
  using Rates = std::array<std::uint64_t, kMaxEngines>;
  Rates fair_shares() const;
  std::uint64_t held(std::size_t engine, Instant now) const;

  std::uint64_t link_;
  std::size_t engines_;
  std::uint64_t floor_ = 0;
  Rates demands_{};
  std::array<LinkLease, kMaxEngines> leases_{};
  Instant next_renewal_ = Instant::never();
};

}  // namespace gradplane::hop
