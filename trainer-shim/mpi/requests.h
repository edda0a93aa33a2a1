// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <exception>

#include "trainer-shim/group/completion.h"
#include "trainer-shim/mpi/mpi_api.h"

namespace gradplane::shim {

/// The error code of MPI for a failure, whose text the program can read.
int error_code(const std::exception& failure);

/// What MPI_Iallreduce returns: a generalized request, which the program's MPI_Wait, MPI_Testany
/// and so on know (MPI 4.0, section 13.2).
class Request final : public Completion {
 public:
  /// Throws std::runtime_error.
  Request();

  MPI_Request handle() const { return handle_; }
  bool may_finish_in_place() override { return true; }
  void finish(std::exception_ptr failure) override;

 private:
  /// What query() answers. MPI frees it when the program has seen that the request is complete.
  struct Answer;

  Answer* const answer_;
  MPI_Request handle_ = MPI_REQUEST_NULL;
};

#ifdef MPICH_NUMVERSION
/// MPICH (seen in 4.0.2) aborts where a generalized request is waited for beside a null one. So
/// ours are waited for before the others.
int wait_for_all(int count, MPI_Request* requests, MPI_Status* statuses);
#endif

}  // namespace gradplane::shim
