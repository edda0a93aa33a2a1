// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/engine/shared_link.h"

#include <algorithm>

namespace gradplane::engine {
namespace {

/// A lease exceeds the recent rate by this factor, so that an engine can begin to send more.
constexpr std::uint64_t kHeadroom = 2;

}  // namespace

SharedLink::SharedLink(std::uint64_t bits_per_second, std::size_t engines)
    : budget_(bits_per_second, engines) {
  for (std::size_t e = 0; e < engines; ++e) lines_.push_back(std::make_unique<Line>());
}

void SharedLink::renew(Instant now) {
  if (now < budget_.next_renewal()) return;
  for (std::size_t e = 0; e < lines_.size(); ++e) {
    budget_.set_demand(e, lines_[e]->wanted.load(std::memory_order_relaxed));
  }
  if (!budget_.renew(now)) return;
  for (std::size_t e = 0; e < lines_.size(); ++e) (void)lines_[e]->leases.push(budget_.lease(e));
}

bool SharedLink::take(std::size_t engine, hop::LinkLease& lease) {
  SpscQueue<hop::LinkLease>& leases = lines_[engine]->leases;
  bool any = false;
  for (; const hop::LinkLease* next = leases.front(); leases.pop()) {
    lease = *next;
    any = true;
  }
  return any;
}

bool LinkDemand::look(Instant now, std::uint64_t sent_bytes, bool is_held_back) {
  was_held_back_ |= is_held_back;
  const Duration period = now - begin_;
  if (period < hop::kLeasePeriod) return false;
  const double bits = static_cast<double>(sent_bytes - sent_bytes_) * 8;
  const auto rate = static_cast<std::uint64_t>(bits / period.to_seconds());
  wanted_ = was_held_back_ ? link_ : std::min(link_, rate * kHeadroom);
  begin_ = now;
  sent_bytes_ = sent_bytes;
  was_held_back_ = false;
  return true;
}

}  // namespace gradplane::engine
