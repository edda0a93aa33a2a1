// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/awareness/loss_meter.h"

#include <algorithm>

namespace gradplane::awareness {

/// Takes a packet outside the stretch: it is the first of all, older, or newer.
LossCount LossMeter::on_other(std::uint64_t number) {
  if (begin_ == 0) begin_ = number;
  if (number < begin_) return {};  // it counts as lost
  if (number >= begin_ + 2 * kLossStretch) {
    // Nothing came for a long time. All numbers in between were sent.
    const std::uint64_t sent = number - begin_;
    const LossCount count{.sent = sent, .lost = sent - std::min(sent, here_ + next_)};
    begin_ = number;
    here_ = 1;
    next_ = 0;
    return count;
  }
  ++(number < begin_ + kLossStretch ? here_ : next_);
  if (number < begin_ + kLossStretch + kLossPatience) return {};
  const LossCount count{.sent = kLossStretch, .lost = kLossStretch - std::min(kLossStretch, here_)};
  begin_ += kLossStretch;
  here_ = next_;
  next_ = 0;
  return count;
}

}  // namespace gradplane::awareness
