// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <exception>
#include <memory>

namespace gradplane::shim {

/// The end of one collective, for which the trainer waits.
class Completion {
 public:
  virtual ~Completion() = default;

  /// Whether finish() may run in the progress thread, because it calls no callbacks. Otherwise it
  /// runs in a thread of the completer, since a callback may wait for another collective. Called
  /// once.
  virtual bool may_finish_in_place() = 0;

  /// The collective has ended, with a failure or without one. Called once, in any thread.
  virtual void finish(std::exception_ptr failure) = 0;
};
using CompletionPtr = std::shared_ptr<Completion>;

}  // namespace gradplane::shim
