// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdio>
#include <cstdlib>

/// For invariants of our own code. A broken one is reported with its place, and ends the process.
/// Never use it for input from others. It stays on in release builds. The shim does not include
/// this header.
#define GP_ASSERT(condition)                                                                   \
  do {                                                                                         \
    if (!(condition)) [[unlikely]] {                                                           \
      std::fprintf(stderr, "gradplane: broken invariant: %s at %s:%d\n", #condition, __FILE__, \
                   __LINE__);                                                                  \
      std::abort();                                                                            \
    }                                                                                          \
  } while (false)
