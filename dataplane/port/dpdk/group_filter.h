// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/base/result.h"
#include "dataplane/ipc/unique_fd.h"
#include "dataplane/port/dpdk/dpdk_port.h"
#include "dataplane/port/dpdk/frame.h"

namespace gradplane::port {

/// Makes a device accept frames to the Ethernet addresses of groups, and IGMP queries. Control
/// thread.
class GroupFilter {
 public:
  /// The filter of a kernel interface, which accepts what our socket asks for as long as the socket
  /// is open.
  static Result<GroupFilter> of_interface(int index);
  /// The filter of a DPDK device that is only ours, by its DPDK port number.
  static GroupFilter of_device(std::uint16_t id);
  /// The filter of a memif, which accepts everything.
  static GroupFilter of_memif() { return GroupFilter(); }

  /// Accepts one more address, `mac`. `all` are the addresses of all groups, including that one.
  Status pass(const MacAddress& mac, std::span<const Ipv4> all);
  /// Stops accepting `mac`. `all` are the addresses of the remaining groups.
  void stop(const MacAddress& mac, std::span<const Ipv4> all);

 private:
  enum class Kind : std::uint8_t { kPassesAll, kInterface, kDevice };
  GroupFilter() = default;
  int change(int option, const MacAddress& mac) const;
  int set_list(std::span<const Ipv4> all) const;

  Kind kind_ = Kind::kPassesAll;
  int interface_ = 0;
  ipc::UniqueFd socket_;
  std::uint16_t device_ = 0;
};

}  // namespace gradplane::port
