// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/kernel_interface.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "dataplane/ipc/unique_fd.h"

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

std::size_t kernel_mtu(const std::string& interface) {
  ifreq request{};
  if (interface.empty() || interface.size() >= sizeof request.ifr_name) return 0;
  std::memcpy(request.ifr_name, interface.data(), interface.size());
  const ipc::UniqueFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (ioctl(any.get(), SIOCGIFMTU, &request) != 0) return 0;
  return static_cast<std::size_t>(std::max(request.ifr_mtu, 0));
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

std::string short_packets_note(const config::PortConfig& port, std::size_t interface_mtu) {
  const bool is_xdp = port.kind == config::PortKind::kAfXdp;
  const std::size_t limit = is_xdp ? config::kMaxAfXdpMtuBytes : config::kMaxMtuBytes;
  const std::size_t possible = std::min(interface_mtu, limit);
  if (!port.has_default_mtu || possible <= port.mtu_bytes) return {};
  return fmt::format(
      "port.mtu: packets have at most {} bytes, but {} takes {}, and longer packets cost less "
      "processor time; if all nodes and switches take longer ones, set port.mtu to that length "
      "in the files of all nodes (at most {} here), or to {} to keep it and not be told again",
      port.mtu_bytes, port.interface, interface_mtu, possible, port.mtu_bytes);
}

}  // namespace gradplane::daemon
