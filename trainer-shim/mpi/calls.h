// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "trainer-shim/mpi/mpi_api.h"

/// Replacements of functions of MPI. Each has the meaning of its original, and throws no exception.
namespace gradplane::shim::replacement {

/// Both request MPI_THREAD_MULTIPLE, because sessions have their own threads.
int init(int* argc, char*** argv);
int init_thread(int* argc, char*** argv, int required, int* provided);

/// Ends all sessions before MPI ends: in callbacks that MPICH runs at its end, threads do not work.
int finalize();

int allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
              MPI_Comm comm);
int iallreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm, MPI_Request* request);
int reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm);

#if MPI_VERSION >= 4
/// The same with counts that may be larger than an int. Larger ones are passed through.
int allreduce_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm);
int iallreduce_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type, MPI_Op op,
                 MPI_Comm comm, MPI_Request* request);
int reduce_scatter_block_c(const void* send, void* receive, MPI_Count count, MPI_Datatype type,
                           MPI_Op op, MPI_Comm comm);
#endif

}  // namespace gradplane::shim::replacement
