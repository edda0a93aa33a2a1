// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/kernel_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <memory>

namespace gradplane::daemon {

std::vector<std::string> kernel_addresses(const std::string& interface) {
  ifaddrs* first = nullptr;
  if (interface.empty() || getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (interface != one->ifa_name || one->ifa_addr == nullptr) continue;
    if (one->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, one->ifa_addr, sizeof(address));
    std::array<char, INET_ADDRSTRLEN> text{};
    if (inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size()) != nullptr)
      addresses.emplace_back(text.data());
  }
  return addresses;
}

std::string kernel_address_warning(const std::string& interface,
                                   const std::vector<std::string>& addresses) {
  if (addresses.empty()) return {};
  std::string all;
  for (const std::string& address : addresses) all += (all.empty() ? "" : ", ") + address;
  return fmt::format(
      "port.interface: the kernel has the address {} on {}, so its own traffic shares this port; "
      "give gradplane an interface of its own, or remove the address if nothing else needs it",
      all, interface);
}

}  // namespace gradplane::daemon
