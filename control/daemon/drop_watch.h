// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/api/snapshot.h"
#include "dataplane/base/time.h"

namespace gradplane::daemon {

/// Between two warnings of one reason.
inline constexpr Duration kDropWarningPause = Duration::seconds(10 * 60);
/// Drops that come within this time count together. A mistake in a file brings many.
inline constexpr Duration kDropWindow = Duration::seconds(20);

/// The datagrams without a job that the cores of a daemon have dropped since its start, by reason.
struct Dropped {
  std::array<std::uint64_t, api::kDropReasons> by_node{};      // hop::Drop
  std::array<std::uint64_t, api::kPortDropReasons> by_port{};  // port::PortDrop

  void add(const api::EngineSnapshot& core);
};

/// Watches the counters of dropped packets for reasons that show a mistake in a configuration. With
/// such a mistake nodes merely seem silent to each other, so nothing else names it.
class DropWatch {
 public:
  /// Returns a warning for each reason of which there were enough drops within a window.
  std::vector<std::string> look(const Dropped& dropped, Instant now);

 private:
  static constexpr std::size_t kReasons = 3;
  struct Seen {
    std::uint64_t count = 0;  // when the window began
    Instant window_ends;
    Instant next_warning;
  };
  std::array<Seen, kReasons> seen_;
};

}  // namespace gradplane::daemon
