// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

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
  std::size_t memory_mb = 0;
};

/// `mtu` is final. Pure: nothing is opened.
DevicePlan plan_device(const DpdkPortOptions& options, std::uint16_t mtu);

/// A started device with one receive and one transmit queue, and a pool of buffers for each.
/// Received frames cannot use up the buffers for sending. Control thread, except where said.
class Device {
 public:
  static Result<std::unique_ptr<Device>> open(const DpdkPortOptions& options,
                                              const DevicePlan& plan);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  std::uint16_t id() const { return id_; }
  rte_mempool* tx_pool() const { return tx_pool_; }
  const MacAddress& mac() const { return mac_; }
  bool computes_udp_checksum() const { return tx_checksum_; }
  /// False while a memif client waits for its server; bursts are not allowed then. Poll thread.
  bool started() const noexcept { return started_; }
  /// Frames lost before we saw them, in all. Poll thread; costs a system call.
  std::uint64_t missed_count() noexcept;
  /// Connects a memif client again whose server was not there or is gone. Called at a pace that
  /// leaves a connection time to come about. Poll thread; cold.
  void reconnect() noexcept;
  /// Sends what a packet socket kept back because a queue behind it was full; else it would stay
  /// until the next burst. False when nothing is left to do. Poll thread; costs a system call.
  bool push() noexcept;

 private:
  Device() = default;
  Status probe(const DpdkPortOptions& options, const DevicePlan& plan);
  Status create_pools(const DevicePlan& plan);
  Status configure(const DpdkPortOptions& options, const DevicePlan& plan);
  Status read_mac(const DpdkPortOptions& options);
  void tune_socket(const DpdkPortOptions& options, const DevicePlan& plan);

  std::string name_;
  bool attached_ = false;
  bool is_virtual_ = false;
  std::uint16_t id_ = 0;
  bool started_ = false;
  rte_mempool* rx_pool_ = nullptr;
  rte_mempool* tx_pool_ = nullptr;
  MacAddress mac_;
  bool tx_checksum_ = false;
  bool rx_checksum_ = false;
  bool is_client_ = false;  // of memif
  bool was_down_ = false;
  int packet_socket_ = -1;
  std::uint64_t socket_drop_count_ = 0;
};

}  // namespace gradplane::port
