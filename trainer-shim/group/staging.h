// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <utility>

namespace gradplane::shim {

/// The memory that a trainer gave for a collective. It copies the bytes to host memory, where the
/// collective is carried, and back, and keeps the trainer's memory alive. Only the progress thread
/// calls its functions, unless they say otherwise.
///
/// Host memory is carried where it is: it is always in, and no result has to be copied. Memory of a
/// device is copied into host memory, and the results are copied out again.
class Staging {
 public:
  virtual ~Staging() = default;

  /// Whether this rank's contribution is in host memory. Never waits. After a false, the staging
  /// calls GroupSession::wake() when the answer may have changed.
  virtual bool is_in() = 0;

  /// Whether results must be copied to other memory by bring_out().
  virtual bool goes_out() const = 0;

  /// Copies the results to where the trainer expects them. It is called once, after a success, in a
  /// thread of the completer, so it may take long. An exception fails the operation.
  virtual void bring_out() = 0;

  /// Whether bring_out() takes only some microseconds, because the device copies by itself. Then it
  /// may run in the progress thread, too.
  virtual bool goes_out_at_once() const { return false; }
};
using StagingPtr = std::shared_ptr<Staging>;

/// Host memory, which `Owner` keeps alive.
template <typename Owner>
class HostMemory final : public Staging {
 public:
  explicit HostMemory(Owner owner) : owner_(std::move(owner)) {}

  bool is_in() override { return true; }
  bool goes_out() const override { return false; }
  void bring_out() override {}

 private:
  const Owner owner_;
};

}  // namespace gradplane::shim
