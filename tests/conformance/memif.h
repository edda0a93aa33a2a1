// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>

#include "dataplane/port/dpdk/dpdk_port.h"

namespace gradplane::conformance {

/// One end of a memif on a socket of this name in a folder of the process; ends the process with
/// what is wrong when it does not open.
std::unique_ptr<port::Port> open_memif(const char* socket, port::MemifRole role, Ipv4 address,
                                       const port::Steering& steering = {});

}  // namespace gradplane::conformance
