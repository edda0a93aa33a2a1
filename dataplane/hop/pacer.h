// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/time.h"

namespace gradplane::hop {

/// The burst that a paced flow may send at once after a pause.
inline constexpr Duration kPacerBurst = Duration::ms(1);

/// A token bucket. It holds up to `burst_bytes`, so a poll loop that sleeps still reaches the rate.
class Pacer {
 public:
  /// `rate_bits_per_second` 0 means: never wait.
  Pacer(std::uint64_t rate_bits_per_second, std::size_t burst_bytes);

  bool may_send(Instant now) const { return rate_ == 0 || free_at_ <= now; }
  /// When may_send() becomes true; not later than now if it is true already.
  Instant next_send() const { return free_at_; }
  bool is_paced() const { return rate_ != 0; }
  void on_sent(Instant now, std::size_t bytes);
  /// There was nothing to send until now, so the time until now earns no burst.
  void begin(Instant now) { free_at_ = std::max(free_at_, now); }
  /// Changes the link rate from now on. Like the constructor, it paces a little below that rate.
  void set_link_rate(Instant now, std::uint64_t rate_bits_per_second, std::size_t burst_bytes);
  /// Changes the rate from now on. What is left of a wait becomes shorter or longer in proportion.
  void set_rate(Instant now, std::uint64_t rate_bits_per_second, std::size_t burst_bytes);

 private:
  std::uint64_t rate_;  // bits per second
  Duration burst_;
  Instant free_at_ = Instant::from_ns(INT64_MIN / 4);
};

}  // namespace gradplane::hop
