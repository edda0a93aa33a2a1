// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "trainer-shim/group/agreement.h"
#include "trainer-shim/group/round_window.h"
#include "trainer-shim/group/staging.h"

namespace gradplane::shim {

/// A collective under way that the framework itself does.
class OriginalWork {
 public:
  virtual ~OriginalWork() = default;

  virtual bool is_over() const = 0;
  /// Throws what the framework throws.
  virtual void wait() = 0;
  /// Runs `then` once when the work is over, in any thread. If it is over already, in this one.
  virtual void when_over(std::function<void()> then) = 0;
};
using OriginalWorkPtr = std::unique_ptr<OriginalWork>;

/// The framework's own collectives, on a second group with the ranks of the trainer's group. Only
/// the progress thread issues operations on it, so they match between ranks whatever the trainer
/// does on its group meanwhile. Only OriginalWork::wait() and key() wait. Functions throw what the
/// framework throws. The memory of an operation must stay as it is until the work is over.
class SideGroup {
 public:
  virtual ~SideGroup() = default;

  /// Gathers the bytes of all ranks, in the order of ranks. All ranks give as many, and `all` has
  /// room for all.
  virtual OriginalWorkPtr all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

  /// Broadcasts the bytes of `root`, in place.
  virtual OriginalWorkPtr broadcast(std::span<std::byte> bytes, int root) = 0;

  /// Does a part of each shard of a collective by the framework's original operation. It works in
  /// place, except for a reduce_scatter, whose result has its own memory. The result is there after
  /// OriginalWork::wait(). `memory` keeps the collective's memory.
  virtual OriginalWorkPtr start(const Collective& collective, std::size_t offset_bytes,
                                std::size_t bytes, const StagingPtr& memory) = 0;

  /// Closes the connections, so that no peer waits for this rank. Any thread.
  virtual void close() = 0;

  /// Whether close() makes operations of other ranks that wait for this rank fail. If not, the
  /// ranks of a session end it together.
  virtual bool closing_ends_waits() const { return true; }

  /// The time after which an operation of the trainer's group fails.
  virtual std::chrono::milliseconds timeout() const = 0;

  /// The key of the group's jobs, the same on all ranks. It may wait until the other ranks have
  /// come to their first collective.
  virtual JobKey key() = 0;

  /// The name of the framework in messages.
  virtual const char* name() const = 0;
};

/// A rank that waits for a peer says so after this time, and again each time that the wait has
/// doubled.
inline constexpr std::chrono::seconds kFirstWord{5};
/// Called when a rank says that it waits, with the seconds so far.
using StillWaiting = std::function<void(std::int64_t)>;

/// Waits for the end of a work. Throws what the work throws.
void wait_for(OriginalWork& work, const StillWaiting& still_waiting);

/// Exchanges statements. Returns those of all ranks, by rank.
std::vector<Statement> gather(SideGroup& side, int ranks, const Statement& mine,
                              const StillWaiting& still_waiting);

}  // namespace gradplane::shim
