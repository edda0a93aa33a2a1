// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/network.h"

#include <algorithm>

namespace gradplane::sim {
namespace {

constexpr std::size_t kFrameOverheadBytes = 66;

}  // namespace

std::uint16_t Network::add_host(Ipv4 address) {
  hosts_.push_back({});
  hosts_.back().address = address;
  return static_cast<std::uint16_t>(hosts_.size() - 1);
}

Duration Network::wire_time(std::size_t payload_bytes) const {
  if (model_.bits_per_second == 0) return {};
  const double bits = static_cast<double>(payload_bytes + kFrameOverheadBytes) * 8;
  return Duration::ns(
      static_cast<std::int64_t>(bits * 1e9 / static_cast<double>(model_.bits_per_second)));
}

void Network::send(std::uint16_t from, Endpoint to, std::uint16_t source_port,
                   std::vector<std::byte> bytes, Instant now) {
  ++sent_;
  Host& sender = hosts_[from];
  const auto target = std::find_if(hosts_.begin(), hosts_.end(),
                                   [&](const Host& h) { return h.address == to.address; });
  sender.uplink_free = std::max(sender.uplink_free, now) + wire_time(bytes.size());
  const auto to_host = static_cast<std::uint16_t>(target - hosts_.begin());
  if (target == hosts_.end() || is_lost(from, to_host, bytes, now)) {
    ++dropped_;
    return;
  }
  if (model_.forge) forge(from, to_host, bytes);
  if (chance(model_.corruption)) {
    const std::size_t at = random_() % bytes.size();
    bytes[at] ^= static_cast<std::byte>(1U << (random_() % 8));
  }
  auto datagram = std::make_shared<Datagram>();
  datagram->bytes = std::move(bytes);
  datagram->source = {sender.address, source_port};
  datagram->destination_port = to.udp_port;
  const int copies = chance(model_.duplication) ? 2 : 1;
  for (int c = 0; c < copies; ++c) {
    Duration delay = delay_at(now);
    if (model_.jitter > Duration{}) {
      const auto span = static_cast<std::uint64_t>(model_.jitter.count_ns());
      delay += Duration::ns(static_cast<std::int64_t>(random_() % span));
    }
    events_.push({.at = sender.uplink_free + delay,
                  .order = order_++,
                  .to = to_host,
                  .at_switch = true,
                  .datagram = datagram});
  }
}

void Network::forge(std::uint16_t from, std::uint16_t to, std::span<std::byte> bytes) {
  auto packet = testing::see(bytes);
  if (!packet) return;
  model_.forge(from, to, *packet);
  wire::write_envelope(bytes, *packet);
}

bool Network::is_lost(std::uint16_t from, std::uint16_t to, std::span<const std::byte> bytes,
                      Instant now) {
  if (chance(model_.loss)) return true;
  for (const HostFault& fault : model_.host_faults) {
    if (fault.host != from && fault.host != to) continue;
    if (now >= fault.cut_from && now < fault.cut_until) return true;
    if (chance(fault.host == from ? fault.loss_sent : fault.loss_received)) return true;
  }
  if (!model_.lose) return false;
  const auto packet = testing::see(bytes);
  return packet && model_.lose(from, to, *packet);
}

bool Network::lost_in_burst(Host& host) {
  if (!model_.bursts) return false;
  host.in_burst = chance(host.in_burst ? 1 - model_.bursts->leave : model_.bursts->enter);
  return host.in_burst && chance(model_.bursts->loss);
}

Duration Network::delay_at(Instant now) const {
  Duration delay = model_.delay;
  for (const DelayJump& jump : model_.delay_jumps) {
    if (now >= jump.at) delay = jump.delay;
  }
  return delay;
}

void Network::heal() {
  model_.loss = model_.duplication = model_.corruption = 0;
  model_.jitter = {};
  model_.queue_bytes = SIZE_MAX;
  model_.bursts.reset();
  model_.host_faults.clear();
  model_.lose = nullptr;
}

void Network::leave_switch(Flight flight) {
  Host& host = hosts_[flight.to];
  if (lost_in_burst(host)) {
    ++dropped_;
    return;
  }
  const Duration backlog = std::max(host.downlink_free, flight.at) - flight.at;
  const double queued = backlog.to_seconds() * static_cast<double>(model_.bits_per_second) / 8;
  if (queued > static_cast<double>(model_.queue_bytes)) {
    ++dropped_;
    return;
  }
  if (model_.mark_bytes > 0 && queued >= static_cast<double>(model_.mark_bytes)) {
    flight.datagram->marked = true;
  }
  host.downlink_free =
      std::max(host.downlink_free, flight.at) + wire_time(flight.datagram->bytes.size());
  flight.at = host.downlink_free;
  flight.at_switch = false;
  flight.order = order_++;
  events_.push(std::move(flight));
}

std::size_t SimPort::receive(std::span<port::RxDatagram> out) noexcept {
  auto& inbox = network_.inbox(host_);
  std::size_t count = 0;
  for (; count < out.size() && !inbox.empty(); ++count) {
    lent_.push_back(inbox.front());
    inbox.pop_front();
    out[count] = {.payload = lent_.back()->bytes,
                  .source = lent_.back()->source,
                  .destination_udp_port = lent_.back()->destination_port,
                  .congestion_experienced = lent_.back()->marked};
    ++counters_.rx_datagrams;
    counters_.rx_bytes += lent_.back()->bytes.size();
  }
  return count;
}

void SimPort::release(std::span<port::RxDatagram>) noexcept {
  lent_.clear();
}

bool SimPort::allocate(port::TxDatagram& out) noexcept {
  auto* bytes = new std::vector<std::byte>(kMaxDatagramBytes);
  out = {};
  out.buffer = *bytes;
  out.token = bytes;
  return true;
}

void SimPort::discard(port::TxDatagram& datagram) noexcept {
  delete static_cast<std::vector<std::byte>*>(datagram.token);
}

std::size_t SimPort::transmit(std::span<port::TxDatagram> datagrams) noexcept {
  for (port::TxDatagram& datagram : datagrams) {
    auto* bytes = static_cast<std::vector<std::byte>*>(datagram.token);
    bytes->resize(datagram.length_bytes);
    ++counters_.tx_datagrams;
    counters_.tx_bytes += datagram.length_bytes;
    network_.send(host_, datagram.destination, datagram.source_udp_port, std::move(*bytes), clock_);
    delete bytes;
  }
  return datagrams.size();
}

}  // namespace gradplane::sim
