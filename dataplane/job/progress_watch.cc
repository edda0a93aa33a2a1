// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/job/progress_watch.h"

#include "dataplane/hop/block_sender.h"

namespace gradplane::job {

void ProgressWatch::look(Instant now) {
  quiet_ += std::clamp(now - last_look_, Duration{}, kLongestStep);
  last_look_ = now;
  next_look_ = now + kLookInterval;
}

bool Inquiry::is_due(std::uint32_t round, Instant now) {
  if (waits_ && round == round_) return now >= next_at_;
  waits_ = true;
  round_ = round;
  next_at_ = now + kAskInterval;
  unanswered_ = 0;
  return false;
}

void Inquiry::on_asked(std::uint32_t now_us, Instant now) {
  if (unanswered_++ == 0) first_asked_us_ = now_us;
  next_at_ = now;
}

void Inquiry::on_answer(Instant now) {
  unanswered_ = 0;
  next_at_ = now + kAskInterval;
}

bool Inquiry::is_answered_by(std::uint32_t round, std::uint32_t echo_us) const {
  return waits_ && unanswered_ > 0 && round == round_ && !hop::before_us(echo_us, first_asked_us_);
}

}  // namespace gradplane::job
