// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "trainer-shim/group/side_group.h"

namespace gradplane::test {

/// Stands in for a framework's collectives. Ranks are threads of this process. The n-th operations
/// of all ranks belong together, and end when all ranks have begun theirs. Sums are of 32-bit
/// integers. Functions may be called from any thread.
class SideNetwork {
 public:
  SideNetwork(int ranks, std::chrono::milliseconds timeout);

  /// The side group of one rank. The network must outlive it.
  std::unique_ptr<shim::SideGroup> join(int rank, const shim::JobKey& key);

  /// The number of collectives (start()) that have ended.
  std::uint64_t collectives() const;

  /// Acts as if the rank's process had died: operations that need it fail everywhere, now and
  /// later.
  void lose(int rank);

  /// From now on the rank's statements have another version.
  void garble(int rank);

 private:
  class Rank;
  class Work;
  struct State;
  struct Operation;
  struct Part;

  const std::chrono::milliseconds timeout_;
  const std::shared_ptr<State> state_;
};

}  // namespace gradplane::test
