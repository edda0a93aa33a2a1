// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <vector>

#include "dataplane/port/port.h"

namespace gradplane::testing {

/// A port at whose other end one program acts for many nodes. They share its address, and each has
/// its own UDP port: there, node n is at first_udp_port + n. Here each node has its own address.
class FanIn : public port::Port, public port::PortQueue {
 public:
  struct Other {
    Ipv4 address;
    std::uint16_t first_udp_port = 0;
  };
  FanIn(port::Port& port, Other other, std::vector<Ipv4> nodes)
      : port_(port), queue_(port.queue(0)), other_(other), nodes_(std::move(nodes)) {}

  std::size_t queue_count() const noexcept override { return 1; }
  PortQueue& queue(std::size_t) noexcept override { return *this; }
  Status join_group(const port::Group& group) override { return port_.join_group(group); }
  void leave_group(const port::Group& group) override { port_.leave_group(group); }
  std::size_t mtu_payload_bytes() const noexcept override { return port_.mtu_payload_bytes(); }
  Ipv4 address() const noexcept override { return port_.address(); }

  std::size_t receive(std::span<port::RxDatagram> out) noexcept override {
    const std::size_t count = queue_.receive(out);
    for (port::RxDatagram& d : out.first(count)) {
      const std::size_t node = std::size_t{d.source.udp_port} - other_.first_udp_port;
      if (node < nodes_.size()) d.source.address = nodes_[node];
    }
    return count;
  }
  void release(std::span<port::RxDatagram> datagrams) noexcept override {
    queue_.release(datagrams);
  }
  bool allocate(port::TxDatagram& out) noexcept override { return queue_.allocate(out); }
  void discard(port::TxDatagram& datagram) noexcept override { queue_.discard(datagram); }
  std::size_t transmit(std::span<port::TxDatagram> datagrams) noexcept override {
    for (port::TxDatagram& d : datagrams) {
      const std::uint32_t node = d.destination.endpoint().address.value - nodes_[0].value;
      d.destination =
          Endpoint{other_.address, static_cast<std::uint16_t>(other_.first_udp_port + node)};
    }
    return queue_.transmit(datagrams);
  }
  void tick(Instant now) noexcept override { queue_.tick(now); }
  std::size_t lends_from_bytes() const noexcept override { return queue_.lends_from_bytes(); }
  const port::PortCounters& counters() const noexcept override { return queue_.counters(); }

 private:
  port::Port& port_;
  PortQueue& queue_;
  Other other_;
  std::vector<Ipv4> nodes_;  // by node id; addresses are consecutive
};

}  // namespace gradplane::testing
