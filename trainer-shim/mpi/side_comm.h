// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>

#include "trainer-shim/group/side_group.h"
#include "trainer-shim/mpi/mpi_api.h"

namespace gradplane::shim {

/// A second communicator of the same ranks. MPI's collectives block the thread that calls them. So
/// this has its own thread, which calls them one after another, in the order in which they were
/// started.
class SideComm final : public SideGroup {
 public:
  /// Does not wait. It begins a collective on `of`, an intracommunicator of ranks of world(), in
  /// the order of the program's own collectives. When all ranks have begun it, the thread makes the
  /// communicator.
  SideComm(MPI_Comm of, int rank, int size);
  /// Frees the communicator, as all ranks do. If the thread is stuck in MPI, it is left behind, and
  /// the communicator is not freed.
  ~SideComm() override;
  SideComm(const SideComm&) = delete;
  SideComm& operator=(const SideComm&) = delete;

  OriginalWorkPtr all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  OriginalWorkPtr broadcast(std::span<std::byte> bytes, int root) override;
  OriginalWorkPtr start(const Collective& collective, std::size_t offset_bytes, std::size_t bytes,
                        const StagingPtr& memory) override;
  /// Does nothing, because in MPI a rank cannot cancel a collective that it has begun.
  void close() override {}
  bool closing_ends_waits() const override;
  std::chrono::milliseconds timeout() const override;
  JobKey key() override;
  const char* name() const override { return "MPI"; }

 private:
  struct Comm;
  class Worker;

  const int rank_;
  const int size_;
  const std::shared_ptr<Comm> comm_;
  const std::shared_ptr<Worker> worker_;
  OriginalWorkPtr made_;
};

}  // namespace gradplane::shim
