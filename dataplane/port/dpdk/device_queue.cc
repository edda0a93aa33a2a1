// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/device_queue.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <utility>

#include "dataplane/base/assert.h"
#include "dataplane/port/dpdk/eal.h"

namespace gradplane::port {
namespace {

static_assert(RTE_PKTMBUF_HEADROOM >= udp_headers_bytes(true), "headers go before the payload");

/// How many frames ahead headers are prefetched.
constexpr std::size_t kPrefetchAhead = 3;

void prefetch(const rte_mbuf* frame) {
  rte_prefetch0(rte_pktmbuf_mtod(frame, const void*));
}

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

}  // namespace

DeviceQueue::DeviceQueue(const DeviceShare& share, std::uint16_t index, const SubnetOptions& subnet)
    : share_(share),
      us_(share.us),
      device_(share.device),
      index_(index),
      buffers_(share.device.pools_of(index)),
      segments_(share.device.pools_of(index).segments(), share.device.dma_memory()),
      neighbours_(subnet),
      reports_(share.report_seed),
      announcements_left_(index == 0 ? kAnnouncements : 0) {}

std::size_t DeviceQueue::receive(std::span<RxDatagram> out) noexcept {
  attach_poll_thread();
  std::array<rte_mbuf*, kMaxBurst> frames;
  const std::size_t limit = std::min(out.size(), frames.size());
  const std::size_t handed = share_.handover.take(index_, std::span(frames).first(limit));
  std::size_t received = handed;
  if (received < limit && device_.may_burst(index_)) {
    received += rte_eth_rx_burst(device_.id(), index_, frames.data() + handed,
                                 static_cast<std::uint16_t>(limit - handed));
  }
  Batch replies;
  std::size_t count = 0;
  for (std::size_t i = 0; i < received; ++i) {
    if (i + kPrefetchAhead < received) prefetch(frames[i + kPrefetchAhead]);
    const Way way = i < handed ? Way::kHandover : Way::kDevice;
    if (take_frame(frames[i], way, out[count], replies)) ++count;
  }
  flush(replies);
  return count;
}

// Takes a received frame. True if it became `out`; otherwise it was answered, handed over or freed.
bool DeviceQueue::take_frame(rte_mbuf* frame, Way way, RxDatagram& out, Batch& replies) noexcept {
  // The parser reads the VLAN tag in the frame, so a tag that the device has stripped is put back.
  const bool stripped = (frame->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0;
  ParsedFrame parsed;
  if (frame->nb_segs == 1 && (!stripped || rte_vlan_insert(&frame) == 0)) {
    parsed = parse_frame(bytes_of(frame), us_, checksum_hints(*frame));
  }
  switch (parsed.kind) {
    case FrameKind::kUdp:
      if (const std::size_t queue = share_.steering.queue_of(parsed.destination_udp_port);
          queue != index_) {
        hand_over(frame, queue);
        return false;
      }
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
      if (!take_arp(frame, way, parsed, replies)) rte_pktmbuf_free(frame);
      return false;
    case FrameKind::kGroupQuery:
      if (index_ != 0) {
        hand_over(frame, 0);
        return false;
      }
      reports_.hear(parsed.query, now_);
      counters_.igmp_version = static_cast<std::uint64_t>(parsed.query.version);
      rte_pktmbuf_free(frame);
      return false;
    case FrameKind::kDropped:
      break;
  }
  drop(parsed.drop);
  rte_pktmbuf_free(frame);
  return false;
}

void DeviceQueue::hand_over(rte_mbuf* frame, std::size_t queue) noexcept {
  if (share_.handover.give(index_, queue, frame)) {
    ++counters_.handed_over;
    return;
  }
  drop(PortDrop::kQueueFull);
  rte_pktmbuf_free(frame);
}

// Copies an ARP packet to the other queues, because only one queue receives the reply to a request
// of another. If a copy is lost, the request is repeated.
void DeviceQueue::tell_others(rte_mbuf* frame) noexcept {
  for (std::size_t q = 0; q < device_.queue_count(); ++q) {
    if (q == index_) continue;
    rte_mbuf* copy = rte_pktmbuf_copy(frame, frame->pool, 0, UINT32_MAX);
    if (copy == nullptr) return drop(PortDrop::kNoBuffer);
    hand_over(copy, q);
  }
}

// Takes an ARP packet. True if the frame has become a reply in `replies`.
bool DeviceQueue::take_arp(rte_mbuf* frame, Way way, const ParsedFrame& arp,
                           Batch& replies) noexcept {
  const bool is_first = way == Way::kDevice;
  if (is_first) tell_others(frame);
  if (arp.arp_sender == us_.address) {
    if (is_first) drop(PortDrop::kAddressConflict);
    if (index_ == 0 && now_ >= next_defence_)
      announcements_left_ = std::max(announcements_left_, 1u);
    return false;
  }
  const bool for_us = arp.arp_target == us_.address;
  neighbours_.learn(arp.arp_sender, arp.arp_sender_mac,
                    for_us ? Neighbours::Trust::kForUs : Neighbours::Trust::kKnownOnly, now_);
  if (!is_first || !for_us || !arp.arp_is_request) return false;
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

void DeviceQueue::release(std::span<RxDatagram> datagrams) noexcept {
  for (RxDatagram& d : datagrams) {
    GP_ASSERT(d.token != nullptr);
    rte_pktmbuf_free(static_cast<rte_mbuf*>(std::exchange(d.token, nullptr)));
    d.payload = {};
  }
}

bool DeviceQueue::allocate(TxDatagram& out) noexcept {
  attach_poll_thread();
  rte_mbuf* frame = rte_pktmbuf_alloc(buffers_.tx());
  if (frame == nullptr) {
    drop(PortDrop::kNoBuffer);
    return false;
  }
  out = {};
  out.buffer = {rte_pktmbuf_mtod(frame, std::byte*), share_.payload_bytes()};
  out.token = frame;
  return true;
}

void DeviceQueue::discard(TxDatagram& datagram) noexcept {
  GP_ASSERT(datagram.token != nullptr);
  rte_pktmbuf_free(static_cast<rte_mbuf*>(std::exchange(datagram.token, nullptr)));
  datagram.buffer = {};
}

std::size_t DeviceQueue::transmit(std::span<TxDatagram> datagrams) noexcept {
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

std::size_t DeviceQueue::send_datagrams(Batch& batch) noexcept {
  const Sent sent = flush(batch);
  counters_.tx_datagrams += sent.count;
  counters_.tx_bytes += sent.frame_bytes - sent.count * udp_headers_bytes(us_.vlan.has_value());
  return sent.count;
}

std::size_t DeviceQueue::lends_from_bytes() const noexcept {
  return segments_.can_lend() ? kLendsFromBytes : SIZE_MAX;
}

// Null when it cannot go out; the reason is counted, the datagram still has its buffer.
rte_mbuf* DeviceQueue::frame_datagram(TxDatagram& d) noexcept {
  if (d.payload_bytes() > share_.payload_bytes()) return drop(PortDrop::kTooLong), nullptr;
  MacAddress mac;
  if (!resolve(d.destination, mac)) return drop(PortDrop::kNoNeighbour), nullptr;
  const std::size_t tail_bytes = d.length_bytes - d.lent_at_bytes;
  rte_mbuf_ext_shared_info* const uses =
      d.lent.empty() ? nullptr : segments_.uses_of(d.lent, tail_bytes);
  if (uses == nullptr) d.copy_lent();
  auto* frame = static_cast<rte_mbuf*>(d.token);
  const auto written = std::span<const std::byte>(d.buffer).first(d.length_bytes);
  const Payload payload =
      d.lent.empty() ? Payload{written}
                     : Payload{written.first(d.lent_at_bytes), d.lent, written.last(tail_bytes)};
  set_length(frame, d.length_bytes);
  const std::size_t headers_bytes = udp_headers_bytes(us_.vlan.has_value());
  char* headers = rte_pktmbuf_prepend(frame, static_cast<std::uint16_t>(headers_bytes));
  const bool offload = device_.computes_udp_checksum();
  const UdpChecksum in_software = d.is_tagged ? UdpChecksum::kNone : UdpChecksum::kSoftware;
  write_udp_headers({reinterpret_cast<std::byte*>(headers), headers_bytes},
                    {.source_mac = us_.mac,
                     .destination_mac = mac,
                     .vlan = us_.vlan,
                     .source = {us_.address, d.source_udp_port},
                     .destination = d.destination.endpoint(),
                     .traffic_class = d.traffic_class},
                    payload, offload ? UdpChecksum::kDevice : in_software);
  if (offload) {
    frame->l2_len = (headers_bytes - kIpUdpBytes) & 0x7f;
    frame->l3_len = kIpv4Bytes;
    frame->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
  }
  if (uses == nullptr) return frame;
  if (!segments_.insert(frame, d.lent, tail_bytes, *uses))
    return drop(PortDrop::kNoBuffer), nullptr;
  ++counters_.tx_lent;
  return frame;
}

bool DeviceQueue::resolve(const Destination& to, MacAddress& mac) noexcept {
  if (to.is_group()) {
    mac = group_mac(to.endpoint().address);
    return true;
  }
  const std::optional<Ipv4> hop = neighbours_.next_hop(to.endpoint().address);
  const MacAddress* known = hop ? neighbours_.resolve(*hop, now_) : nullptr;
  if (known != nullptr) mac = *known;
  return known != nullptr;
}

void DeviceQueue::tick(Instant now) noexcept {
  attach_poll_thread();
  now_ = now;
  if (announcements_left_ > 0 && now >= next_announcement_) announce();
  send_questions();
  if (may_be_held_back_) may_be_held_back_ = device_.push();
  if (index_ == 0) report_groups();
  if (index_ == 0 && now >= next_device_care_) care_for_device();
}

void DeviceQueue::care_for_device() noexcept {
  next_device_care_ = now_ + kDeviceCarePause;
  counters_.rx_missed = device_.missed_count();
  device_.reconnect();
}

void DeviceQueue::announce() noexcept {
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

void DeviceQueue::send_questions() noexcept {
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

void DeviceQueue::report_groups() noexcept {
  if (const std::uint32_t version = us_.groups->version(); version != groups_version_) {
    groups_version_ = version;
    std::array<Ipv4, kMaxGroups> groups;
    const std::size_t count = us_.groups->copy_addresses(groups);
    reports_.follow(std::span(groups).first(count), now_);
  }
  if (now_ < reports_.next_deadline()) return;
  std::array<GroupRecord, kMaxGroupRecords> records;
  if (reports_.version(now_) == IgmpVersion::k3) {
    const auto due = std::span(records).first(reports_.due(now_, records));
    if (due.empty()) return;
    return send_frame(kMaxGroupReportBytes,
                      [&](auto room) { return write_group_report(room, us_, due); });
  }
  const std::size_t count = reports_.due(now_, std::span(records).first(kMaxOldReportsPerTick));
  for (const GroupRecord& record : std::span(records).first(count)) {
    send_frame(kMaxGroupReportBytes,
               [&](auto room) { return write_old_group_report(room, us_, record); });
  }
}

void DeviceQueue::send_arp(const ArpFrame& arp) noexcept {
  send_frame(kMaxArpFrameBytes, [&](auto room) { return write_arp(room, arp); });
}

// Sends one frame of the stack itself.
template <typename Write>
void DeviceQueue::send_frame(std::size_t max_bytes, const Write& write) noexcept {
  rte_mbuf* frame = rte_pktmbuf_alloc(buffers_.tx());
  if (frame == nullptr) return drop(PortDrop::kNoBuffer);
  const std::span<std::byte> room{rte_pktmbuf_mtod(frame, std::byte*), max_bytes};
  set_length(frame, write(room));
  Batch batch;
  batch.frames[batch.count++] = frame;
  flush(batch);
}

// Sends a batch. Frames that the device does not take are counted and freed.
DeviceQueue::Sent DeviceQueue::flush(Batch& batch) noexcept {
  if (batch.count == 0) return {};
  const auto count = static_cast<std::uint16_t>(batch.count);
  batch.count = 0;
  std::uint16_t ready = device_.may_burst(index_) ? count : std::uint16_t{0};
  if (device_.computes_udp_checksum()) {
    ready = rte_eth_tx_prepare(device_.id(), index_, batch.frames.data(), ready);
  }
  Sent sent;
  for (std::size_t i = 0; i < ready; ++i) sent.frame_bytes += rte_pktmbuf_pkt_len(batch.frames[i]);
  std::uint16_t taken = 0;
  if (ready > 0) taken = rte_eth_tx_burst(device_.id(), index_, batch.frames.data(), ready);
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
