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

/// A collective of the framework itself that is under way.
class OriginalWork {
 public:
  virtual ~OriginalWork() = default;

  virtual bool is_over() const = 0;
  /// Throws what the framework throws.
  virtual void wait() = 0;
  /// Runs `then` once when the work is over, in any thread; in this one, if it is over already.
  virtual void when_over(std::function<void()> then) = 0;
};
using OriginalWorkPtr = std::unique_ptr<OriginalWork>;

/// The framework's own collectives, on a group of their own over the ranks of the trainer's group.
/// Only the progress thread issues operations on it, so they match between ranks whatever the
/// trainer does on its group meanwhile. Nothing here waits but OriginalWork::wait(); everything
/// throws as the framework throws. Memory that is named stays as it is until the work is over.
class SideGroup {
 public:
  virtual ~SideGroup() = default;

  /// The bytes of every rank, by rank. `all` has room for as many from each as `mine` has.
  virtual OriginalWorkPtr all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

  /// The bytes of `root`, in place.
  virtual OriginalWorkPtr broadcast(std::span<std::byte> bytes, int root) = 0;

  /// A part of each shard of a collective by the framework's original operation, in place but for a
  /// reduce_scatter, whose result has memory of its own. It is there after OriginalWork::wait().
  /// `memory` keeps the collective's memory.
  virtual OriginalWorkPtr start(const Collective& collective, std::size_t offset_bytes,
                                std::size_t bytes, const StagingPtr& memory) = 0;

  /// Closes the connections, so that no peer waits for this rank. Any thread.
  virtual void close() = 0;

  /// Whether close() ends what other ranks wait for. If not, the ranks of a session end it
  /// together.
  virtual bool closing_ends_waits() const { return true; }

  /// After so long an operation of the trainer's group fails.
  virtual std::chrono::milliseconds timeout() const = 0;

  /// The key of the group's jobs, the same on all ranks. It may wait for the other ranks to come to
  /// their first collective.
  virtual JobKey key() = 0;

  /// What the framework's collectives are called when a person is told of them.
  virtual const char* name() const = 0;
};

/// A rank that waits for a peer says so after this time, and again each time that the wait has
/// doubled.
inline constexpr std::chrono::seconds kFirstWord{5};
/// Called then, with the seconds so far.
using StillWaiting = std::function<void(std::int64_t)>;

/// Waits for the end of a work; throws what it throws.
void wait_for(OriginalWork& work, const StillWaiting& still_waiting);

/// Every rank's statement, by rank.
std::vector<Statement> gather(SideGroup& side, int ranks, const Statement& mine,
                              const StillWaiting& still_waiting);

}  // namespace gradplane::shim
