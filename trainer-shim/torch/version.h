// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <torch/csrc/api/include/torch/version.h>

/// Whether the libtorch that this adapter is for is at least of this version. An adapter serves one
/// minor version; what differs between them stands where it matters.
#define GP_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||     \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))
