// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <stddef.h>
#include <stdint.h>

/// The interface between the preload object and an adapter. Both come from one build, but the
/// folder may have an adapter of another build, so `abi` is checked before anything else is read.
#ifdef __cplusplus
extern "C" {
#endif

/// The hooks of libtorch.
enum gradplane_hook {
#define GP_HOOK(name, symbol) GP_HOOK_##name,
#include "trainer-shim/preload/hooks.def"
#undef GP_HOOK
  GP_HOOK_COUNT
};

/// The hooks of MPI.
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
  /// Called once, before any hooked call is diverted. `originals` has hook_count entries and is
  /// never freed; an entry is NULL if the library lacks the symbol. Writes replacements, and leaves
  /// NULL where the original stays. Returns 0 on success. Otherwise writes a sentence to `reason`,
  /// and every original stays.
  int (*attach)(void* const* originals, void** replacements, char* reason, size_t reason_bytes);
};

#ifdef __cplusplus
}
#endif
