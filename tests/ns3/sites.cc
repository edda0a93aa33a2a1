// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/ns3/sites.h"

#include <ns3/double.h>
#include <ns3/error-model.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-address-helper.h>
#include <ns3/ipv4-global-routing-helper.h>
#include <ns3/point-to-point-helper.h>
#include <ns3/pointer.h>
#include <ns3/queue-disc.h>
#include <ns3/string.h>
#include <ns3/traffic-control-helper.h>

#include <algorithm>

#include "tests/ns3/links.h"

namespace gradplane::ns3_wan {
namespace {

/// The queue in a host, which holds what a window allows at once. It is host memory and is not
/// measured.
constexpr const char* kHostQueue = "1000000p";
/// The rate between a host and its router: faster than any link between sites.
constexpr std::uint64_t kHostBitsPerSecond = 100'000'000'000;
/// Every link has a subnet with four addresses. Those of hosts have the first range.
constexpr std::uint32_t kHostNetworks = 0x0a000000;
constexpr std::uint32_t kLinkNetworks = 0x0b000000;
constexpr std::uint32_t kNetworkAddresses = 4;

void assign(const ns3::NetDeviceContainer& ends, std::uint32_t network) {
  ns3::Ipv4AddressHelper addresses;
  addresses.SetBase(ns3::Ipv4Address(network), ns3::Ipv4Mask(~(kNetworkAddresses - 1)));
  addresses.Assign(ends);
}

ns3::QueueDiscContainer add_queues(const ns3::NetDeviceContainer& ends, const std::string& size) {
  ns3::TrafficControlHelper helper;
  helper.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", ns3::StringValue(size));
  return helper.Install(ends);
}

ns3::PointToPointHelper wire(Duration delay) {
  ns3::PointToPointHelper helper;
  helper.SetChannelAttribute("Delay", ns3::TimeValue(ns3_host::time_of(delay)));
  // The queue discipline is the queue. The device holds only the frame that is sent, and the next.
  helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns3::StringValue("1p"));
  return helper;
}

/// Loses packets that arrive at this end at random.
void set_loss(const ns3::Ptr<ns3::NetDevice>& end, const plan::Link& link) {
  const double share = link.bits_per_s == 0 ? 1 : link.loss_ppm / 1e6;
  if (share == 0) return;
  const auto errors = ns3::CreateObject<ns3::RateErrorModel>();
  errors->SetUnit(ns3::RateErrorModel::ERROR_UNIT_PACKET);
  errors->SetRate(share);
  end->SetAttribute("ReceiveErrorModel", ns3::PointerValue(errors));
}

}  // namespace

Sites::Sites(const plan::Network& network, std::size_t queue_bytes) {
  hosts_.Create(static_cast<std::uint32_t>(network.sites.size()));
  routers_.Create(static_cast<std::uint32_t>(network.sites.size()));
  ns3::InternetStackHelper stack;
  stack.SetIpv6StackInstall(false);
  stack.Install(hosts_);
  stack.Install(routers_);
  for (std::size_t site = 0; site < network.sites.size(); ++site) connect_host(site);
  for (const plan::Link& there : network.links) {
    if (there.from > there.to) continue;
    const auto back =
        std::find_if(network.links.begin(), network.links.end(),
                     [&](const plan::Link& l) { return l.from == there.to && l.to == there.from; });
    if (back != network.links.end()) connect(there, *back, queue_bytes);
  }
  ns3::Ipv4GlobalRoutingHelper::PopulateRoutingTables();
}

void Sites::connect_host(std::size_t site) {
  ns3::PointToPointHelper helper = wire(Duration{});
  const auto ends = helper.Install(host(site), routers_.Get(static_cast<std::uint32_t>(site)));
  for (std::uint32_t end = 0; end < 2; ++end) ns3_host::set_rate(ends.Get(end), kHostBitsPerSecond);
  add_queues(ends, kHostQueue);
  assign(ends, address_of(site).value - 1);
}

void Sites::connect(const plan::Link& there, const plan::Link& back, std::size_t queue_bytes) {
  ns3::PointToPointHelper helper = wire(there.rtt / 2);
  const auto ends = helper.Install(routers_.Get(there.from), routers_.Get(there.to));
  const plan::Link* links[2] = {&there, &back};
  for (std::uint32_t end = 0; end < 2; ++end) {
    ns3_host::set_rate(ends.Get(end), std::max<std::uint64_t>(links[end]->bits_per_s, 1'000'000));
    set_loss(ends.Get(1 - end), *links[end]);
  }
  queues_.Add(add_queues(ends, ns3_host::bytes_text(queue_bytes)));
  assign(ends, kLinkNetworks + kNetworkAddresses * links_++);
}

Ipv4 Sites::address_of(std::size_t site) {
  return {kHostNetworks + kNetworkAddresses * static_cast<std::uint32_t>(site) + 1};
}

std::uint64_t Sites::drops() const {
  std::uint64_t drops = 0;
  for (auto queue = queues_.Begin(); queue != queues_.End(); ++queue)
    drops += (*queue)->GetStats().nTotalDroppedPackets;
  return drops;
}

}  // namespace gradplane::ns3_wan
