// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <bit>
#include <utility>

#include "dataplane/port/dpdk/device.h"
#include "dataplane/port/dpdk/device_port.h"
#include "dataplane/port/dpdk/dpdk_port.h"
#include "dataplane/port/dpdk/eal.h"
#include "dataplane/port/dpdk/frame_fields.h"
#include "dataplane/port/dpdk/group_filter.h"
#include "dataplane/port/dpdk/interface.h"
#include "dataplane/port/dpdk/memif_lock.h"

namespace gradplane::port {
namespace {

constexpr std::size_t kMaxSocketPathBytes = 107;

bool has_interface(DeviceKind kind) {
  return kind == DeviceKind::kAfPacket || kind == DeviceKind::kAfXdp;
}

bool is_descriptor_count(std::uint16_t count) {
  return count >= kMinDescriptors && count <= kMaxDescriptors && std::has_single_bit(count);
}

// The form is 0000:3b:00.0. The address goes into DPDK's arguments, so no other form is accepted.
bool is_pci_address(const std::string& text) {
  constexpr std::string_view kForm = "hhhh:hh:hh.h";
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (kForm[i] == 'h' ? !hex : text[i] != kForm[i]) return false;
  }
  return true;
}

Status check_addresses(const DpdkPortOptions& o) {
  if (!is_host_address(o.address)) {
    return Error{"port: " + to_text(o.address) + " cannot be the address of a host"};
  }
  if (o.prefix_length < 1 || o.prefix_length > 32) {
    return Error{"port: a prefix length of " + std::to_string(o.prefix_length) +
                 " is not in 1..32"};
  }
  const std::uint32_t mask = ~std::uint32_t{0} << (32 - o.prefix_length);
  if (o.gateway && ((o.gateway->value ^ o.address.value) & mask) != 0) {
    return Error{"port: the gateway " + to_text(*o.gateway) + " is not on the subnet of " +
                 to_text(o.address) + "/" + std::to_string(o.prefix_length)};
  }
  if (o.gateway && (*o.gateway == o.address || !is_host_address(*o.gateway))) {
    return Error{"port: " + to_text(*o.gateway) + " cannot be the gateway"};
  }
  if (o.mac && (o.mac->is_group() || o.mac->is_zero())) {
    return Error{"port: the MAC address must not be zero or a group's"};
  }
  return Nothing{};
}

Status check(const DpdkPortOptions& o) {
  if (Status s = check_addresses(o); !s) return s.error();
  if (Status s = check(o.steering); !s) return s.error();
  if (o.vlan && (*o.vlan < 1 || *o.vlan > kMaxVlanId)) {
    return Error{"port: VLAN " + std::to_string(*o.vlan) + " is not in 1.." +
                 std::to_string(kMaxVlanId)};
  }
  if (o.mtu != 0 && (o.mtu < kMinMtu || o.mtu > kMaxMtu)) {
    return Error{"port: an MTU of " + std::to_string(o.mtu) + " is not in " +
                 std::to_string(kMinMtu) + ".." + std::to_string(kMaxMtu)};
  }
  if (!is_descriptor_count(o.rx_descriptors) || !is_descriptor_count(o.tx_descriptors)) {
    return Error{"port: " + std::to_string(o.rx_descriptors) + " and " +
                 std::to_string(o.tx_descriptors) +
                 " descriptors: each must be a power of two in " + std::to_string(kMinDescriptors) +
                 ".." + std::to_string(kMaxDescriptors)};
  }
  if (o.memory_mb > kMaxMemoryMb) {
    return Error{"port: " + std::to_string(o.memory_mb) + " MiB is more than " +
                 std::to_string(kMaxMemoryMb)};
  }
  if (o.kind == DeviceKind::kPci && !is_pci_address(o.pci_address)) {
    return Error{"port: '" + o.pci_address + "' is not a PCI address such as 0000:3b:00.0"};
  }
  const bool bad_socket = o.memif_socket.empty() || o.memif_socket.size() > kMaxSocketPathBytes ||
                          o.memif_socket.find_first_of(",= \n") != std::string::npos;
  if (o.kind == DeviceKind::kMemif && bad_socket) {
    return Error{"port: '" + o.memif_socket + "' cannot be a memif socket: a path of 1 to " +
                 std::to_string(kMaxSocketPathBytes) + " bytes without ',', '=' and blanks"};
  }
  return Nothing{};
}

Result<std::uint16_t> interface_mtu(const DpdkPortOptions& o, const InterfaceFacts& facts) {
  if (o.mtu > facts.mtu) {
    return Error{"port: an MTU of " + std::to_string(o.mtu) + " is more than interface " +
                 o.interface + " has (" + std::to_string(facts.mtu) + "); run: ip link set dev " +
                 o.interface + " mtu " + std::to_string(o.mtu) +
                 ", or lower port.mtu (by default 1500)"};
  }
  if (facts.mtu < kMinMtu) {
    return Error{"port: interface " + o.interface + " has an MTU of " + std::to_string(facts.mtu) +
                 "; it must be at least " + std::to_string(kMinMtu)};
  }
  return o.mtu != 0 ? o.mtu : facts.mtu;
}

Result<PortLock> take_lock(const DpdkPortOptions& o) {
  if (o.kind == DeviceKind::kMemif) {
    Result<MemifLock> taken = MemifLock::take(o);
    if (!taken) return taken.error();
    return PortLock(std::move(taken.value()));
  }
  Result<DeviceLock> taken = DeviceLock::take(has_interface(o.kind) ? o.interface : o.pci_address);
  if (!taken) return taken.error();
  return PortLock(std::move(taken.value()));
}

Result<GroupFilter> make_filter(const DpdkPortOptions& o, int interface, const Device& device) {
  if (has_interface(o.kind)) return GroupFilter::of_interface(interface);
  if (o.kind == DeviceKind::kMemif) return GroupFilter::of_memif();
  return GroupFilter::of_device(device.id());
}

}  // namespace

