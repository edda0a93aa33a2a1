// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/lab/ports.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace gradplane::lab {
namespace {

constexpr std::size_t kRingBytes = kRingFrames * kRingFrameBytes;
constexpr unsigned kBlockBytes = 1 << 16;
constexpr int kSendBufferBytes = 8 << 20;
// A time stamp that differs more from now means that a clock was set.
constexpr Duration kMaxAge = Duration::seconds(1);

Error failure(const std::string& interface, const char* what) {
  return Error{"interface " + interface + ": " + what + ": " + std::strerror(errno) +
               "; packet sockets need root and an interface of this namespace"};
}

template <typename T>
bool set_option(int fd, int level, int name, const T& value) {
  return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

bool bind_to(int fd, unsigned interface_index, std::uint16_t protocol) {
  sockaddr_ll address = {};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(protocol);
  address.sll_ifindex = static_cast<int>(interface_index);
  return bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

bool set_up_ring(int fd) {
  tpacket_req request = {};
  request.tp_frame_size = kRingFrameBytes;
  request.tp_frame_nr = kRingFrames;
  request.tp_block_size = kBlockBytes;
  request.tp_block_nr = kRingBytes / kBlockBytes;
  return set_option(fd, SOL_PACKET, PACKET_VERSION, static_cast<int>(TPACKET_V2)) &&
         set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1) &&
         set_option(fd, SOL_PACKET, PACKET_RX_RING, request);
}

}  // namespace

Result<Port> Port::open(const std::string& interface) {
  const unsigned index = if_nametoindex(interface.c_str());
  if (index == 0) return failure(interface, "not found");
  Port port;
  // With protocol 0 a socket receives nothing: the receiver until it has its ring, the sender
  // always.
  const int type = SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK;
  port.receiver_ = ipc::UniqueFd(socket(AF_PACKET, type, 0));
  port.sender_ = ipc::UniqueFd(socket(AF_PACKET, type, 0));
  if (port.receiver_.get() < 0 || port.sender_.get() < 0) return failure(interface, "socket");
  if (!set_up_ring(port.receiver_.get())) return failure(interface, "the ring for frames");
  void* ring = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                    port.receiver_.get(), 0);
  if (ring == MAP_FAILED) return failure(interface, "memory of the ring");
  port.ring_ = static_cast<std::byte*>(ring);
  set_option(port.sender_.get(), SOL_SOCKET, SO_SNDBUFFORCE, kSendBufferBytes);
  if (!set_option(port.sender_.get(), SOL_PACKET, PACKET_QDISC_BYPASS, 1)) {
    return failure(interface, "sending past the queue");
  }
  if (!bind_to(port.receiver_.get(), index, ETH_P_ALL) || !bind_to(port.sender_.get(), index, 0)) {
    return failure(interface, "bind");
  }
  return port;
}

Port::Port(Port&& other) noexcept
    : receiver_(std::move(other.receiver_)),
      sender_(std::move(other.sender_)),
      ring_(std::exchange(other.ring_, nullptr)),
      next_(other.next_),
      last_at_(other.last_at_) {}

Port::~Port() {
  if (ring_ != nullptr) munmap(ring_, kRingBytes);
}

tpacket2_hdr* Port::header() const {
  return reinterpret_cast<tpacket2_hdr*>(ring_ + next_ * kRingFrameBytes);
}

Port::Received Port::front(Instant now, Duration real_time_offset) {
  const tpacket2_hdr* h = header();
  const std::uint32_t status = std::atomic_ref(header()->tp_status).load(std::memory_order_acquire);
  if ((status & TP_STATUS_USER) == 0) return {};
  const Instant stamped =
      Instant::from_ns(std::int64_t{h->tp_sec} * 1'000'000'000 + h->tp_nsec) - real_time_offset;
  const Instant sane = std::clamp(stamped, now - kMaxAge, now);
  last_at_ = std::max(last_at_, sane);
  const auto* bytes = reinterpret_cast<const std::byte*>(h) + h->tp_mac;
  // The ring has cut the frame. The network refuses frames of this length.
  const std::size_t length = h->tp_len > h->tp_snaplen ? kMaxFrameBytes + 1 : h->tp_snaplen;
  return {last_at_, {bytes, length}};
}

void Port::pop() {
  std::atomic_ref(header()->tp_status).store(TP_STATUS_KERNEL, std::memory_order_release);
  next_ = (next_ + 1) % kRingFrames;
}

void Port::send(std::span<const std::byte> frame) {
  batch_[batch_count_++] = frame;
  if (batch_count_ == kSendBatch) flush();
}

void Port::flush() {
  std::array<iovec, kSendBatch> parts;
  std::array<mmsghdr, kSendBatch> messages = {};
  for (std::size_t i = 0; i < batch_count_; ++i) {
    parts[i] = {const_cast<std::byte*>(batch_[i].data()), batch_[i].size()};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  std::size_t done = 0;
  while (done < batch_count_) {
    const int sent = sendmmsg(sender_.get(), messages.data() + done,
                              static_cast<unsigned>(batch_count_ - done), 0);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) {
      // The first frame is lost. The frames behind it may succeed.
      ++counters_.send_failures;
      ++done;
      continue;
    }
    done += static_cast<std::size_t>(sent);
  }
  batch_count_ = 0;
}

PortCounters Port::counters() {
  tpacket_stats kernel = {};
  socklen_t size = sizeof(kernel);
  // Reading resets the kernel's counters.
  if (getsockopt(receiver_.get(), SOL_PACKET, PACKET_STATISTICS, &kernel, &size) == 0) {
    counters_.ring_drops += kernel.tp_drops;
  }
  return counters_;
}

void Port::reset_counters() {
  counters();
  counters_ = {};
}

}  // namespace gradplane::lab
