// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <memory>

#include "control/config/config.h"
#include "dataplane/base/result.h"
#include "dataplane/port/port.h"

namespace gradplane::daemon {

/// Opens the port that the configuration names for this node.
Result<std::unique_ptr<port::Port>> open_port(const config::Config& config);

/// The name of the port's device: an interface, a PCI address or a socket, as its kind has it.
std::string device_name(const config::PortConfig& port);

}  // namespace gradplane::daemon
