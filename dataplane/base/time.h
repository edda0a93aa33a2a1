// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <compare>
#include <cstdint>

namespace gradplane {

/// A span of time. One unit everywhere: nanoseconds, signed.
class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration ns(std::int64_t n) { return Duration(n); }
  static constexpr Duration us(std::int64_t n) { return Duration(n * 1000); }
  static constexpr Duration ms(std::int64_t n) { return Duration(n * 1000000); }
  static constexpr Duration seconds(std::int64_t n) { return Duration(n * 1000000000); }
  static constexpr Duration max() { return Duration(INT64_MAX / 4); }

  constexpr std::int64_t count_ns() const { return ns_; }
  constexpr double to_seconds() const { return static_cast<double>(ns_) * 1e-9; }

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator+(Duration o) const { return Duration(ns_ + o.ns_); }
  constexpr Duration operator-(Duration o) const { return Duration(ns_ - o.ns_); }
  constexpr Duration operator*(std::int64_t n) const { return Duration(ns_ * n); }
  constexpr Duration operator/(std::int64_t n) const { return Duration(ns_ / n); }
  constexpr Duration& operator+=(Duration o) {
    ns_ += o.ns_;
    return *this;
  }

 private:
  constexpr explicit Duration(std::int64_t ns) : ns_(ns) {}
  std::int64_t ns_ = 0;
};

/// A point on a monotonic clock. Only the difference of two instants of the same clock has a
/// meaning.
class Instant {
 public:
  constexpr Instant() = default;
  static constexpr Instant from_ns(std::int64_t ns) { return Instant(ns); }
  /// Later than every instant that occurs; "no deadline".
  static constexpr Instant never() { return Instant(INT64_MAX / 2); }

  constexpr std::int64_t count_ns() const { return ns_; }

  constexpr auto operator<=>(const Instant&) const = default;
  constexpr Instant operator+(Duration d) const { return Instant(ns_ + d.count_ns()); }
  constexpr Instant operator-(Duration d) const { return Instant(ns_ - d.count_ns()); }
  constexpr Duration operator-(Instant o) const { return Duration::ns(ns_ - o.ns_); }

 private:
  constexpr explicit Instant(std::int64_t ns) : ns_(ns) {}
  std::int64_t ns_ = 0;
};

}  // namespace gradplane
