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

/// Makes a device pass on what is sent to the Ethernet addresses of groups, and the questions of
/// routers and switches who is in them. Control thread.
class GroupFilter {
 public:
  /// Of a kernel interface: it keeps what a socket of ours asks for, as long as the socket is open.
  static Result<GroupFilter> of_interface(int index);
  /// Of a device of our own, by its DPDK number.
  static GroupFilter of_device(std::uint16_t id);
  /// Of a memif, which passes on everything.
  static GroupFilter of_memif() { return GroupFilter(); }

  /// `mac` is one more that passes, `all` are the addresses of all groups, that one included.
  Status pass(const MacAddress& mac, std::span<const Ipv4> all);
  /// `all` are the addresses of the groups that are left.
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
