// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// The table that the preload object reads: what stands before which function of MPI.
#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/process.h"
#include "trainer-shim/mpi/calls.h"
#include "trainer-shim/mpi/requests.h"
#include "trainer-shim/preload/adapter_abi.h"

namespace gradplane::shim {
namespace {

/// Sets a replacement. `original` is there so that the compiler checks that both have one type.
template <typename Function>
void divert(void** replacements, gradplane_mpi_hook hook, Function original, Function replacement) {
  static_cast<void>(original);
  replacements[hook] = reinterpret_cast<void*>(replacement);
}

/// Ignores the addresses of the originals, because the adapter calls these by their PMPI names.
int attach(void* const*, void** replacements, char*, std::size_t) {
  divert(replacements, GP_MPI_HOOK_INIT, PMPI_Init, replacement::init);
  divert(replacements, GP_MPI_HOOK_INIT_THREAD, PMPI_Init_thread, replacement::init_thread);
  divert(replacements, GP_MPI_HOOK_FINALIZE, PMPI_Finalize, replacement::finalize);
  divert(replacements, GP_MPI_HOOK_ALLREDUCE, PMPI_Allreduce, replacement::allreduce);
  divert(replacements, GP_MPI_HOOK_IALLREDUCE, PMPI_Iallreduce, replacement::iallreduce);
  divert(replacements, GP_MPI_HOOK_REDUCE_SCATTER_BLOCK, PMPI_Reduce_scatter_block,
         replacement::reduce_scatter_block);
#if MPI_VERSION >= 4
  divert(replacements, GP_MPI_HOOK_ALLREDUCE_C, PMPI_Allreduce_c, replacement::allreduce_c);
  divert(replacements, GP_MPI_HOOK_IALLREDUCE_C, PMPI_Iallreduce_c, replacement::iallreduce_c);
  divert(replacements, GP_MPI_HOOK_REDUCE_SCATTER_BLOCK_C, PMPI_Reduce_scatter_block_c,
         replacement::reduce_scatter_block_c);
#endif
#ifdef MPICH_NUMVERSION
  divert(replacements, GP_MPI_HOOK_WAITALL, PMPI_Waitall, wait_for_all);
#endif
  warn_of_strange_variables();
  // A program may use MPI only for a few messages, and another framework of it writes the report.
  begin_process(Reports::kOfUse, nullptr);
  return 0;
}

}  // namespace
}  // namespace gradplane::shim

extern "C" __attribute__((visibility("default"))) const gradplane_adapter gradplane_adapter = {
    GRADPLANE_ADAPTER_ABI, GP_MPI_HOOK_COUNT, gradplane::shim::attach};
