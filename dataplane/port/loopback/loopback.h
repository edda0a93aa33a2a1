// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/base/result.h"
#include "dataplane/port/group_table.h"
#include "dataplane/port/loopback/mailbox.h"
#include "dataplane/port/port.h"

namespace gradplane::port {

struct LoopbackOptions {
  std::size_t mtu_payload_bytes = kMaxDatagramBytes;
  /// The most datagrams that wait for one queue, for each traffic class. A power of two.
  std::size_t waiting_count = 1024;
  /// The most buffers of one queue that allocate() has given out.
  std::size_t tx_buffer_count = 512;
  /// The steering of every port of the network.
  Steering steering = {};
};

inline constexpr std::size_t kMaxLoopbackWaiting = 65536;
inline constexpr std::size_t kMaxLoopbackPayloadBytes = 65507;

/// A network in memory, with a fixed set of addresses and bounded queues for each. Only a full
/// queue loses datagrams. A datagram to a group is copied to every other port in the group. The
/// control thread builds and opens it; then each queue of each port may be polled by its own
/// thread.
class LoopbackNetwork : public std::enable_shared_from_this<LoopbackNetwork> {
 public:
  /// Fails if there is no address, if an address is repeated, or if an option is out of range.
  static Result<std::shared_ptr<LoopbackNetwork>> create(std::span<const Ipv4> addresses,
                                                         const LoopbackOptions& options);
  /// The port of one of the addresses. An address has at most one open port at a time. A new port
  /// is in no group, and datagrams that waited for an earlier one are discarded.
  Result<std::unique_ptr<Port>> open(Ipv4 address);

 private:
  friend class LoopbackPort;
  friend class LoopbackQueue;

  /// The datagrams that wait for one queue.
  struct Inbox {
    explicit Inbox(const LoopbackOptions& o)
        : control(o.waiting_count, o.mtu_payload_bytes),
          data(o.waiting_count, o.mtu_payload_bytes) {}
    Mailbox& mailbox(TrafficClass c) { return c == TrafficClass::kControl ? control : data; }

    Mailbox control;
    Mailbox data;
  };

  struct Station {
    Station(Ipv4 a, const LoopbackOptions& o);

    Ipv4 address;
    std::atomic<bool> open{false};
    std::vector<std::unique_ptr<Inbox>> inboxes;  // by queue
    GroupTable groups;
  };

  explicit LoopbackNetwork(const LoopbackOptions& options) : options_(options) {}
  Station* find(Ipv4 address) noexcept;

  LoopbackOptions options_;
  std::vector<std::unique_ptr<Station>> stations_;  // sorted by address; fixed after create()
};

/// A network with one address: the port receives what it sends to itself.
Result<std::unique_ptr<Port>> open_lonely_loopback(Ipv4 address, const LoopbackOptions& options);

}  // namespace gradplane::port
