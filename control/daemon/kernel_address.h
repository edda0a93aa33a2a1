// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

namespace gradplane::daemon {

/// The IPv4 addresses that the kernel has on an interface. Empty where it has none, or tells none.
std::vector<std::string> kernel_addresses(const std::string& interface);

/// A warning that the kernel uses the interface of the port, too; empty if it has no `addresses`.
std::string kernel_address_warning(const std::string& interface,
                                   const std::vector<std::string>& addresses);

}  // namespace gradplane::daemon
