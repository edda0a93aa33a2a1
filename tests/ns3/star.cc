// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/ns3/star.h"

#include <ns3/boolean.h>
#include <ns3/data-rate.h>
#include <ns3/double.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-address-helper.h>
#include <ns3/ipv4-static-routing-helper.h>
#include <ns3/point-to-point-helper.h>
#include <ns3/string.h>
#include <ns3/traffic-control-helper.h>

#include <algorithm>
#include <string>

namespace gradplane::ns3_incast {
namespace {

/// The queue in a host, which holds what a window allows at once. It is host memory and is not
/// measured.
constexpr const char* kHostQueue = "100000p";
/// Every host has a subnet with four addresses: one for itself, and one for the switch.
constexpr std::uint32_t kFirstNetwork = 0x0a000000;
constexpr std::uint32_t kNetworkAddresses = 4;

/// The queue before the receiver's link. Marks need a queue discipline, because a device's queue
/// has none.
ns3::TrafficControlHelper bottleneck(const Scenario& scenario) {
  ns3::TrafficControlHelper helper;
  const ns3::StringValue size(ns3_host::bytes_text(scenario.queue_bytes));
  if (scenario.mark_bytes == 0) {
    helper.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", size);
    return helper;
  }
  // RED without averaging, which marks everything above one threshold (RFC 8257, section 3.1).
  const auto threshold = static_cast<double>(scenario.mark_bytes);
  helper.SetRootQueueDisc(
      "ns3::RedQueueDisc", "MaxSize", size, "MinTh", ns3::DoubleValue(threshold), "MaxTh",
      ns3::DoubleValue(threshold), "UseEcn", ns3::BooleanValue(true), "UseHardDrop",
      ns3::BooleanValue(false), "Gentle", ns3::BooleanValue(false), "QW", ns3::DoubleValue(1),
      "LinkBandwidth", ns3::DataRateValue(ns3::DataRate(scenario.link_bits_per_second)),
      "LinkDelay", ns3::TimeValue(time_of(scenario.link_delay)));
  return helper;
}

ns3::PointToPointHelper link(const Scenario& scenario) {
  ns3::PointToPointHelper helper;
  helper.SetChannelAttribute("Delay", ns3::TimeValue(time_of(scenario.link_delay)));
  // The queue discipline is the queue. The device holds only the frame that is sent, and the next.
  helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns3::StringValue("1p"));
  return helper;
}

}  // namespace

Star::Star(const Scenario& scenario) : switch_(ns3::CreateObject<ns3::Node>()) {
  hosts_.Create(static_cast<std::uint32_t>(scenario.senders + 1));
  ns3::InternetStackHelper stack;
  stack.SetRoutingHelper(ns3::Ipv4StaticRoutingHelper());
  stack.SetIpv6StackInstall(false);
  stack.Install(hosts_);
  stack.Install(switch_);
  for (std::size_t host = 0; host <= scenario.senders; ++host) connect(host, scenario);
  queue_->TraceConnectWithoutContext("BytesInQueue", ns3::MakeCallback(&Star::note_depth, this));
}

void Star::connect(std::size_t index, const Scenario& scenario) {
  ns3::PointToPointHelper helper = link(scenario);
  const ns3::NetDeviceContainer ends = helper.Install(host(index), switch_);
  for (std::uint32_t end = 0; end < 2; ++end)
    ns3_host::set_rate(ends.Get(end), scenario.link_bits_per_second);
  ns3::TrafficControlHelper plain;
  plain.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", ns3::StringValue(kHostQueue));
  others_.Add(plain.Install(ends.Get(0)));
  if (index == 0) {
    queue_ = bottleneck(scenario).Install(ends.Get(1)).Get(0);
  } else {
    others_.Add(plain.Install(ends.Get(1)));
  }
  ns3::Ipv4AddressHelper addresses;
  const std::uint32_t own = address_of(index).value;
  addresses.SetBase(ns3::Ipv4Address(own - 1), ns3::Ipv4Mask(~(kNetworkAddresses - 1)));
  const ns3::Ipv4InterfaceContainer interfaces = addresses.Assign(ends);
  ns3::Ipv4StaticRoutingHelper routes;
  routes.GetStaticRouting(host(index)->GetObject<ns3::Ipv4>())
      ->SetDefaultRoute(interfaces.GetAddress(1), 1);
}

Ipv4 Star::address_of(std::size_t host) {
  return {kFirstNetwork + kNetworkAddresses * static_cast<std::uint32_t>(host) + 1};
}

std::size_t Star::host_of(Ipv4 address) {
  return (address.value - kFirstNetwork) / kNetworkAddresses;
}

void Star::note_depth(std::uint32_t, std::uint32_t now) {
  deepest_bytes_ = std::max(deepest_bytes_, now);
}

void Star::report(Outcome& outcome) const {
  const ns3::QueueDisc::Stats& stats = queue_->GetStats();
  outcome.drops = stats.nTotalDroppedPackets;
  outcome.marks = stats.nTotalMarkedPackets;
  outcome.deepest_bytes = deepest_bytes_;
  for (auto disc = others_.Begin(); disc != others_.End(); ++disc) {
    outcome.drops_elsewhere += (*disc)->GetStats().nTotalDroppedPackets;
  }
}

}  // namespace gradplane::ns3_incast
