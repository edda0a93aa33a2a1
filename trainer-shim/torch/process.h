// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "trainer-shim/torch/originals.h"

namespace gradplane::shim {

/// Once in a process, before the first group: from here on groups survive fork(), and end with the
/// process. `functions` are the originals for good.
void begin_process(const Originals& functions);

}  // namespace gradplane::shim
