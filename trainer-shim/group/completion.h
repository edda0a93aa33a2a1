// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <exception>
#include <memory>

namespace gradplane::shim {

/// What a trainer waits for: one for each collective that it has handed over.
class Completion {
 public:
  virtual ~Completion() = default;

  /// Whether finish() may run in the progress thread, because it calls nobody back. Otherwise it
  /// runs in a thread that nobody waits for, since a callback may wait for another collective.
  /// Once.
  virtual bool may_finish_in_place() = 0;

  /// The collective has ended, with a failure or without one. Once, in any thread.
  virtual void finish(std::exception_ptr failure) = 0;
};
using CompletionPtr = std::shared_ptr<Completion>;

}  // namespace gradplane::shim
