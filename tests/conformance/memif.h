// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>

#include "dataplane/port/dpdk/dpdk_port.h"

namespace gradplane::conformance {

/// Opens one end of a memif on a socket of this name, which is in a folder of the process. If that
/// fails, it prints the error and ends the process.
std::unique_ptr<port::Port> open_memif(const char* socket, port::MemifRole role, Ipv4 address,
                                       const port::Steering& steering = {});

}  // namespace gradplane::conformance
