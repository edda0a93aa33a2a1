// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <ns3/node.h>
#include <ns3/socket.h>

#include <array>
#include <functional>
#include <vector>

#include "dataplane/port/port.h"

namespace gradplane::ns3_host {

/// A port of the engine on a UDP socket of ns-3. It sends with ECT(0). It uses one source port,
/// because there is only one path. It is itself its only queue. It has no groups, because the hosts
/// have routes to each other, but none to a group.
class SocketPort : public port::Port, public port::PortQueue {
 public:
  /// `arrived` is called when receive() has new datagrams, but never inside of receive().
  SocketPort(const ns3::Ptr<ns3::Node>& node, Ipv4 address, std::uint16_t udp_port,
             std::function<void()> arrived);
  ~SocketPort() override;
  SocketPort(const SocketPort&) = delete;
  SocketPort& operator=(const SocketPort&) = delete;

  /// Called with every datagram that is received or sent.
  using Witness = std::function<void(std::span<const std::byte>)>;
  void set_witnesses(Witness received, Witness sent);

  std::size_t receive(std::span<port::RxDatagram> out) noexcept override;
  void release(std::span<port::RxDatagram> datagrams) noexcept override;
  bool allocate(port::TxDatagram& out) noexcept override;
  void discard(port::TxDatagram& datagram) noexcept override;
  std::size_t transmit(std::span<port::TxDatagram> datagrams) noexcept override;
  void tick(Instant) noexcept override {}
  const port::PortCounters& counters() const noexcept override { return counters_; }

  std::size_t queue_count() const noexcept override { return 1; }
  port::PortQueue& queue(std::size_t) noexcept override { return *this; }
  Status join_group(const port::Group& group) override;
  void leave_group(const port::Group&) override {}
  std::size_t mtu_payload_bytes() const noexcept override;
  Ipv4 address() const noexcept override { return address_; }

 private:
  using Buffer = std::array<std::byte, kMaxDatagramBytes>;

  void on_readable(ns3::Ptr<ns3::Socket> socket);
  void send(const port::TxDatagram& datagram);

  Ipv4 address_;
  std::uint16_t udp_port_;
  std::function<void()> arrived_;
  Witness received_;
  Witness sent_;
  ns3::Ptr<ns3::Socket> socket_;
  std::vector<Buffer> rx_;
  std::vector<Buffer> tx_;
  std::vector<Buffer*> free_tx_;
  port::PortCounters counters_;
};

}  // namespace gradplane::ns3_host
