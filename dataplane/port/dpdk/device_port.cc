// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/device_port.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <random>
#include <utility>

#include "dataplane/base/assert.h"
#include "dataplane/port/dpdk/eal.h"

namespace gradplane::port {
namespace {

static_assert(RTE_PKTMBUF_HEADROOM >= udp_headers_bytes(true), "headers go before the payload");

std::span<std::byte> bytes_of(rte_mbuf* frame) {
  return {rte_pktmbuf_mtod(frame, std::byte*), rte_pktmbuf_data_len(frame)};
}

ChecksumHint hint(std::uint64_t flags, std::uint64_t good, std::uint64_t bad) {
  if ((flags & (good | bad)) == good) return ChecksumHint::kGood;
  return (flags & (good | bad)) == bad ? ChecksumHint::kBad : ChecksumHint::kUnknown;
}

ChecksumHints checksum_hints(const rte_mbuf& frame) {
  return {.ip = hint(frame.ol_flags, RTE_MBUF_F_RX_IP_CKSUM_GOOD, RTE_MBUF_F_RX_IP_CKSUM_BAD),
          .udp = hint(frame.ol_flags, RTE_MBUF_F_RX_L4_CKSUM_GOOD, RTE_MBUF_F_RX_L4_CKSUM_BAD)};
}

void set_length(rte_mbuf* frame, std::size_t bytes) {
  rte_pktmbuf_data_len(frame) = static_cast<std::uint16_t>(bytes);
  rte_pktmbuf_pkt_len(frame) = static_cast<std::uint32_t>(bytes);
}

SubnetOptions subnet(const DpdkPortOptions& options) {
  std::random_device random;
  return {.address = options.address,
          .prefix_length = options.prefix_length,
          .gateway = options.gateway.value_or(Ipv4{}),
          .hash_seed = std::uint64_t{random()} << 32 | random()};
}

}  // namespace

DevicePort::DevicePort(const DpdkPortOptions& options, PortLock lock,
                       std::unique_ptr<Device> device, std::uint16_t mtu)
    : us_{.mac = device->mac(), .address = options.address, .vlan = options.vlan},
      mtu_(mtu),
      lock_(std::move(lock)),
      device_(std::move(device)),
      neighbours_(subnet(options)) {}

DevicePort::~DevicePort() = default;

std::size_t DevicePort::receive(std::span<RxDatagram> out) noexcept {
  attach_poll_thread();
  if (!device_->started()) return 0;
  std::array<rte_mbuf*, kMaxBurst> frames;
  const auto limit = static_cast<std::uint16_t>(std::min(out.size(), frames.size()));
  const std::uint16_t received = rte_eth_rx_burst(device_->id(), 0, frames.data(), limit);
  Batch replies;
  std::size_t count = 0;
  for (std::size_t i = 0; i < received; ++i) {
    if (take_frame(frames[i], out[count], replies)) ++count;
  }
  flush(replies);
  return count;
}

// True when the frame became `out`; else it is answered or gone.
bool DevicePort::take_frame(rte_mbuf* frame, RxDatagram& out, Batch& replies) noexcept {
  // A device that takes the tag out has to put it back: the stack reads it where the wire has it.
  const bool stripped = (frame->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0;
  ParsedFrame parsed;
  if (frame->nb_segs == 1 && (!stripped || rte_vlan_insert(&frame) == 0)) {
    parsed = parse_frame(bytes_of(frame), us_, checksum_hints(*frame));
  }
  switch (parsed.kind) {
    case FrameKind::kUdp:
      neighbours_.confirm(parsed.source.address, parsed.source_mac, now_);
      out = {.payload = parsed.payload,
             .source = parsed.source,
             .destination_udp_port = parsed.destination_udp_port,
             .congestion_experienced = parsed.congestion_experienced,
             .token = frame};
      ++counters_.rx_datagrams;
      counters_.rx_bytes += parsed.payload.size();
      return true;
    case FrameKind::kEchoRequest:
      turn_echo_around(bytes_of(frame), parsed, us_);
      frame->ol_flags = 0;
      replies.frames[replies.count++] = frame;
      return false;
    case FrameKind::kArp:
      if (!take_arp(frame, parsed, replies)) rte_pktmbuf_free(frame);
      return false;
    case FrameKind::kDropped:
      break;
  }
  drop(parsed.drop);
  rte_pktmbuf_free(frame);
  return false;
}

// True when the frame has become an answer.
bool DevicePort::take_arp(rte_mbuf* frame, const ParsedFrame& arp, Batch& replies) noexcept {
  if (arp.arp_sender == us_.address) {
    drop(PortDrop::kAddressConflict);
    if (now_ >= next_defence_) announcements_left_ = std::max(announcements_left_, 1u);
    return false;
  }
  const bool for_us = arp.arp_target == us_.address;
  neighbours_.learn(arp.arp_sender, arp.arp_sender_mac,
                    for_us ? Neighbours::Trust::kForUs : Neighbours::Trust::kKnownOnly, now_);
  if (!for_us || !arp.arp_is_request) return false;
  rte_pktmbuf_reset(frame);
  const std::span<std::byte> room{rte_pktmbuf_mtod(frame, std::byte*), kMaxArpFrameBytes};
  set_length(frame, write_arp(room, {.destination_mac = arp.source_mac,
                                     .vlan = us_.vlan,
                                     .is_request = false,
                                     .sender_mac = us_.mac,
                                     .sender = us_.address,
                                     .target_mac = arp.arp_sender_mac,
                                     .target = arp.arp_sender}));
  replies.frames[replies.count++] = frame;
  return true;
}

void DevicePort::release(std::span<RxDatagram> datagrams) noexcept {
  for (RxDatagram& d : datagrams) {
    GP_ASSERT(d.token != nullptr);
    rte_pktmbuf_free(static_cast<rte_mbuf*>(std::exchange(d.token, nullptr)));
    d.payload = {};
  }
}

bool DevicePort::allocate(TxDatagram& out) noexcept {
  attach_poll_thread();
  rte_mbuf* frame = rte_pktmbuf_alloc(device_->tx_pool());
  if (frame == nullptr) {
    drop(PortDrop::kNoBuffer);
    return false;
  }
  out = {};
  out.buffer = {rte_pktmbuf_mtod(frame, std::byte*), mtu_payload_bytes()};
  out.token = frame;
  return true;
}

void DevicePort::discard(TxDatagram& datagram) noexcept {
  GP_ASSERT(datagram.token != nullptr);
  rte_pktmbuf_free(static_cast<rte_mbuf*>(std::exchange(datagram.token, nullptr)));
  datagram.buffer = {};
}

std::size_t DevicePort::transmit(std::span<TxDatagram> datagrams) noexcept {
  std::size_t sent = 0;
  Batch batch;
  for (const TrafficClass turn : {TrafficClass::kControl, TrafficClass::kData}) {
    for (TxDatagram& d : datagrams) {
      if (d.token == nullptr || d.traffic_class != turn) continue;
      rte_mbuf* frame = frame_datagram(d);
      if (frame == nullptr) {
        discard(d);
        continue;
      }
      d.token = nullptr;
      d.buffer = {};
      batch.frames[batch.count++] = frame;
      if (batch.count == batch.frames.size()) sent += send_datagrams(batch);
    }
  }
  sent += send_datagrams(batch);
  send_questions();
  return sent;
}

std::size_t DevicePort::send_datagrams(Batch& batch) noexcept {
  const Sent sent = flush(batch);
  counters_.tx_datagrams += sent.count;
  counters_.tx_bytes += sent.frame_bytes - sent.count * udp_headers_bytes(us_.vlan.has_value());
  return sent.count;
}

// Null when it cannot go out; the reason is counted, the datagram still has its buffer.
rte_mbuf* DevicePort::frame_datagram(TxDatagram& d) noexcept {
  if (d.length_bytes > mtu_payload_bytes()) return drop(PortDrop::kTooLong), nullptr;
  const std::optional<Ipv4> hop = neighbours_.next_hop(d.destination.address);
  const MacAddress* mac = hop ? neighbours_.resolve(*hop, now_) : nullptr;
  if (mac == nullptr) return drop(PortDrop::kNoNeighbour), nullptr;
  auto* frame = static_cast<rte_mbuf*>(d.token);
  const std::span<const std::byte> payload{rte_pktmbuf_mtod(frame, std::byte*), d.length_bytes};
  set_length(frame, d.length_bytes);
  const std::size_t headers_bytes = udp_headers_bytes(us_.vlan.has_value());
  char* headers = rte_pktmbuf_prepend(frame, static_cast<std::uint16_t>(headers_bytes));
  const bool offload = device_->computes_udp_checksum();
  write_udp_headers({reinterpret_cast<std::byte*>(headers), headers_bytes},
                    {.source_mac = us_.mac,
                     .destination_mac = *mac,
                     .vlan = us_.vlan,
                     .source = {us_.address, d.source_udp_port},
                     .destination = d.destination,
                     .traffic_class = d.traffic_class},
                    payload, offload ? UdpChecksum::kDevice : UdpChecksum::kSoftware);
  if (offload) {
    frame->l2_len = (headers_bytes - kIpUdpBytes) & 0x7f;
    frame->l3_len = kIpv4Bytes;
    frame->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
  }
  return frame;
}

void DevicePort::tick(Instant now) noexcept {
  attach_poll_thread();
  now_ = now;
  if (announcements_left_ > 0 && now >= next_announcement_) announce();
  send_questions();
  if (may_be_held_back_) may_be_held_back_ = device_->push();
  if (now >= next_device_care_) care_for_device();
}

void DevicePort::care_for_device() noexcept {
  next_device_care_ = now_ + kDeviceCarePause;
  counters_.rx_missed = device_->missed_count();
  device_->reconnect();
}

void DevicePort::announce() noexcept {
  --announcements_left_;
  next_announcement_ = now_ + kAnnouncePause;
  next_defence_ = now_ + kDefendPause;
  send_arp({.destination_mac = kBroadcastMac,
            .vlan = us_.vlan,
            .is_request = true,
            .sender_mac = us_.mac,
            .sender = us_.address,
            .target_mac = {},
            .target = us_.address});
}

void DevicePort::send_questions() noexcept {
  if (now_ < neighbours_.next_deadline()) return;
  std::array<Neighbours::Question, kMaxQuestionsPerTick> questions;
  const std::size_t count = neighbours_.due(now_, questions);
  for (const Neighbours::Question& q : std::span(questions).first(count)) {
    send_arp({.destination_mac = q.ask_only.value_or(kBroadcastMac),
              .vlan = us_.vlan,
              .is_request = true,
              .sender_mac = us_.mac,
              .sender = us_.address,
              .target_mac = {},
              .target = q.target});
  }
}

void DevicePort::send_arp(const ArpFrame& arp) noexcept {
  rte_mbuf* frame = rte_pktmbuf_alloc(device_->tx_pool());
  if (frame == nullptr) return drop(PortDrop::kNoBuffer);
  const std::span<std::byte> room{rte_pktmbuf_mtod(frame, std::byte*), kMaxArpFrameBytes};
  set_length(frame, write_arp(room, arp));
  Batch batch;
  batch.frames[batch.count++] = frame;
  flush(batch);
}

// What the device did not take is counted and gone.
DevicePort::Sent DevicePort::flush(Batch& batch) noexcept {
  if (batch.count == 0) return {};
  const auto count = static_cast<std::uint16_t>(batch.count);
  batch.count = 0;
  std::uint16_t ready = device_->started() ? count : std::uint16_t{0};
  if (device_->computes_udp_checksum()) {
    ready = rte_eth_tx_prepare(device_->id(), 0, batch.frames.data(), ready);
  }
  Sent sent;
  for (std::size_t i = 0; i < ready; ++i) sent.frame_bytes += rte_pktmbuf_pkt_len(batch.frames[i]);
  std::uint16_t taken = 0;
  if (ready > 0) taken = rte_eth_tx_burst(device_->id(), 0, batch.frames.data(), ready);
  may_be_held_back_ = true;
  for (std::size_t i = taken; i < count; ++i) {
    if (i < ready) sent.frame_bytes -= rte_pktmbuf_pkt_len(batch.frames[i]);
    drop(PortDrop::kTxFull);
    rte_pktmbuf_free(batch.frames[i]);
  }
  sent.count = taken;
  return sent;
}

}  // namespace gradplane::port
