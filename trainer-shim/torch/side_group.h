// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer-shim/torch/agreement.h"
#include "trainer-shim/torch/originals.h"
#include "trainer-shim/torch/round_window.h"

namespace gradplane::shim {

/// A second Gloo group over the same ranks, store and devices as the trainer's own. Only the
/// progress thread issues operations on it, so they match between ranks whatever the trainer does
/// on its group meanwhile. Everything throws as Gloo throws.
class SideGroup {
 public:
  /// A rank that waits for a peer says so after this time, and again each time that the wait has
  /// doubled.
  static constexpr std::chrono::seconds kFirstWord{5};

  /// Says in the group's store that this rank has the shim; before the trainer's group connects.
  /// Rank 0 also leaves the key of the group's jobs there.
  static void say_hello(c10d::Store& store, int rank);

  /// Returns the ranks that did not say hello. It must be called after the trainer's group has
  /// connected. Then every rank has written its hello, if it has the shim, so the answer is final
  /// and the same on all ranks.
  static std::vector<int> ranks_without_shim(c10d::Store& store, int size);

  /// The key that rank 0 left. After ranks_without_shim() has found nobody. Throws when it is none.
  static JobKey group_key(c10d::Store& store);

  /// Connects; collective, in the thread that makes the trainer's group.
  SideGroup(const StorePtr& store, int rank, int size, const GroupOptions& options);

  /// True while this thread connects a side group: its constructor call must not be diverted.
  static bool connecting();

  /// Called after some seconds of waiting, and again each time the wait has doubled, with the
  /// seconds so far.
  using StillWaiting = std::function<void(std::int64_t)>;

  /// Every rank's statement, by rank.
  std::vector<Statement> gather(const Statement& mine, const StillWaiting& still_waiting);

  /// The bytes of `root`, in place.
  void broadcast(std::span<std::byte> bytes, int root, const StillWaiting& still_waiting);

  /// A part of each shard of a collective by Gloo's original operation, in place; does not wait.
  /// `memory` keeps the collective's memory while Gloo uses it.
  WorkPtr start(const Collective& collective, std::size_t offset_bytes, std::size_t bytes,
                const at::Tensor& memory);

  /// Waits for the end of a work of this group; throws what it throws.
  static void wait_for(const WorkPtr& work, const StillWaiting& still_waiting);

  /// Closes the connections, so that no peer waits for this rank. Any thread.
  void close();

  std::chrono::milliseconds timeout() const { return group_->getOptions()->timeout; }

 private:
  c10::intrusive_ptr<Group> group_;
};

}  // namespace gradplane::shim
