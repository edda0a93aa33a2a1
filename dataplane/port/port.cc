// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/port.h"

#include <algorithm>
#include <cstring>

#include "dataplane/base/assert.h"

namespace gradplane::port {

std::string_view port_drop_name(PortDrop drop) {
  switch (drop) {
    case PortDrop::kNotForUs:
      return "not_for_us";
    case PortDrop::kNotUdp:
      return "not_udp";
    case PortDrop::kBadHeader:
      return "bad_header";
    case PortDrop::kBadChecksum:
      return "bad_checksum";
    case PortDrop::kWrongVlan:
      return "wrong_vlan";
    case PortDrop::kNoNeighbour:
      return "no_neighbour";
    case PortDrop::kTxFull:
      return "tx_full";
    case PortDrop::kNoBuffer:
      return "no_buffer";
    case PortDrop::kTooLong:
      return "too_long";
    case PortDrop::kAddressConflict:
      return "address_conflict";
    case PortDrop::kNotJoined:
      return "not_joined";
    case PortDrop::kQueueFull:
      return "queue_full";
    case PortDrop::kCount:
      break;
  }
  return "unknown";
}

void TxDatagram::copy_lent() noexcept {
  if (lent.empty()) return;
  GP_ASSERT(lent_at_bytes <= length_bytes && payload_bytes() <= buffer.size());
  std::byte* const place = buffer.data() + lent_at_bytes;
  std::memmove(place + lent.size(), place, length_bytes - lent_at_bytes);
  std::memcpy(place, lent.data(), lent.size());
  length_bytes += static_cast<std::uint32_t>(lent.size());
  lent = {};
}

PortCounters& operator+=(PortCounters& sum, const PortCounters& other) {
  sum.rx_datagrams += other.rx_datagrams;
  sum.rx_bytes += other.rx_bytes;
  sum.tx_datagrams += other.tx_datagrams;
  sum.tx_bytes += other.tx_bytes;
  sum.tx_lent += other.tx_lent;
  sum.rx_missed += other.rx_missed;
  sum.handed_over += other.handed_over;
  sum.igmp_version = std::max(sum.igmp_version, other.igmp_version);
  for (std::size_t d = 0; d < sum.drops.size(); ++d) sum.drops[d] += other.drops[d];
  return sum;
}

Status check(const Steering& steering) {
  if (steering.queue_count == 0 || steering.queue_count > kMaxQueues) {
    return Error{"port: " + std::to_string(steering.queue_count) + " queues are not in 1.." +
                 std::to_string(kMaxQueues)};
  }
  if (steering.first_udp_port == 0 ||
      steering.first_udp_port + steering.queue_count - 1 > UINT16_MAX) {
    return Error{"port: " + std::to_string(steering.queue_count) + " UDP ports from " +
                 std::to_string(steering.first_udp_port) + " on are not all in 1.." +
                 std::to_string(UINT16_MAX)};
  }
  return Nothing{};
}

Status Port::add_memory(std::span<const std::byte> /*memory*/) {
  return Nothing{};
}

bool Port::remove_memory(std::span<const std::byte> /*memory*/) {
  return true;
}

PortCounters Port::total_counters() {
  PortCounters total;
  for (std::size_t q = 0; q < queue_count(); ++q) total += queue(q).counters();
  return total;
}

}  // namespace gradplane::port
