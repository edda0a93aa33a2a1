// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>

#include "control/config/config.h"
#include "control/protocol/socket_messages.h"
#include "dataplane/base/result.h"

namespace gradplane::daemon {

struct Rank;

/// What a rank has reported of its drift: the distance of its parameters from their mean over all
/// ranks, each time that the ranks took the mean.
class RankDrift {
 public:
  /// Keeps a report. True when the operator should be warned: the drift is over the limit, and no
  /// warning was given since it was last below. After a warning at report n, the next one comes at
  /// report 2n or later. So the log stays short, however often the drift crosses the limit. A drift
  /// that is still over the limit by then is warned of then.
  bool add(const protocol::Drift& said, double limit);

  std::uint64_t averages() const { return averages_; }  // how many reports there were
  const protocol::Drift& last() const { return last_; }

 private:
  protocol::Drift last_;
  std::uint64_t averages_ = 0;
  std::uint64_t next_warning_ = 0;  // the first report that may lead to a warning
  bool is_told_ = false;            // whether a warning was given since it was below the limit
};

/// The distance over the norm. It is always finite: where the quotient is no finite number, the
/// result is the largest one.
double relative_drift(const protocol::Drift& drift);

/// Keeps what a rank says of its drift. `rank` is null if the connection has attached none. Returns
/// a warning for the log, or an empty text. An Error: no correct client would say this now.
Result<std::string> take_drift(const config::TrainingConfig& training, Rank* rank,
                               const protocol::Drift& said);

}  // namespace gradplane::daemon
