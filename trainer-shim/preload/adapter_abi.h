// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <stddef.h>
#include <stdint.h>

/// What the preload object and an adapter say to each other. Both come from one build, but an
/// adapter of another build may lie in the folder: `abi` is checked before anything else is read.
#ifdef __cplusplus
extern "C" {
#endif

/// Of libtorch.
enum gradplane_hook {
#define GP_HOOK(name, symbol) GP_HOOK_##name,
#include "trainer-shim/preload/hooks.def"
#undef GP_HOOK
  GP_HOOK_COUNT
};

/// Of MPI.
enum gradplane_mpi_hook {
#define GP_HOOK(name, symbol) GP_MPI_HOOK_##name,
#include "trainer-shim/preload/mpi_hooks.def"
#undef GP_HOOK
  GP_MPI_HOOK_COUNT
};

#define GRADPLANE_ADAPTER_ABI 2u
#define GRADPLANE_ADAPTER_SYMBOL "gradplane_adapter"

struct gradplane_adapter {
  uint32_t abi;
  uint32_t hook_count;  // of the adapter's framework
  /// Called once, before any hooked call is diverted. `originals` has hook_count entries and
  /// outlives the process; one may be NULL where the library lacks the symbol. Writes a
  /// replacement, or leaves NULL to keep the original. Returns 0, or not 0 with a sentence in
  /// `reason`: then every original stays.
  int (*attach)(void* const* originals, void** replacements, char* reason, size_t reason_bytes);
};

#ifdef __cplusplus
}
#endif
