// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/group_filter.h"

#include <linux/if_packet.h>
#include <rte_ethdev.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

namespace gradplane::port {
namespace {

Error cannot_pass(int error) {
  return Error{"port: the device does not pass on what is sent to groups: " +
               std::string(std::strerror(error)) + "; use a device or driver with multicast"};
}

}  // namespace

Result<GroupFilter> GroupFilter::of_interface(int index) {
  GroupFilter filter;
  filter.kind_ = Kind::kInterface;
  filter.interface_ = index;
  // Protocol 0: the socket receives nothing.
  filter.socket_ = ipc::UniqueFd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!filter.socket_) {
    return Error{"port: there is no socket for the groups of the interface: " +
                 std::string(std::strerror(errno)) + "; raise the limit of open files"};
  }
  const int error = filter.change(PACKET_ADD_MEMBERSHIP, group_mac(kAllHosts));
  if (error == 0) return filter;
  return cannot_pass(error);
}

GroupFilter GroupFilter::of_device(std::uint16_t id) {
  GroupFilter filter;
  filter.kind_ = Kind::kDevice;
  filter.device_ = id;
  return filter;
}

// The kernel counts how often an address was added, so several groups may share one.
int GroupFilter::change(int option, const MacAddress& mac) const {
  packet_mreq request{};
  request.mr_ifindex = interface_;
  request.mr_type = PACKET_MR_MULTICAST;
  request.mr_alen = static_cast<unsigned short>(mac.bytes.size());
  std::memcpy(request.mr_address, mac.bytes.data(), mac.bytes.size());
  return setsockopt(socket_.get(), SOL_PACKET, option, &request, sizeof request) == 0 ? 0 : errno;
}

// Some drivers have no list of multicast addresses, and others only a short one. Then the device
// accepts all groups, and the stack drops frames that are not for us.
int GroupFilter::set_list(std::span<const Ipv4> all) const {
  std::vector<MacAddress> macs;
  for (const Ipv4 group : all) macs.push_back(group_mac(group));
  if (!macs.empty()) macs.push_back(group_mac(kAllHosts));
  std::sort(macs.begin(), macs.end());
  macs.erase(std::unique(macs.begin(), macs.end()), macs.end());
  std::vector<rte_ether_addr> list(macs.size());
  for (std::size_t m = 0; m < macs.size(); ++m) {
    std::memcpy(list[m].addr_bytes, macs[m].bytes.data(), sizeof list[m].addr_bytes);
  }
  const auto count = static_cast<std::uint32_t>(list.size());
  if (rte_eth_dev_set_mc_addr_list(device_, list.data(), count) == 0) return 0;
  return -rte_eth_allmulticast_enable(device_);
}

Status GroupFilter::pass(const MacAddress& mac, std::span<const Ipv4> all) {
  int error = 0;
  if (kind_ == Kind::kInterface) error = change(PACKET_ADD_MEMBERSHIP, mac);
  if (kind_ == Kind::kDevice) error = set_list(all);
  if (error == 0) return Nothing{};
  return cannot_pass(error);
}

void GroupFilter::stop(const MacAddress& mac, std::span<const Ipv4> all) {
  if (kind_ == Kind::kInterface) (void)change(PACKET_DROP_MEMBERSHIP, mac);
  if (kind_ == Kind::kDevice) (void)set_list(all);
}

}  // namespace gradplane::port
