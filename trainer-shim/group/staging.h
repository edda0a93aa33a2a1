// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>
#include <utility>

namespace gradplane::shim {

/// The memory that a trainer gave for a collective, and how its bytes come to where the collective
/// is carried and from there back. It keeps that memory for as long as it lives. The methods are
/// the progress thread's, unless they say otherwise.
///
/// Memory of the host is carried where it is: it is always in, and nothing has to go back. Memory
/// of a device is copied into host memory, and the results are copied out again.
class Staging {
 public:
  virtual ~Staging() = default;

  /// Whether what this rank gives has arrived where it is carried. Never waits. Once it has
  /// answered no, the staging calls GroupSession::wake() when that may have changed.
  virtual bool is_in() = 0;

  /// Whether results have to go to other memory, by bring_out().
  virtual bool goes_out() const = 0;

  /// Copies the results to where the trainer expects them. Once, after a success, and in a thread
  /// that nobody waits for, so it may take its time. What it throws fails the operation.
  virtual void bring_out() = 0;

  /// Whether bring_out() takes but some microseconds, because a device copies by itself: then it
  /// may run in the progress thread, too.
  virtual bool goes_out_at_once() const { return false; }
};
using StagingPtr = std::shared_ptr<Staging>;

/// Memory of the host, which `Owner` keeps.
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