Result<std::unique_ptr<Port>> open_dpdk_port(const DpdkPortOptions& o) {
  if (Status s = check(o); !s) return s.error();
  std::uint16_t mtu = o.mtu != 0 ? o.mtu : kDefaultMtu;
  int interface = 0;
  if (has_interface(o.kind)) {
    if (Status s = check_raw_permission(); !s) return s.error();
    const Result<InterfaceFacts> facts = take_interface(o.interface);
    if (!facts) return facts.error();
    const Result<std::uint16_t> checked = interface_mtu(o, facts.value());
    if (!checked) return checked.error();
    mtu = checked.value();
    interface = facts.value().index;
    if (Status s = check_address_is_free(o.address); !s) return s.error();
  }
  Result<PortLock> lock = take_lock(o);
  if (!lock) return lock.error();
  // A client leaves the socket file alone, because its server may be starting at this moment.
  if (o.kind == DeviceKind::kMemif && o.memif_role == MemifRole::kServer) {
    if (Status s = remove_stale_socket(o.memif_socket); !s) return s.error();
  }
  const DevicePlan plan = plan_device(o, mtu);
  const Status eal = start_eal({.huge_pages = o.huge_pages,
                                .memory_mb = o.memory_mb != 0 ? o.memory_mb : plan.memory_mb,
                                .pci_address = o.kind == DeviceKind::kPci ? o.pci_address : ""});
  if (!eal) return eal.error();
  Result<std::unique_ptr<Device>> device = Device::open(o, plan);
  if (!device) return device.error();
  Result<GroupFilter> filter = make_filter(o, interface, *device.value());
  if (!filter) return filter.error();
  return std::unique_ptr<Port>(std::make_unique<DevicePort>(
      o, std::move(lock.value()), std::move(device.value()), std::move(filter.value()), mtu));
}

}  // namespace gradplane::port
