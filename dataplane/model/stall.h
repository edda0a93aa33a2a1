// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/base/time.h"

namespace gradplane {

/// Why a round will never end, as one node sees it.
struct Stall {
  enum class Reason : std::uint8_t {
    kPushesUnacked,   // the parent acknowledges none of the blocks that wait for it
    kResultsUnacked,  // a child that takes part in the round acknowledges no results
    kBlocksMissing,   // a child has sent some blocks of the round, but the others do not come
    kUnanswered,      // the parent has acknowledged everything, but does not answer any more
    kDisputed,        // the parent lacks what it had acknowledged, or ended the round without us
  };
  Reason reason = Reason::kPushesUnacked;
  std::uint32_t blocks = 0;  // blocks that are waited for
  Duration quiet;            // the time for which nothing has moved here
};

}  // namespace gradplane
