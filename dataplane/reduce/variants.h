// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/reduce/kernels.h"

/// The vector variant of an x86 build. To be called only on a processor with AVX2 and F16C.
namespace gradplane::reduce {

const Kernels& avx2_kernels_for(ElementType type) noexcept;

}  // namespace gradplane::reduce
