// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <exception>

#include "trainer-shim/group/completion.h"
#include "trainer-shim/mpi/mpi_api.h"

namespace gradplane::shim {

/// An error code of MPI for a failure. MPI_Error_string gives the program its text.
int error_code(const std::exception& failure);

/// The request that MPI_Iallreduce returns. It is a generalized request, so that MPI_Wait,
/// MPI_Testany and so on accept it (MPI 4.0, section 13.2).
class Request final : public Completion {
 public:
  /// Throws std::runtime_error.
  Request();

  MPI_Request handle() const { return handle_; }
  bool may_finish_in_place() override { return true; }
  void finish(std::exception_ptr failure) override;

 private:
  /// The answer to MPI's query. MPI frees it when the program has seen that the request is
  /// complete.
  struct Answer;

  Answer* const answer_;
  MPI_Request handle_ = MPI_REQUEST_NULL;
};

#ifdef MPICH_NUMVERSION
/// Replaces MPI_Waitall. MPICH (seen in 4.0.2) aborts when it waits for a generalized request and a
/// null request together, so this waits for each of ours by itself. If some request has failed, it
/// returns MPI_ERR_IN_STATUS, and each status has its MPI_ERROR.
int wait_for_all(int count, MPI_Request* requests, MPI_Status* statuses);
#endif

}  // namespace gradplane::shim
