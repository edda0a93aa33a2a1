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
#include "dataplane/port/loopback/mailbox.h"
#include "dataplane/port/port.h"

namespace gradplane::port {

struct LoopbackOptions {
  std::size_t mtu_payload_bytes = kMaxDatagramBytes;
  /// Datagrams that wait for one endpoint, for each traffic class. A power of two.
  std::size_t queue_count = 1024;
  /// Buffers that one port lends out by allocate() at a time.
  std::size_t tx_buffer_count = 512;
};

inline constexpr std::size_t kMaxLoopbackQueueCount = 65536;
inline constexpr std::size_t kMaxLoopbackPayloadBytes = 65507;

/// A network in memory: a fixed set of addresses, a bounded queue for each, no loss but by a full
/// queue. Built and opened on the control thread; then each port may poll on a thread of its own.
class LoopbackNetwork : public std::enable_shared_from_this<LoopbackNetwork> {
 public:
  /// Fails on no address, a repeated address, or options out of range.
  static Result<std::shared_ptr<LoopbackNetwork>> create(std::span<const Ipv4> addresses,
                                                         const LoopbackOptions& options);
  /// The port of one of the addresses. An address has at most one open port at a time; what waited
  /// for an earlier one is thrown away.
  Result<std::unique_ptr<Port>> open(Ipv4 address);

 private:
  friend class LoopbackPort;

  struct Station {
    Station(Ipv4 a, const LoopbackOptions& o)
        : address(a),
          control(o.queue_count, o.mtu_payload_bytes),
          data(o.queue_count, o.mtu_payload_bytes) {}
    Mailbox& mailbox(TrafficClass c) { return c == TrafficClass::kControl ? control : data; }

    Ipv4 address;
    std::atomic<bool> open{false};
    Mailbox control;
    Mailbox data;
  };

  explicit LoopbackNetwork(const LoopbackOptions& options) : options_(options) {}
  Station* find(Ipv4 address) noexcept;

  LoopbackOptions options_;
  std::vector<std::unique_ptr<Station>> stations_;  // sorted by address; fixed after create()
};

/// A network of one address: what the port sends to itself it receives.
Result<std::unique_ptr<Port>> open_lonely_loopback(Ipv4 address, const LoopbackOptions& options);

}  // namespace gradplane::port
