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

/// What run_on_veth has set up, seen from the test.
namespace gradplane::conformance {

/// A port of the kind under test on an interface of this namespace; ends the process with what is
/// wrong when it does not open, and as skipped where the kernel lacks the kind.
std::unique_ptr<port::Port> open_or_exit(port::DpdkPortOptions options);
/// The kind under test, from the environment.
port::DeviceKind kind_under_test();
/// Plain options for a port of that kind.
port::DpdkPortOptions veth_options(const std::string& interface, Ipv4 address);

/// A port on gpk0, whose neighbour and gateway is the kernel's gpk1.
port::Port& port_to_kernel();
inline constexpr Ipv4 kPortToKernel{0x0a4e0001};   // 10.78.0.1
inline constexpr Ipv4 kKernelAddress{0x0a4e0002};  // 10.78.0.2
/// Lets a port do what it does by itself: answer.
void ignore_arrivals(port::Port& port);

/// For as long as it lives, what the thread opens it opens in the other namespace.
class InPeerNamespace {
 public:
  InPeerNamespace();
  ~InPeerNamespace();
  InPeerNamespace(const InPeerNamespace&) = delete;
  InPeerNamespace& operator=(const InPeerNamespace&) = delete;

 private:
  int own_;
};

/// Starts a command in the other namespace; its output goes to standard error.
class PeerCommand {
 public:
  explicit PeerCommand(const std::string& command);
  ~PeerCommand();
  PeerCommand(const PeerCommand&) = delete;
  PeerCommand& operator=(const PeerCommand&) = delete;
  /// True when it has ended.
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

/// Sends frames as they are on an interface of the other namespace, and sees what comes there.
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

/// Makes the kernel compute checksums before a frame leaves the interface: on a veth it leaves them
/// to a device that is not there.
void disable_checksum_offload(const std::string& interface);

}  // namespace gradplane::conformance
