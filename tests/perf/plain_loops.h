// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/reduce/kernels.h"

namespace gradplane::testing {

/// Kernels as anybody would write them, with the arithmetic and the bits of reduce::kScalar. Their
/// file is compiled for the processor that compiles it, and its loops can be vectorised: no branch,
/// no call, and no two pointers to the same memory.
const reduce::Kernels& plain_loops_for(ElementType type);
/// Blocks in the wire type int8.
const reduce::Kernels& plain_int8_loops();

/// fp32, but a sum that is not a number is whatever the processor takes for it.
const reduce::Kernels& plain_float_loops();

}  // namespace gradplane::testing
