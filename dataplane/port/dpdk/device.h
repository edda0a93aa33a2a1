// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/result.h"
#include "dataplane/port/dpdk/buffer_pools.h"
#include "dataplane/port/dpdk/device_plan.h"
#include "dataplane/port/dpdk/dpdk_port.h"
#include "dataplane/port/dpdk/frame.h"

namespace gradplane::port {

class DmaMemory;

/// A started device with its queues and their buffers. Control thread, unless a function says
/// otherwise.
class Device {
 public:
  static Result<std::unique_ptr<Device>> open(const DpdkPortOptions& options,
                                              const DevicePlan& plan);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  std::uint16_t id() const { return id_; }
  const BufferPools& pools_of(std::size_t queue) const { return pools_[queue]; }
  /// The memory that a NIC reads besides its buffers. Null if lent bytes are read during a burst,
  /// or never.
  DmaMemory* dma_memory() const { return dma_memory_.get(); }
  const MacAddress& mac() const { return mac_; }
  bool computes_udp_checksum() const { return tx_checksum_; }
  std::size_t queue_count() const noexcept { return queue_count_; }
  /// Whether the queue may call a burst. False while a memif client waits for its server. The
  /// queue's poll thread must call it before each burst, and that burst must end before the next
  /// call.
  bool may_burst(std::size_t queue) noexcept {
    const std::uint32_t turn = turn_.load(std::memory_order_acquire);          // D2
    if (queue != 0) seen_[queue].turn.store(turn, std::memory_order_release);  // E1
    return is_open(turn);
  }
  /// The total of frames that were lost before we saw them. Poll thread of queue 0; costs a system
  /// call.
  std::uint64_t missed_count() noexcept;
  /// Reconnects a memif client whose server was not there or is gone, as soon as all queues have
  /// stopped calling bursts. Call it at intervals that leave a connection time to be made. Poll
  /// thread of queue 0; cold.
  void reconnect() noexcept;
  /// Sends frames that packet sockets held back because a kernel queue was full; otherwise they
  /// would wait for the next burst. False if no frame is left. Any poll thread; costs system calls.
  bool push() noexcept;

 private:
  Device() = default;
  Status probe(const DpdkPortOptions& options, const DevicePlan& plan);
  Status create_pools(const DevicePlan& plan);
  bool prepare_chains(const DevicePlan& plan);
  Status configure(const DpdkPortOptions& options, const DevicePlan& plan);
  Status read_mac(const DpdkPortOptions& options);
  int set_up_queues(const DpdkPortOptions& options);
  void fill_rss_table(const Steering& steering, std::uint16_t entries);
  static constexpr bool is_open(std::uint32_t turn) { return turn % 2 == 0; }
  void let_burst(bool allowed) noexcept;
  bool others_have_seen() const noexcept;
  void tune_sockets(const DpdkPortOptions& options, const DevicePlan& plan);

  std::string name_;
  bool attached_ = false;
  bool is_virtual_ = false;
  std::uint16_t id_ = 0;
  std::size_t queue_count_ = 1;
  bool started_ = false;  // queue 0
  // Turns have numbers. Queues may call bursts in an even turn, and not in an odd one. D1 release
  // in let_burst() pairs with D2 acquire: a queue that may call a burst sees the device started. E1
  // release pairs with E2 acquire in others_have_seen(): a queue that has seen a turn has ended its
  // bursts of earlier turns.
  std::atomic<std::uint32_t> turn_{1};  // queue 0 writes, other queues read
  struct alignas(64) Seen {
    std::atomic<std::uint32_t> turn{0};  // its queue writes, queue 0 reads
  };
  std::array<Seen, kMaxQueues> seen_{};
  std::vector<BufferPools> pools_;  // by queue
  std::unique_ptr<DmaMemory> dma_memory_;
  MacAddress mac_;
  bool tx_checksum_ = false;
  bool rx_checksum_ = false;
  bool is_memif_ = false;
  bool is_client_ = false;  // a memif client
  bool was_down_ = false;
  std::vector<int> packet_sockets_;
  std::uint64_t socket_drop_count_ = 0;
};

}  // namespace gradplane::port
