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
  /// Writes to the group's store that this rank has the shim. Call it before the trainer's group
  /// connects. Rank 0 also writes the key of the group's jobs.
  static void say_hello(c10d::Store& store, int rank);

  /// Returns the ranks that did not say hello. It must be called after the trainer's group has
  /// connected. Then every rank with the shim has written its hello, so the answer is final and the
  /// same on all ranks.
  static std::vector<int> ranks_without_shim(c10d::Store& store, int size);

  /// Connects the side group. All ranks call it, in the thread that makes the trainer's group, if
  /// ranks_without_shim() is empty. Throws if rank 0 has written no key, or if Gloo throws.
  GlooSideGroup(const StorePtr& store, int rank, int size, const GroupOptions& options);

  /// Whether this thread connects a side group just now, whose constructor must not be diverted.
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
