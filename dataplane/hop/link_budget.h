// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/time.h"
#include "dataplane/model/core_part.h"

namespace gradplane::hop {

/// Engines of a node at most.
inline constexpr std::size_t kMaxEngines = kMaxCores;
/// How often leases are given anew.
inline constexpr Duration kLeasePeriod = Duration::ms(5);
/// How long a lease holds. A period is not enough: the next lease would have to come in no time.
inline constexpr Duration kLeaseTime = kLeasePeriod * 2;
/// Of the link, this part is nobody's to lease: each engine always has its share of it, so that it
/// can say something even when the owner of the budget stands still.
inline constexpr std::uint64_t kFloorParts = 16;

/// What an engine may send, and when that ends. A plain value: it is handed from the owner of the
/// budget to the engine as a message.
struct LinkLease {
  std::uint64_t bits_per_second = 0;  // 0: the link is not paced
  Instant until = Instant::never();
};

/// An engine's end: the newest lease that it has been given.
class LinkShare {
 public:
  /// The whole link for ever: of the only engine of a node.
  static LinkShare whole(std::uint64_t link_bits_per_second) {
    return LinkShare({.bits_per_second = link_bits_per_second, .until = Instant::never()}, 0);
  }
  LinkShare(const LinkLease& lease, std::uint64_t floor_bits_per_second)
      : lease_(lease), floor_(floor_bits_per_second) {}

  void take(const LinkLease& lease) { lease_ = lease; }
  /// A lease that has ended leaves the floor.
  std::uint64_t bits_per_second(Instant now) const {
    return now < lease_.until ? lease_.bits_per_second : floor_;
  }

 private:
  LinkLease lease_;
  std::uint64_t floor_;
};

/// The rate of a node's link, and who may use how much of it. It leases shares to the engines by
/// what they want, and at no time do all leases that may be in use, with the floors of the others,
/// come to more than the link.
///
/// An engine may still use any lease that has not ended, because nobody waits until it has seen the
/// next one. So a rate that one engine loses is free for another only when its lease has ended:
/// within kLeaseTime. The only engine of a node has the whole link for ever.
///
/// One thread owns it. It shares nothing with the engines but values: what they want comes in, and
/// leases go out, by queues or by single atomic words.
class LinkBudget {
 public:
  /// `link_bits_per_second` 0: not known, and nobody is paced.
  LinkBudget(std::uint64_t link_bits_per_second, std::size_t engines);

  /// What an engine would send if it were alone on the link; 0 when it is idle. Until it has said
  /// so it wants nothing.
  void set_demand(std::size_t engine, std::uint64_t bits_per_second);
  /// Gives new leases when it is time; true when it did. Called about every kLeasePeriod: earlier
  /// has no effect, and later only lets leases end.
  bool renew(Instant now);
  /// When renew() will do something.
  Instant next_renewal() const { return next_renewal_; }

  const LinkLease& lease(std::size_t engine) const;
  /// What every engine has at any time.
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
