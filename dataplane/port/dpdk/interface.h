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

/// What the kernel knows about its interfaces, in the network namespace of the calling thread.
namespace gradplane::port {

struct InterfaceFacts {
  int index = 0;
  std::uint16_t mtu = 0;
  MacAddress mac;
  bool was_down = false;
};

/// Checks that `name` is an Ethernet interface that we may use, and brings it up.
Result<InterfaceFacts> take_interface(const std::string& name);

/// Fails when the kernel has this address: it would answer ARP beside us and refuse our datagrams.
Status check_address_is_free(Ipv4 address);

/// Fails when this process may not open sockets below IP.
Status check_raw_permission();

/// One daemon for one device: held for the life of the object, given back by the kernel when the
/// process dies. Other network namespaces have other locks. It is a lock on a file that nobody but
/// root and our own user can open.
class DeviceLock {
 public:
  static Result<DeviceLock> take(const std::string& device);

 private:
  explicit DeviceLock(ipc::UniqueFd file) : file_(std::move(file)) {}
  ipc::UniqueFd file_;
};

}  // namespace gradplane::port
