// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "dataplane/base/result.h"
#include "dataplane/ipc/unique_fd.h"
#include "dataplane/port/destination.h"
#include "dataplane/port/dpdk/frame.h"

/// The kernel's interfaces, in the network namespace of the calling thread.
namespace gradplane::port {

struct InterfaceFacts {
  int index = 0;
  std::uint16_t mtu = 0;
  MacAddress mac;
  bool was_down = false;
};

/// Checks that `name` is an Ethernet interface that we may use, and brings it up.
Result<InterfaceFacts> take_interface(const std::string& name);

/// Fails if the kernel has this address, because it would then also answer ARP, and refuse our
/// datagrams.
Status check_address_is_free(Ipv4 address);

/// Fails if this process may not open sockets below IP.
Status check_raw_permission();

/// A lock that lets only one daemon use a device. It is held for the lifetime of the object, and
/// the kernel releases it when the process dies. Each network namespace has its own locks. The lock
/// is on a file that only root and our own user can open.
class DeviceLock {
 public:
  static Result<DeviceLock> take(const std::string& device);

 private:
  explicit DeviceLock(ipc::UniqueFd file) : file_(std::move(file)) {}
  ipc::UniqueFd file_;
};

}  // namespace gradplane::port
