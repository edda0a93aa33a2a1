// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <vector>

#include "trainer-shim/group/agreement.h"
#include "trainer-shim/group/side_group.h"
#include "trainer-shim/torch/originals.h"

namespace gradplane::shim {

/// A second Gloo group over the same ranks, store and devices as the trainer's own.
class GlooSideGroup final : public SideGroup {
 public:
  /// Says in the group's store that this rank has the shim; before the trainer's group connects.
  /// Rank 0 also leaves the key of the group's jobs there.
  static void say_hello(c10d::Store& store, int rank);

  /// Returns the ranks that did not say hello. It must be called after the trainer's group has
  /// connected. Then every rank has written its hello, if it has the shim, so the answer is final
  /// and the same on all ranks.
  static std::vector<int> ranks_without_shim(c10d::Store& store, int size);

  /// Connects; collective, in the thread that makes the trainer's group, after ranks_without_shim()
  /// has found nobody. Throws when rank 0 left no key, or as Gloo throws.
  GlooSideGroup(const StorePtr& store, int rank, int size, const GroupOptions& options);

  /// True while this thread connects a side group: its constructor call must not be diverted.
  static bool connecting();

  OriginalWorkPtr all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  OriginalWorkPtr broadcast(std::span<std::byte> bytes, int root) override;
  OriginalWorkPtr start(const Collective& collective, std::size_t offset_bytes, std::size_t bytes,
                        const StagingPtr& memory) override;
  void close() override;
  std::chrono::milliseconds timeout() const override { return group_->getOptions()->timeout; }
  JobKey key() override { return key_; }
  const char* name() const override { return "Gloo"; }

 private:
  OriginalWorkPtr start_reduce_scatter(const Collective& collective, std::size_t offset_bytes,
                                       std::size_t bytes, const StagingPtr& memory);

  const JobKey key_;
  c10::intrusive_ptr<Group> group_;
};

}  // namespace gradplane::shim
