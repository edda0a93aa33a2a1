// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "control/config/config.h"

namespace gradplane::daemon {

/// The IPv4 addresses that the kernel has on an interface. Empty where it has none, or tells none.
std::vector<std::string> kernel_addresses(const std::string& interface);

/// The longest IP packet that an interface takes, in bytes. 0 where the kernel does not tell.
std::size_t kernel_mtu(const std::string& interface);

/// A warning that the kernel uses the interface of the port, too; empty if it has no `addresses`.
std::string kernel_address_warning(const std::string& interface,
                                   const std::vector<std::string>& addresses);

/// Says that packets could be longer on an interface whose MTU is `interface_mtu`; empty if they
/// could not, or if the operator has chosen their length.
std::string short_packets_note(const config::PortConfig& port, std::size_t interface_mtu);

}  // namespace gradplane::daemon
