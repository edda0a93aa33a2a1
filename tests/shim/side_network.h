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

/// A framework's collectives between ranks that are threads of this process. The n-th operation of
/// each rank belongs to the n-th of the others, and is over for all when all have begun it. Sums
/// are of 32-bit integers. Any thread.
class SideNetwork {
 public:
  SideNetwork(int ranks, std::chrono::milliseconds timeout);

  /// Of one rank. The network must outlive it.
  std::unique_ptr<shim::SideGroup> join(int rank, const shim::JobKey& key);

  /// Operations of collectives (start()) that are over.
  std::uint64_t collectives() const;

  /// As when the process of a rank dies: what waits for it fails everywhere, now and from now on.
  void lose(int rank);

  /// The statements that the rank hands over from now on are not of this version.
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
