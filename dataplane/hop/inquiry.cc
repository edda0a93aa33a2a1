// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/hop/inquiry.h"

#include "dataplane/hop/clock.h"

namespace gradplane::hop {

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
  return waits_ && unanswered_ > 0 && round == round_ && !before_us(echo_us, first_asked_us_);
}

}  // namespace gradplane::hop
