// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/job.h"

#include <algorithm>

#include "dataplane/base/assert.h"

namespace gradplane::job {
namespace {

/// How often the edges are scanned for silent peers.
constexpr Duration kScanInterval = Duration::us(500);

}  // namespace

Job::Job(JobConfig config) : state_(std::move(config)) {}

bool Job::join(grants::GrantScheduler& grants, grants::JobIndex index) {
  GP_ASSERT(state_.config.grants);
  return state_.incoming.join(grants, index, state_.peers);
}

void Job::tick(Instant now) {
  if (now < next_scan_) return;
  next_scan_ = now + kScanInterval;
  transmitter_.probe(now);
  rounds_.close_due(now);
  streams_.close_due(now);
  plan_switch_.tick(now);
  watchdog_.look(now);
  receiver_.update_ack_interval();
}

Instant Job::next_timer() const {
  if (rounds_.has_local_work() || !state_.events.empty() || plan_switch_.has_ended()) {
    return Instant();
  }
  const bool scans =
      rounds_.any_gathering() || streams_.any_gathering() || transmitter_.any_in_flight();
  const Instant scan = scans ? next_scan_ : Instant::never();
  const Instant look = std::max(watchdog_.next_look(), next_scan_);
  return std::min({transmitter_.next_ack(), scan, look});
}

bool Job::poll_event(Event& out) {
  if (state_.events.empty()) return false;
  out = state_.events.front();
  state_.events.pop();
  if (out.kind == Event::Kind::kStalled) watchdog_.on_told();
  return true;
}

}  // namespace gradplane::job
