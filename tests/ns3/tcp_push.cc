// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/ns3/tcp_push.h"

#include <ns3/config.h>
#include <ns3/inet-socket-address.h>
#include <ns3/packet.h>
#include <ns3/string.h>
#include <ns3/tcp-socket-factory.h>
#include <ns3/uinteger.h>

#include "dataplane/base/assert.h"

namespace gradplane::ns3_incast {
namespace {

constexpr std::uint16_t kPort = 5000;
/// Large enough for a whole push, so that only TCP's own window limits it.
constexpr std::uint32_t kBufferBytes = 2 * kMaxPushBytes;

}  // namespace

void TcpPush::prepare(const Scenario& scenario, std::string_view name) {
  const std::string type = name == "reno"    ? "ns3::TcpLinuxReno"
                           : name == "cubic" ? "ns3::TcpCubic"
                           : name == "bbr"   ? "ns3::TcpBbr"
                                             : "ns3::TcpDctcp";
  using ns3::Config::SetDefault;
  SetDefault("ns3::TcpL4Protocol::SocketType", ns3::TypeIdValue(ns3::TypeId::LookupByName(type)));
  SetDefault("ns3::TcpSocketBase::MinRto", ns3::TimeValue(ns3::MilliSeconds(200)));
  SetDefault("ns3::TcpSocketBase::ClockGranularity", ns3::TimeValue(ns3::MilliSeconds(1)));
  SetDefault("ns3::TcpSocketBase::UseEcn",
             ns3::StringValue(scenario.mark_bytes > 0 ? "On" : "Off"));
  SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(kTcpSegmentBytes));
  SetDefault("ns3::TcpSocket::InitialCwnd", ns3::UintegerValue(10));
  SetDefault("ns3::TcpSocket::DelAckCount", ns3::UintegerValue(2));
  SetDefault("ns3::TcpSocket::DelAckTimeout", ns3::TimeValue(ns3::MilliSeconds(40)));
  SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(kBufferBytes));
  SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(kBufferBytes));
}

TcpPush::TcpPush(const Scenario& scenario, Star& star)
    : scenario_(scenario),
      star_(star),
      senders_(scenario.senders),
      missing_bytes_(scenario.senders) {
  listen();
  for (std::size_t sender = 0; sender < scenario.senders; ++sender) {
    ns3::Simulator::Schedule(ns3::MilliSeconds(1), &TcpPush::connect, this, sender);
  }
}

void TcpPush::listen() {
  listener_ = ns3::Socket::CreateSocket(star_.host(0), ns3::TcpSocketFactory::GetTypeId());
  GP_ASSERT(listener_->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), kPort)) == 0);
  GP_ASSERT(listener_->Listen() == 0);
  listener_->SetAcceptCallback(
      ns3::MakeNullCallback<bool, ns3::Ptr<ns3::Socket>, const ns3::Address&>(),
      ns3::MakeCallback(&TcpPush::on_accepted, this));
}

void TcpPush::connect(std::size_t sender) {
  const auto socket =
      ns3::Socket::CreateSocket(star_.host(sender + 1), ns3::TcpSocketFactory::GetTypeId());
  senders_[sender] = socket;
  socket->TraceConnectWithoutContext("Tx", ns3::MakeCallback(&TcpPush::on_sent, this));
  GP_ASSERT(socket->Bind() == 0);
  const ns3::Ipv4Address receiver(Star::address_of(0).value);
  GP_ASSERT(socket->Connect(ns3::InetSocketAddress(receiver, kPort)) == 0);
}

void TcpPush::on_accepted(ns3::Ptr<ns3::Socket> socket, const ns3::Address& from) {
  const auto address = ns3::InetSocketAddress::ConvertFrom(from).GetIpv4();
  sender_of_[socket] = Star::host_of(Ipv4{address.Get()}) - 1;
  socket->SetRecvCallback(ns3::MakeCallback(&TcpPush::on_readable, this));
}

void TcpPush::begin(std::size_t sender, std::uint32_t) {
  missing_bytes_[sender] = scenario_.push_bytes;
  const auto bytes = static_cast<std::uint32_t>(scenario_.push_bytes);
  const int taken = senders_[sender]->Send(ns3::Create<ns3::Packet>(bytes));
  if (taken != static_cast<int>(bytes)) {
    failure_ = "sender " + std::to_string(sender) + " could not send: is its connection up?";
  }
}

void TcpPush::on_readable(ns3::Ptr<ns3::Socket> socket) {
  const std::size_t sender = sender_of_.at(socket);
  while (const ns3::Ptr<ns3::Packet> packet = socket->Recv()) {
    if (packet->GetSize() == 0) return;
    GP_ASSERT(packet->GetSize() <= missing_bytes_[sender]);
    missing_bytes_[sender] -= packet->GetSize();
    if (missing_bytes_[sender] == 0) rounds_->on_pushed(sender);
  }
}

void TcpPush::on_sent(ns3::Ptr<const ns3::Packet> payload, const ns3::TcpHeader&,
                      ns3::Ptr<const ns3::TcpSocketBase>) {
  sent_bytes_ += payload->GetSize();
}

void TcpPush::report(Outcome& outcome) const {
  if (outcome.failure.empty()) outcome.failure = failure_;
  outcome.needed_bytes = scenario_.push_bytes * scenario_.senders * outcome.rounds.size();
  outcome.repeated_bytes =
      sent_bytes_ > outcome.needed_bytes ? sent_bytes_ - outcome.needed_bytes : 0;
}

}  // namespace gradplane::ns3_incast
