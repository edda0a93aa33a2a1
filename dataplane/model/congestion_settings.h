// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gradplane {

/// The congestion controller, which decides how much a sender may have in flight towards a peer,
/// and how fast it may send. The controllers are in dataplane/congestion.
enum class ControllerKind : std::uint8_t {
  kDelay,
  kReno,
  kCubic,
  kDctcp,
  kDcqcn,
  kSwift,
  kBbr,
  kFixed,
};
inline constexpr std::array<std::string_view, 8> kControllerNames = {
    "delay", "reno", "cubic", "dctcp", "dcqcn", "swift", "bbr", "fixed"};
static_assert(kControllerNames.size() == static_cast<std::size_t>(ControllerKind::kFixed) + 1);

/// Whether losses alone change neither the controller's window nor its rate.
constexpr bool ignores_random_loss(ControllerKind kind) {
  return kind == ControllerKind::kDelay || kind == ControllerKind::kBbr ||
         kind == ControllerKind::kFixed;
}

/// F(r) of MLTCP (arXiv 2402.09589): how aggressive a job is that has transferred the share r of an
/// iteration. With the paper's constants it goes from 0.25 to 2.
struct MltcpFunction {
  double slope = 1.75;
  double intercept = 0.25;

  /// `ratio` is clamped to 0..1.
  constexpr double at(double ratio) const {
    const double r = ratio > 0 ? (ratio < 1 ? ratio : 1.0) : 0.0;
    return slope * r + intercept;
  }
  constexpr bool operator==(const MltcpFunction&) const = default;
};

/// How one node sends its blocks. Nodes may differ, because this concerns only the sender.
struct CongestionSettings {
  ControllerKind controller = ControllerKind::kDelay;
  std::uint64_t rate_bits_per_second = 0;  // towards each peer, for kFixed
  std::optional<MltcpFunction> mltcp;      // none: the controller as published
};

}  // namespace gradplane
