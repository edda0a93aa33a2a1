// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/reduce/kernels.h"

namespace gradplane::testing {

/// Kernels as a programmer would write them first, with the arithmetic and the bits of
/// reduce::kScalar. Their file is compiled for the processor of this machine. The loops can be
/// vectorised: they have no branches, no calls, and no pointers to the same memory.
const reduce::Kernels& plain_loops_for(ElementType type);
/// For blocks with wire type int8.
const reduce::Kernels& plain_int8_loops();

/// For fp32, but a NaN among the sums has the bits that the processor gives it.
const reduce::Kernels& plain_float_loops();

}  // namespace gradplane::testing
