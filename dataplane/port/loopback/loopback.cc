// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/loopback/loopback.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "dataplane/base/assert.h"

namespace gradplane::port {
namespace {

Status check(std::span<const Ipv4> addresses, const LoopbackOptions& o) {
  if (Status s = port::check(o.steering); !s) return s;
  if (addresses.empty() || addresses.size() > kMaxNodes) {
    return Error{"loopback network: " + std::to_string(addresses.size()) +
                 " addresses; give 1 to " + std::to_string(kMaxNodes)};
  }
  if (o.mtu_payload_bytes == 0 || o.mtu_payload_bytes > kMaxLoopbackPayloadBytes) {
    return Error{"loopback network: mtu_payload_bytes " + std::to_string(o.mtu_payload_bytes) +
                 " is not in 1.." + std::to_string(kMaxLoopbackPayloadBytes)};
  }
  if (o.waiting_count < 2 || o.waiting_count > kMaxLoopbackWaiting ||
      !std::has_single_bit(o.waiting_count)) {
    return Error{"loopback network: waiting_count " + std::to_string(o.waiting_count) +
                 " is not a power of two in 2.." + std::to_string(kMaxLoopbackWaiting)};
  }
  if (o.tx_buffer_count == 0 || o.tx_buffer_count > kMaxLoopbackWaiting) {
    return Error{"loopback network: tx_buffer_count " + std::to_string(o.tx_buffer_count) +
                 " is not in 1.." + std::to_string(kMaxLoopbackWaiting)};
  }
  return Nothing{};
}

}  // namespace

class LoopbackQueue final : public PortQueue {
 public:
  LoopbackQueue(LoopbackNetwork& network, LoopbackNetwork::Station& station, std::size_t index)
      : network_(network),
        station_(station),
        inbox_(*station.inboxes[index]),
        payload_bytes_(network.options_.mtu_payload_bytes),
        buffers_(std::make_unique_for_overwrite<std::byte[]>(network.options_.tx_buffer_count *
                                                             payload_bytes_)) {
    for (std::size_t i = 0; i < network.options_.tx_buffer_count; ++i) {
      free_buffers_.push_back(buffers_.get() + i * payload_bytes_);
    }
  }

  std::size_t receive(std::span<RxDatagram> out) noexcept override {
    const std::size_t limit = std::min(out.size(), kMaxBurst);
    std::size_t count = 0;
    Mailbox::Taken taken;
    while (count < limit && (inbox_.control.take(taken) || inbox_.data.take(taken))) {
      out[count++] = {.payload = taken.letter.payload,
                      .source = taken.letter.source,
                      .destination_udp_port = taken.letter.destination_udp_port,
                      .congestion_experienced = false,
                      .token = taken.token};
      counters_.rx_bytes += taken.letter.payload.size();
    }
    counters_.rx_datagrams += count;
    return count;
  }

  void release(std::span<RxDatagram> datagrams) noexcept override {
    for (RxDatagram& d : datagrams) {
      GP_ASSERT(d.token != nullptr);
      Mailbox::give_back(std::exchange(d.token, nullptr));
      d.payload = {};
    }
  }

  bool allocate(TxDatagram& out) noexcept override {
    if (free_buffers_.empty()) {
      drop(PortDrop::kNoBuffer);
      return false;
    }
    std::byte* buffer = free_buffers_.back();
    free_buffers_.pop_back();
    out = {};
    out.buffer = {buffer, payload_bytes_};
    out.token = buffer;
    return true;
  }

  void discard(TxDatagram& datagram) noexcept override {
    GP_ASSERT(datagram.token != nullptr);
    free_buffers_.push_back(static_cast<std::byte*>(std::exchange(datagram.token, nullptr)));
    datagram.buffer = {};
  }

  std::size_t transmit(std::span<TxDatagram> datagrams) noexcept override {
    std::size_t sent = 0;
    for (const TrafficClass turn : {TrafficClass::kControl, TrafficClass::kData}) {
      for (TxDatagram& d : datagrams) {
        if (d.token == nullptr || d.traffic_class != turn) continue;
        if (d.payload_bytes() > payload_bytes_) {
          drop(PortDrop::kTooLong);
        } else {
          d.copy_lent();
          if (send(d)) ++sent;
        }
        discard(d);
      }
    }
    return sent;
  }

  void tick(Instant) noexcept override {}
  const PortCounters& counters() const noexcept override { return counters_; }

 private:
  bool send(const TxDatagram& d) noexcept {
    if (!(d.destination.is_group() ? send_to_group(d) : send_to_node(d))) return false;
    ++counters_.tx_datagrams;
    counters_.tx_bytes += d.length_bytes;
    return true;
  }

  bool send_to_node(const TxDatagram& d) noexcept {
    LoopbackNetwork::Station* to = network_.find(d.destination.endpoint().address);
    if (to == nullptr || !to->open.load(std::memory_order_acquire)) {
      return drop(PortDrop::kNoNeighbour);
    }
    return post(*to, d) || drop(PortDrop::kTxFull);
  }

