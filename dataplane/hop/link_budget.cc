// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/link_budget.h"

#include <algorithm>
#include <numeric>

#include "dataplane/base/assert.h"

namespace gradplane::hop {
namespace {

using Rates = std::array<std::uint64_t, kMaxEngines>;

/// Divides `amount` among the first `count` engines. The smallest demands are met first; an engine
/// that wants more than an equal part of the rest gets that part.
Rates divide(std::uint64_t amount, const Rates& wants, std::size_t count) {
  std::array<std::size_t, kMaxEngines> order{};
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::iota(order.begin(), end, 0U);
  std::sort(order.begin(), end, [&](std::size_t a, std::size_t b) { return wants[a] < wants[b]; });
  Rates given{};
  for (std::size_t i = 0; i < count; ++i) {
    given[order[i]] = std::min(wants[order[i]], amount / (count - i));
    amount -= given[order[i]];
  }
  return given;
}

std::uint64_t excess(std::uint64_t of, std::uint64_t over) {
  return of > over ? of - over : 0;
}

}  // namespace

LinkBudget::LinkBudget(std::uint64_t link_bits_per_second, std::size_t engines)
    : link_(link_bits_per_second), engines_(engines) {
  GP_ASSERT(engines >= 1 && engines <= kMaxEngines);
  if (engines == 1 || link_ == 0) {
    leases_.fill({.bits_per_second = link_, .until = Instant::never()});
    return;
  }
  floor_ = link_ / kFloorParts / engines;
  GP_ASSERT(floor_ > 0);  // a rate of 0 would be no limit
  // No engine has a lease yet, so each has the floor.
  leases_.fill({.bits_per_second = floor_, .until = Instant()});
  next_renewal_ = Instant();
}

void LinkBudget::set_demand(std::size_t engine, std::uint64_t bits_per_second) {
  GP_ASSERT(engine < engines_);
  demands_[engine] = bits_per_second;
}

const LinkLease& LinkBudget::lease(std::size_t engine) const {
  GP_ASSERT(engine < engines_);
  return leases_[engine];
}

/// The rate that the engine may be using, whichever of its leases it has seen. Only the last lease
/// counts: a lease lasts two periods, so the one before the last has ended when a new one is given.
std::uint64_t LinkBudget::held(std::size_t engine, Instant now) const {
  static_assert(kLeaseTime <= kLeasePeriod * 2);
  return now < leases_[engine].until ? leases_[engine].bits_per_second : floor_;
}

/// Each engine's fair share: its floor, its demand beyond the floor, and an equal part of the rest,
/// so that an engine that begins to send has something at once.
LinkBudget::Rates LinkBudget::fair_shares() const {
  std::uint64_t rest = link_ - floor_ * engines_;
  Rates wants{};
  for (std::size_t e = 0; e < engines_; ++e) wants[e] = excess(demands_[e], floor_);
  Rates shares = divide(rest, wants, engines_);
  for (std::size_t e = 0; e < engines_; ++e) rest -= shares[e];
  for (std::size_t e = 0; e < engines_; ++e) shares[e] += floor_ + rest / engines_;
  return shares;
}

/// An engine whose share shrinks gets the smaller lease at once. The others get more only as far as
/// rate is free.
bool LinkBudget::renew(Instant now) {
  if (now < next_renewal_) return false;
  next_renewal_ = now + kLeasePeriod;
  const Rates shares = fair_shares();
  std::uint64_t free = link_;
  Rates wants{};
  for (std::size_t e = 0; e < engines_; ++e) {
    free -= held(e, now);
    wants[e] = excess(shares[e], held(e, now));
  }
  const Rates more = divide(free, wants, engines_);
  for (std::size_t e = 0; e < engines_; ++e) {
    leases_[e] = {.bits_per_second = std::min(shares[e], held(e, now)) + more[e],
                  .until = now + kLeaseTime};
  }
  return true;
}

}  // namespace gradplane::hop
