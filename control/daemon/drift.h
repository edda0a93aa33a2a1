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

/// What a rank has said of its drift: how far its parameters were from their mean over all ranks,
/// each time that the ranks took the mean.
class RankDrift {
 public:
  /// True: it is over the limit, and nobody has been told since it was below. One that goes to and
  /// fro is told of seldom: at most once until it has been measured twice as often as then. So the
  /// log stays short, whatever a rank says. One that stays over the limit is told of when that time
  /// has come.
  bool add(const protocol::Drift& said, double limit);

  std::uint64_t averages() const { return averages_; }  // so many have been told
  const protocol::Drift& last() const { return last_; }

 private:
  protocol::Drift last_;
  std::uint64_t averages_ = 0;
  std::uint64_t next_warning_ = 0;  // not before so many averages
  bool is_told_ = false;            // since it was below the limit
};

/// The distance over the norm. Finite: where that is no number it is the largest one.
double relative_drift(const protocol::Drift& drift);

/// Keeps what a rank says of its drift (nullptr: who says it has attached none). Gives a line to
/// warn with, or none. An Error: no correct client says this now.
Result<std::string> take_drift(const config::TrainingConfig& training, Rank* rank,
                               const protocol::Drift& said);

}  // namespace gradplane::daemon
