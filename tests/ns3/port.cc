// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/ns3/port.h"

#include <ns3/inet-socket-address.h>
#include <ns3/packet.h>
#include <ns3/udp-socket-factory.h>

#include "dataplane/base/assert.h"

namespace gradplane::ns3_host {
namespace {

/// The bits of ECN in the former type-of-service field (RFC 3168, section 5).
constexpr std::uint8_t kEcnBits = 3;
constexpr std::uint8_t kCongestionExperienced = 3;
constexpr std::uint8_t kEct0 = 2;

/// Before release 3.42 a datagram has the type of service of its address, and later that of its
/// socket.
template <typename Address>
void mark_as_capable(Address& to) {
  if constexpr (requires { to.SetTos(kEct0); }) to.SetTos(kEct0);
}
/// An Ethernet MTU without IPv4 and UDP headers.
constexpr std::size_t kMtuPayloadBytes = 1500 - 28;

}  // namespace

SocketPort::SocketPort(const ns3::Ptr<ns3::Node>& node, Ipv4 address, std::uint16_t udp_port,
                       std::function<void()> arrived)
    : address_(address),
      udp_port_(udp_port),
      arrived_(std::move(arrived)),
      socket_(ns3::Socket::CreateSocket(node, ns3::UdpSocketFactory::GetTypeId())),
      rx_(port::kMaxBurst),
      tx_(port::kMaxBurst) {
  GP_ASSERT(socket_->Bind(ns3::InetSocketAddress(ns3::Ipv4Address(address.value), udp_port)) == 0);
  socket_->SetIpTos(kEct0);
  socket_->SetIpRecvTos(true);
  socket_->SetRecvCallback(ns3::MakeCallback(&SocketPort::on_readable, this));
  for (Buffer& buffer : tx_) free_tx_.push_back(&buffer);
}

SocketPort::~SocketPort() {
  socket_->SetRecvCallback(ns3::MakeNullCallback<void, ns3::Ptr<ns3::Socket>>());
  socket_->Close();
}

void SocketPort::set_witnesses(Witness received, Witness sent) {
  received_ = std::move(received);
  sent_ = std::move(sent);
}

void SocketPort::on_readable(ns3::Ptr<ns3::Socket>) {
  arrived_();
}

std::size_t SocketPort::receive(std::span<port::RxDatagram> out) noexcept {
  std::size_t count = 0;
  while (count < out.size() && count < rx_.size()) {
    ns3::Address from;
    const ns3::Ptr<ns3::Packet> packet = socket_->RecvFrom(from);
    if (packet == nullptr) break;
    Buffer& buffer = rx_[count];
    const std::size_t length = packet->CopyData(reinterpret_cast<std::uint8_t*>(buffer.data()),
                                                static_cast<std::uint32_t>(buffer.size()));
    const auto source = ns3::InetSocketAddress::ConvertFrom(from);
    ns3::SocketIpTosTag tos;
    const bool marked =
        packet->PeekPacketTag(tos) && (tos.GetTos() & kEcnBits) == kCongestionExperienced;
    out[count++] = {.payload = std::span(buffer).first(length),
                    .source = {Ipv4{source.GetIpv4().Get()}, source.GetPort()},
                    .destination_udp_port = udp_port_,
                    .congestion_experienced = marked};
    ++counters_.rx_datagrams;
    counters_.rx_bytes += length;
    if (received_) received_(std::span(buffer).first(length));
  }
  return count;
}

void SocketPort::release(std::span<port::RxDatagram>) noexcept {}

bool SocketPort::allocate(port::TxDatagram& out) noexcept {
  if (free_tx_.empty()) return false;
  out = {};
  out.token = free_tx_.back();
  out.buffer = *free_tx_.back();
  free_tx_.pop_back();
  return true;
}

void SocketPort::discard(port::TxDatagram& datagram) noexcept {
  free_tx_.push_back(static_cast<Buffer*>(datagram.token));
}

std::size_t SocketPort::transmit(std::span<port::TxDatagram> datagrams) noexcept {
  for (const auto turn : {port::TrafficClass::kControl, port::TrafficClass::kData}) {
    for (port::TxDatagram& datagram : datagrams) {
      if (datagram.traffic_class != turn) continue;
      datagram.copy_lent();
      send(datagram);
      discard(datagram);
    }
  }
  return datagrams.size();
}

Status SocketPort::join_group(const port::Group& group) {
  return Error{"port: the simulated network of ns-3 has no group " + port::to_text(group.address) +
               "; use another port"};
}

void SocketPort::send(const port::TxDatagram& datagram) {
  if (datagram.destination.is_group()) {
    ++counters_.drops[static_cast<std::size_t>(port::PortDrop::kNoNeighbour)];
    return;
  }
  const auto packet = ns3::Create<ns3::Packet>(
      reinterpret_cast<const std::uint8_t*>(datagram.buffer.data()), datagram.length_bytes);
  const Endpoint& node = datagram.destination.endpoint();
  ns3::InetSocketAddress to(ns3::Ipv4Address(node.address.value), node.udp_port);
  mark_as_capable(to);
  if (socket_->SendTo(packet, 0, to) < 0) {
    ++counters_.drops[static_cast<std::size_t>(port::PortDrop::kTxFull)];
    return;
  }
  ++counters_.tx_datagrams;
  counters_.tx_bytes += datagram.length_bytes;
  if (sent_) sent_(datagram.buffer.first(datagram.length_bytes));
}

std::size_t SocketPort::mtu_payload_bytes() const noexcept {
  return kMtuPayloadBytes;
}

}  // namespace gradplane::ns3_host