  /// The datagram counts as sent even if nobody is in the group. Each member without room counts as
  /// a drop.
  bool send_to_group(const TxDatagram& d) noexcept {
    for (const auto& to : network_.stations_) {
      if (to.get() == &station_ || !to->groups.has(d.destination.group())) continue;
      if (to->open.load(std::memory_order_acquire) && !post(*to, d)) drop(PortDrop::kTxFull);
    }
    return true;
  }

  bool post(LoopbackNetwork::Station& to, const TxDatagram& d) noexcept {
    const std::uint16_t udp_port = d.destination.endpoint().udp_port;
    return to.inboxes[network_.options_.steering.queue_of(udp_port)]
        ->mailbox(d.traffic_class)
        .post({.payload = {static_cast<const std::byte*>(d.token), d.length_bytes},
               .source = {station_.address, d.source_udp_port},
               .destination_udp_port = udp_port});
  }

  bool drop(PortDrop reason) noexcept {
    ++counters_.drops[static_cast<std::size_t>(reason)];
    return false;
  }

  LoopbackNetwork& network_;
  LoopbackNetwork::Station& station_;
  LoopbackNetwork::Inbox& inbox_;
  std::size_t payload_bytes_;
  std::unique_ptr<std::byte[]> buffers_;
  std::vector<std::byte*> free_buffers_;  // never grows beyond its initial size
  PortCounters counters_;
};

class LoopbackPort final : public Port {
 public:
  LoopbackPort(std::shared_ptr<LoopbackNetwork> network, LoopbackNetwork::Station& station)
      : network_(std::move(network)), station_(station) {
    for (std::size_t q = 0; q < station.inboxes.size(); ++q) {
      queues_.push_back(std::make_unique<LoopbackQueue>(*network_, station, q));
    }
  }

  ~LoopbackPort() override {
    station_.groups.leave_all();
    station_.open.store(false, std::memory_order_release);
  }

  std::size_t queue_count() const noexcept override { return queues_.size(); }
  PortQueue& queue(std::size_t index) noexcept override {
    GP_ASSERT(index < queues_.size());
    return *queues_[index];
  }
  Status join_group(const Group& group) override { return station_.groups.join(group); }
  void leave_group(const Group& group) override { (void)station_.groups.leave(group); }
  std::size_t mtu_payload_bytes() const noexcept override {
    return network_->options_.mtu_payload_bytes;
  }
  Ipv4 address() const noexcept override { return station_.address; }

 private:
  std::shared_ptr<LoopbackNetwork> network_;
  LoopbackNetwork::Station& station_;
  std::vector<std::unique_ptr<LoopbackQueue>> queues_;
};

LoopbackNetwork::Station::Station(Ipv4 a, const LoopbackOptions& o) : address(a) {
  for (std::size_t q = 0; q < o.steering.queue_count; ++q) {
    inboxes.push_back(std::make_unique<Inbox>(o));
  }
}

Result<std::shared_ptr<LoopbackNetwork>> LoopbackNetwork::create(std::span<const Ipv4> addresses,
                                                                 const LoopbackOptions& options) {
  if (Status ok = check(addresses, options); !ok) return ok.error();
  std::vector<Ipv4> sorted(addresses.begin(), addresses.end());
  std::sort(sorted.begin(), sorted.end());
  if (const auto twin = std::adjacent_find(sorted.begin(), sorted.end()); twin != sorted.end()) {
    return Error{"loopback network: address " + to_text(*twin) + " is given twice"};
  }
  std::shared_ptr<LoopbackNetwork> network(new LoopbackNetwork(options));
  for (const Ipv4 a : sorted) network->stations_.push_back(std::make_unique<Station>(a, options));
  return network;
}

Result<std::unique_ptr<Port>> LoopbackNetwork::open(Ipv4 address) {
  Station* station = find(address);
  if (station == nullptr) {
    return Error{"loopback port: address " + to_text(address) + " is not on this network"};
  }
  if (station->open.load(std::memory_order_acquire)) {
    return Error{"loopback port: address " + to_text(address) + " is open already"};
  }
  for (const auto& inbox : station->inboxes) {
    for (Mailbox* box : {&inbox->control, &inbox->data}) {
      Mailbox::Taken stale;
      while (box->take(stale)) Mailbox::give_back(stale.token);
    }
  }
  std::unique_ptr<Port> port = std::make_unique<LoopbackPort>(shared_from_this(), *station);
  station->open.store(true, std::memory_order_release);
  return port;
}

LoopbackNetwork::Station* LoopbackNetwork::find(Ipv4 address) noexcept {
  const auto at = std::lower_bound(
      stations_.begin(), stations_.end(), address,
      [](const std::unique_ptr<Station>& s, Ipv4 wanted) { return s->address < wanted; });
  return at != stations_.end() && (*at)->address == address ? at->get() : nullptr;
}

Result<std::unique_ptr<Port>> open_lonely_loopback(Ipv4 address, const LoopbackOptions& options) {
  auto network = LoopbackNetwork::create(std::span(&address, 1), options);
  if (!network) return network.error();
  return network.value()->open(address);
}

}  // namespace gradplane::port
