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
#include "dataplane/port/dpdk/dpdk_port.h"
#include "dataplane/port/dpdk/frame.h"

struct rte_mempool;

namespace gradplane::port {

/// What a kind of device needs: which driver, with which arguments, and how much memory.
struct DevicePlan {
  std::string driver;     // its library is librte_<driver>; empty for pci, where any may fit
  std::string arguments;  // of the driver
  std::uint16_t mtu = kDefaultMtu;
  std::uint32_t buffer_bytes = 0;  // for one frame, without the headroom
  unsigned rx_buffer_count = 0;
  unsigned tx_buffer_count = 0;
  unsigned segment_buffer_count = 0;  // 0: no frame lends anything
  std::uint16_t tx_spare_bytes = 0;   // of a sent frame's buffer, beyond the longest frame
  std::size_t memory_mb = 0;
};

/// `mtu` is final. Pure: nothing is opened.
DevicePlan plan_device(const DpdkPortOptions& options, std::uint16_t mtu);

/// A started device with its queues, and a pool of buffers for each direction. Received frames
/// cannot use up the buffers for sending. Control thread, except where said.
class Device {
 public:
  static Result<std::unique_ptr<Device>> open(const DpdkPortOptions& options,
                                              const DevicePlan& plan);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  std::uint16_t id() const { return id_; }
  rte_mempool* tx_pool() const { return tx_pool_; }
  /// Of buffers for what a frame lends. Null where a frame must be one buffer, or where a burst may
  /// end before the device has read it.
  rte_mempool* segment_pool() const { return segment_pool_; }
  const MacAddress& mac() const { return mac_; }
  bool computes_udp_checksum() const { return tx_checksum_; }
  std::size_t queue_count() const noexcept { return queue_count_; }
  /// False while a memif client waits for its server: no burst is allowed then. Asked by the poll
  /// thread of the queue before each burst; that burst ends before it asks again.
  bool may_burst(std::size_t queue) noexcept {
    const std::uint32_t turn = turn_.load(std::memory_order_acquire);          // D2
    if (queue != 0) seen_[queue].turn.store(turn, std::memory_order_release);  // E1
    return is_open(turn);
  }
  /// Frames lost before we saw them, in all. Poll thread of queue 0; costs a system call.
  std::uint64_t missed_count() noexcept;
  /// Connects a memif client again whose server was not there or is gone, as soon as all queues
  /// have stopped to burst. Called at a pace that leaves a connection time to come about. Poll
  /// thread of queue 0; cold.
  void reconnect() noexcept;
  /// Sends what packet sockets kept back because a queue behind them was full; else it would stay
  /// until the next burst. False when nothing is left to do. Any poll thread; costs system calls.
  bool push() noexcept;

 private:
  Device() = default;
  Status probe(const DpdkPortOptions& options, const DevicePlan& plan);
  Status create_pools(const DevicePlan& plan);
  Status create_segment_pool(const DevicePlan& plan);
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
  // A turn is a time in which queues may burst, when its number is even, or may not. D1 release in
  // let_burst() pairs with D2 acquire: who may burst sees the device started. E1 release pairs with
  // E2 acquire in others_have_seen(): who has seen a turn is out of the bursts of earlier ones.
  std::atomic<std::uint32_t> turn_{1};  // queue 0: rw, other queues: ro
  struct alignas(64) Seen {
    std::atomic<std::uint32_t> turn{0};  // its queue: rw, queue 0: ro
  };
  std::array<Seen, kMaxQueues> seen_{};
  rte_mempool* rx_pool_ = nullptr;
  rte_mempool* tx_pool_ = nullptr;
  rte_mempool* segment_pool_ = nullptr;
  MacAddress mac_;
  bool tx_checksum_ = false;
  bool rx_checksum_ = false;
  bool is_client_ = false;  // of memif
  bool was_down_ = false;
  std::vector<int> packet_sockets_;
  std::uint64_t socket_drop_count_ = 0;
};

}  // namespace gradplane::port
