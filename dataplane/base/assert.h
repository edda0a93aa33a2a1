// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdio>
#include <cstdlib>

/// A broken invariant of our own code: says where, then ends the process. Never for input that
/// somebody else wrote. Stays on in release builds. The shim does not include this header.
#define GP_ASSERT(condition)                                                                   \
  do {                                                                                         \
    if (!(condition)) [[unlikely]] {                                                           \
      std::fprintf(stderr, "gradplane: broken invariant: %s at %s:%d\n", #condition, __FILE__, \
                   __LINE__);                                                                  \
      std::abort();                                                                            \
    }                                                                                          \
  } while (false)
