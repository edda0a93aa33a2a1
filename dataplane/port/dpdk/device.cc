// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/device.h"

#include <dlfcn.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_version.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "dataplane/port/dpdk/dma_memory.h"
#include "dataplane/port/dpdk/eal.h"
#include "dataplane/port/dpdk/interface.h"
#include "dataplane/port/dpdk/packet_socket.h"
#include "dataplane/port/dpdk/rss.h"

namespace gradplane::port {
namespace {

// NICs with DPDK drivers have keys of up to 52 bytes.
constexpr std::size_t kMaxRssKeyBytes = 64;
// The ABI number, which is in the names of libraries and packages. It is 23 from DPDK 22.11 until
// 23.11.
constexpr int kAbiVersion = RTE_VER_MONTH >= 11 ? RTE_VER_YEAR + 1 : RTE_VER_YEAR;

std::string fresh_name(const std::string& stem) {
  static std::atomic<unsigned> next{0};
  return stem + std::to_string(next.fetch_add(1));
}

bool driver_is_loaded(const std::string& driver) {
  const std::string library = "librte_" + driver + ".so." + std::to_string(kAbiVersion);
  void* handle = dlopen(library.c_str(), RTLD_NOLOAD | RTLD_LAZY);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

// Debian's package of a driver: net_af_packet is in librte-net-af-packet23.
std::string driver_package(std::string driver) {
  for (char& c : driver) c = c == '_' ? '-' : c;
  return "librte-" + driver + std::to_string(kAbiVersion);
}

/// Whether the NIC can give each queue the frames of its UDP port by RSS.
bool can_steer(const rte_eth_dev_info& info) {
  return (info.flow_type_rss_offloads & RTE_ETH_RSS_NONFRAG_IPV4_UDP) != 0 &&
         info.hash_key_size >= kMinRssKeyBytes && info.hash_key_size <= kMaxRssKeyBytes &&
         info.reta_size >= kMinRssTable && info.reta_size % RTE_ETH_RETA_GROUP_SIZE == 0;
}

std::string probe_remedy(const DpdkPortOptions& o, const DevicePlan& plan) {
  if (!driver_is_loaded(plan.driver)) {
    return "; the driver is not loaded; run: apt-get install " + driver_package(plan.driver);
  }
  switch (o.kind) {
    case DeviceKind::kAfXdp:
      return "; the kernel needs AF_XDP, the process cap_net_admin and cap_bpf (or root), and no "
             "other XDP program may sit on the interface (run: ip link set dev " +
             o.interface + " xdp off); its own MTU may be too long for XDP (run: ip link set dev " +
             o.interface + " mtu 3400); or use af_packet";
    case DeviceKind::kMemif:
      return "; the socket " + o.memif_socket +
             " must be in a folder that exists and that this process may write, and must not be "
             "left over from a process that is gone";
    default:
      return "; see the cause above";
  }
}

}  // namespace

Result<std::unique_ptr<Device>> Device::open(const DpdkPortOptions& options,
                                             const DevicePlan& plan) {
  (void)take_eal_log();
  std::unique_ptr<Device> device(new Device);
  device->is_memif_ = options.kind == DeviceKind::kMemif;
  if (Status s = device->probe(options, plan); !s) return s.error();
  device->queue_count_ = options.steering.queue_count;
  if (Status s = device->create_pools(plan); !s) return s.error();
  if (Status s = device->configure(options, plan); !s) return s.error();
  if (Status s = device->read_mac(options); !s) return s.error();
  device->tune_sockets(options, plan);
  return device;
}

Status Device::probe(const DpdkPortOptions& options, const DevicePlan& plan) {
  if (options.kind == DeviceKind::kPci) {
    name_ = options.pci_address;
    // The EAL has only probed the NIC of the port that started it.
    const bool is_probed = rte_eth_dev_get_port_by_name(name_.c_str(), &id_) == 0;
    const int probed = is_probed ? 0 : rte_eal_hotplug_add("pci", name_.c_str(), "");
    if (rte_eth_dev_get_port_by_name(name_.c_str(), &id_) != 0) {
      return Error{"port: no DPDK driver took the device " + name_ + ": " +
                   because(probed != 0 ? probed : ENODEV) +
                   "; bind it, as with: dpdk-devbind.py --bind=vfio-pci " + name_ +
                   ", and see that the package of its driver (librte-net-...) is installed"};
    }
    attached_ = true;
    return Nothing{};
  }
  name_ = fresh_name(plan.driver);
  if (options.kind == DeviceKind::kAfXdp) capture_bpf_log();
  const int probed = rte_eal_hotplug_add("vdev", name_.c_str(), plan.arguments.c_str());
  if (probed != 0) {
    const std::string cause = because(probed);
    return Error{"port: the driver " + plan.driver + " refused " + plan.arguments + ": " + cause +
                 probe_remedy(options, plan)};
  }
  attached_ = true;
  is_virtual_ = true;
  if (rte_eth_dev_get_port_by_name(name_.c_str(), &id_) != 0) {
    return Error{"port: the driver " + plan.driver + " made no device: " + because(ENODEV)};
  }
  return Nothing{};
}

Status Device::create_pools(const DevicePlan& plan) {
  const bool with_segments = prepare_chains(plan);
  for (std::size_t q = 0; q < queue_count_; ++q) {
    auto pools = BufferPools::create(id_, plan, with_segments);
    if (!pools) return pools.error();
    pools_.push_back(std::move(pools.value()));
  }
  return Nothing{};
}

/// Makes what maps lent memory for a NIC. False if no frame may be a chain of buffers, of which one
/// has lent bytes.
bool Device::prepare_chains(const DevicePlan& plan) {
  rte_eth_dev_info info;
  if (plan.segment_buffer_count == 0 || rte_eth_dev_info_get(id_, &info) != 0) return false;
  if ((info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) == 0) return false;
  if (!plan.reads_late) return true;
  // Without an IOMMU, adjacent pages need not be adjacent on the bus.
  if (rte_eal_iova_mode() != RTE_IOVA_VA) return false;
  dma_memory_ = std::make_unique<DmaMemory>(info.device);
  return true;
}

Status Device::configure(const DpdkPortOptions& options, const DevicePlan& plan) {
  rte_eth_dev_info info;
  if (const int e = rte_eth_dev_info_get(id_, &info); e != 0) {
    return Error{"port: device " + name_ + " says nothing about itself: " + because(e)};
  }
  if (options.kind != DeviceKind::kAfPacket && info.max_mtu != 0 && plan.mtu > info.max_mtu) {
    return Error{"port: an MTU of " + std::to_string(plan.mtu) + " is more than device " + name_ +
                 " takes; set it to " + std::to_string(info.max_mtu) + " or less"};
  }
  const std::size_t offered = std::min(info.max_rx_queues, info.max_tx_queues);
  if (offered < queue_count_) {
    return Error{"port: device " + name_ + " has " + std::to_string(offered) + " queues, not " +
                 std::to_string(queue_count_) + "; use fewer, or give the device more"};
  }
  constexpr std::uint64_t kRxChecksum =
      RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
  constexpr std::uint64_t kTxChecksum = RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
  rx_checksum_ = (info.rx_offload_capa & kRxChecksum) == kRxChecksum;
  tx_checksum_ = (info.tx_offload_capa & kTxChecksum) == kTxChecksum;
  rte_eth_conf conf{};
  // Only a PCI NIC gets the MTU from us; for a kernel interface the operator sets it.
  if (options.kind == DeviceKind::kPci) conf.rxmode.mtu = plan.mtu;
  conf.rxmode.offloads = rx_checksum_ ? kRxChecksum : 0;
  conf.txmode.offloads = tx_checksum_ ? kTxChecksum : 0;
  if (pools_[0].segments() != nullptr) conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  std::array<std::uint8_t, kMaxRssKeyBytes> rss_key{};
  const bool uses_rss = options.kind == DeviceKind::kPci && queue_count_ > 1 && can_steer(info);
  if (uses_rss) {
    write_rss_key(rss_key);
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    rte_eth_rss_conf& rss = conf.rx_adv_conf.rss_conf;  // all other fields are zero
    rss.rss_key = rss_key.data();
    rss.rss_key_len = info.hash_key_size;
    rss.rss_hf = RTE_ETH_RSS_NONFRAG_IPV4_UDP;
  }
  const auto queues = static_cast<std::uint16_t>(queue_count_);
  int e = rte_eth_dev_configure(id_, queues, queues, &conf);
  if (e == 0) e = set_up_queues(options);
  is_client_ = is_memif_ && options.memif_role == MemifRole::kClient;
  if (e == 0) {
    e = rte_eth_dev_start(id_);
    started_ = e == 0;
    if (started_ && uses_rss) fill_rss_table(options.steering, info.reta_size);
    let_burst(started_);
    if (is_client_) e = 0;  // the server may start later
  }
  if (e != 0) {
    const std::string cause = because(e);
    return Error{"port: device " + name_ + " did not start: " + cause +
                 (plan.driver.empty() ? "" : probe_remedy(options, plan))};
  }
  return Nothing{};
}

/// A NIC that refuses the table keeps that of its driver. Then queues hand frames over that are not
/// theirs.
void Device::fill_rss_table(const Steering& steering, std::uint16_t entries) {
  std::vector<rte_eth_rss_reta_entry64> table(entries / RTE_ETH_RETA_GROUP_SIZE);
  for (std::size_t hash = 0; hash < entries; ++hash) {
    rte_eth_rss_reta_entry64& group = table[hash / RTE_ETH_RETA_GROUP_SIZE];
    group.mask = UINT64_MAX;
    group.reta[hash % RTE_ETH_RETA_GROUP_SIZE] =
        static_cast<std::uint16_t>(queue_of_rss_hash(steering, hash));
  }
  (void)rte_eth_dev_rss_reta_update(id_, table.data(), entries);
}

int Device::set_up_queues(const DpdkPortOptions& options) {
  std::uint16_t rx_count = options.rx_descriptors;
  std::uint16_t tx_count = options.tx_descriptors;
  int e = rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx_count, &tx_count);
  // The rings lie near the device if that NUMA node has room for them.
  const auto near = static_cast<unsigned>(rte_eth_dev_socket_id(id_));
  constexpr auto kAnywhere = static_cast<unsigned>(SOCKET_ID_ANY);
  const auto set_up = [&](std::uint16_t q, unsigned node) {
    const int failed = rte_eth_rx_queue_setup(id_, q, rx_count, node, nullptr, pools_[q].rx());
    return failed != 0 ? failed : rte_eth_tx_queue_setup(id_, q, tx_count, node, nullptr);
  };
  for (std::uint16_t q = 0; q < queue_count_ && e == 0; ++q) {
    e = set_up(q, near);
    if (e == 0 || near == kAnywhere) continue;
    (void)take_eal_log();
    e = set_up(q, kAnywhere);
  }
  return e;
}

Status Device::read_mac(const DpdkPortOptions& options) {
  rte_ether_addr address{};
  if (options.mac) {
    std::memcpy(address.addr_bytes, options.mac->bytes.data(), sizeof address.addr_bytes);
    const int e =
        options.kind == DeviceKind::kMemif ? 0 : rte_eth_dev_default_mac_addr_set(id_, &address);
    if (e != 0) {
      return Error{"port: the device does not take another MAC address: " + because(e) +
                   "; leave mac out, or set it with: ip link set dev " + options.interface +
                   " address ..."};
    }
    mac_ = *options.mac;
    return Nothing{};
  }
  const int e = rte_eth_macaddr_get(id_, &address);
  std::memcpy(mac_.bytes.data(), address.addr_bytes, mac_.bytes.size());
  if (e == 0 && !mac_.is_zero() && !mac_.is_group()) return Nothing{};
  return Error{"port: the MAC address of device " + name_ + " is unreadable: " + because(e) +
               "; give one in the configuration"};
}

void Device::tune_sockets(const DpdkPortOptions& options, const DevicePlan& plan) {
  if (options.kind != DeviceKind::kAfPacket) return;
  rte_eth_dev_info info;
  if (rte_eth_dev_info_get(id_, &info) != 0) return;
  packet_sockets_ = find_packet_sockets(static_cast<int>(info.if_index), queue_count_);
  const std::size_t frames = std::max(options.rx_descriptors, options.tx_descriptors);
  for (const int socket : packet_sockets_) tune_packet_socket(socket, frames * plan.buffer_bytes);
}

std::uint64_t Device::missed_count() noexcept {
  for (const int socket : packet_sockets_) socket_drop_count_ += take_packet_socket_drops(socket);
  if (!packet_sockets_.empty()) return socket_drop_count_;
  rte_eth_stats stats;
  if (rte_eth_stats_get(id_, &stats) != 0) return 0;
  return stats.imissed + stats.rx_nombuf;
}

void Device::reconnect() noexcept {
  if (!is_client_) return;
  rte_eth_link link;
  const bool up =
      started_ && rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
  // DPDK's interrupt thread also connects and disconnects. Once a link was down in two consecutive
  // calls, that thread is done with it.
  const bool wait = started_ && !was_down_;
  was_down_ = !up;
  // With several queues, no queue may be in a burst when the device is stopped. Frames that are
  // sent while the link is down are lost anyway.
  if (up || queue_count_ > 1) let_burst(up);
  if (up || wait || !others_have_seen()) return;
  if (started_) (void)rte_eth_dev_stop(id_);
  started_ = rte_eth_dev_start(id_) == 0;
  let_burst(started_);
  was_down_ = false;
}

void Device::let_burst(bool allowed) noexcept {
  const std::uint32_t turn = turn_.load(std::memory_order_relaxed);
  if (is_open(turn) != allowed) turn_.store(turn + 1, std::memory_order_release);  // D1
}

bool Device::others_have_seen() const noexcept {
  const std::uint32_t turn = turn_.load(std::memory_order_relaxed);
  for (std::size_t q = 1; q < queue_count_; ++q) {
    if (seen_[q].turn.load(std::memory_order_acquire) != turn) return false;  // E2
  }
  return true;
}

bool Device::push() noexcept {
  bool held_back = false;
  for (const int socket : packet_sockets_) held_back = push_packet_socket(socket) || held_back;
  return held_back;
}

Device::~Device() {
  const auto close = [id = id_, started = started_, attached = attached_] {
    if (started) (void)rte_eth_dev_stop(id);
    if (attached) (void)rte_eth_dev_close(id);
  };
  // DPDK's memif driver handles its sockets on the interrupt thread. Closed by another thread, a
  // device may be freed while its handler runs.
  if (!is_memif_) {
    close();
  } else if (!run_on_interrupt_thread(close)) {
    // Rather than free what that thread may still use.
    attached_ = false;
    (void)new std::vector<BufferPools>(std::move(pools_));
  }
  dma_memory_.reset();  // before the device is gone
  if (attached_ && is_virtual_) (void)rte_eal_hotplug_remove("vdev", name_.c_str());
}

}  // namespace gradplane::port
