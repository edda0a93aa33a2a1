// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/port/dpdk/dpdk_port.h"
#include "dataplane/port/dpdk/frame.h"

/// The test's view of the interfaces that run_on_veth has made.
namespace gradplane::conformance {

/// Opens a port of the kind under test on an interface of this namespace. If that fails, it prints
/// the error and ends the process. If the kernel lacks the kind, the process ends as skipped.
std::unique_ptr<port::Port> open_or_exit(port::DpdkPortOptions options);
/// The kind of device under test, from the environment.
port::DeviceKind kind_under_test();
/// Default options for a port of that kind.
port::DpdkPortOptions veth_options(const std::string& interface, Ipv4 address);

/// A port on gpk0. Its neighbour and gateway is gpk1, which the kernel has.
port::Port& port_to_kernel();
inline constexpr Ipv4 kPortToKernel{0x0a4e0001};   // 10.78.0.1
inline constexpr Ipv4 kKernelAddress{0x0a4e0002};  // 10.78.0.2
/// Polls a port, so that it answers requests, and discards what it receives.
void ignore_arrivals(port::Port& port);

/// While an object exists, what its thread opens is in the other namespace.
class InPeerNamespace {
 public:
  InPeerNamespace();
  ~InPeerNamespace();
  InPeerNamespace(const InPeerNamespace&) = delete;
  InPeerNamespace& operator=(const InPeerNamespace&) = delete;

 private:
  int own_;
};

/// Starts a command in the other namespace. Its output goes to standard error.
class PeerCommand {
 public:
  explicit PeerCommand(const std::string& command);
  ~PeerCommand();
  PeerCommand(const PeerCommand&) = delete;
  PeerCommand& operator=(const PeerCommand&) = delete;
  /// Whether the command has ended.
  bool ended();
  int status() const { return status_; }

 private:
  int pid_ = -1;
  int status_ = -1;
};

/// A UDP socket of the kernel in the other namespace.
class KernelSocket {
 public:
  explicit KernelSocket(Endpoint bound);
  ~KernelSocket();
  KernelSocket(const KernelSocket&) = delete;
  KernelSocket& operator=(const KernelSocket&) = delete;
  bool send(Endpoint to, const std::vector<std::byte>& payload);
  bool receive(std::vector<std::byte>& payload, Endpoint& from, int& traffic_class);
  void set_traffic_class(int value);

 private:
  int fd_;
};

/// Sends raw frames on an interface of the other namespace, and receives the frames that arrive
/// there.
class RawLink {
 public:
  explicit RawLink(const std::string& interface);
  ~RawLink();
  RawLink(const RawLink&) = delete;
  RawLink& operator=(const RawLink&) = delete;
  void send(std::span<const std::byte> frame);
  bool receive(std::vector<std::byte>& frame);
  const port::MacAddress& mac() const { return mac_; }

 private:
  int fd_;
  port::MacAddress mac_;
};

/// Makes the kernel compute checksums before a frame leaves the interface. On a veth it would leave
/// them to a device that does not exist.
void disable_checksum_offload(const std::string& interface);

}  // namespace gradplane::conformance
