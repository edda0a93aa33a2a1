// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/conformance/veth.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gradplane::conformance {
namespace {

constexpr int kSkipped = 77;

[[noreturn]] void quit(int status, const std::string& why) {
  std::printf("%s%s\n", status == kSkipped ? "SKIP: " : "", why.c_str());
  std::fflush(stdout);
  _exit(status);
}

void must(bool ok, const char* what) {
  if (!ok) quit(1, std::string(what) + ": " + std::strerror(errno));
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) quit(kSkipped, "start this program by tests/conformance/run_on_veth");
  return value;
}

sockaddr_in to_sockaddr(Endpoint e) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(e.udp_port);
  out.sin_addr.s_addr = htonl(e.address.value);
  return out;
}

}  // namespace

port::DeviceKind kind_under_test() {
  const std::string kind = environment("GP_PORT_KIND");
  if (kind == "af_packet") return port::DeviceKind::kAfPacket;
  if (kind != "af_xdp") quit(1, "GP_PORT_KIND is neither af_packet nor af_xdp");
  const int fd = socket(44 /* AF_XDP */, SOCK_RAW, 0);
  if (fd < 0) quit(kSkipped, "this kernel has no AF_XDP: " + std::string(std::strerror(errno)));
  close(fd);
  return port::DeviceKind::kAfXdp;
}

port::DpdkPortOptions veth_options(const std::string& interface, Ipv4 address) {
  port::DpdkPortOptions o;
  o.kind = kind_under_test();
  o.interface = interface;
  o.address = address;
  o.memory_mb = 512;
  return o;
}

std::unique_ptr<port::Port> open_or_exit(port::DpdkPortOptions options) {
  auto opened = port::open_dpdk_port(options);
  if (!opened) quit(1, opened.error().message);
  return std::move(opened.value());
}

InPeerNamespace::InPeerNamespace() : own_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
  const std::string path = "/run/netns/" + environment("GP_PEER_NAMESPACE");
  const int peer = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  must(own_ >= 0 && peer >= 0 && setns(peer, CLONE_NEWNET) == 0, "enter the other namespace");
  close(peer);
}

InPeerNamespace::~InPeerNamespace() {
  must(setns(own_, CLONE_NEWNET) == 0, "come back from the other namespace");
  close(own_);
}

PeerCommand::PeerCommand(const std::string& command) {
  const std::string peer = environment("GP_PEER_NAMESPACE");
  pid_ = fork();
  if (pid_ == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execlp("ip", "ip", "netns", "exec", peer.c_str(), "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  must(pid_ > 0, "fork");
}

bool PeerCommand::ended() {
  if (pid_ < 0) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  pid_ = -1;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return true;
}

PeerCommand::~PeerCommand() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

KernelSocket::KernelSocket(Endpoint bound) {
  const InPeerNamespace there;
  fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const sockaddr_in name = to_sockaddr(bound);
  must(fd_ >= 0 && bind(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0,
       "bind a socket in the other namespace");
  const int on = 1;
  must(setsockopt(fd_, IPPROTO_IP, IP_RECVTOS, &on, sizeof on) == 0, "ask for the traffic class");
}

KernelSocket::~KernelSocket() {
  close(fd_);
}

void KernelSocket::set_traffic_class(int value) {
  must(setsockopt(fd_, IPPROTO_IP, IP_TOS, &value, sizeof value) == 0, "set the traffic class");
}

bool KernelSocket::send(Endpoint to, const std::vector<std::byte>& payload) {
  const sockaddr_in name = to_sockaddr(to);
  return sendto(fd_, payload.data(), payload.size(), 0, reinterpret_cast<const sockaddr*>(&name),
                sizeof name) == static_cast<ssize_t>(payload.size());
}

bool KernelSocket::receive(std::vector<std::byte>& payload, Endpoint& from, int& traffic_class) {
  payload.resize(65536);
  sockaddr_in name{};
  iovec part{payload.data(), payload.size()};
  alignas(cmsghdr) std::array<char, 64> control{};
  msghdr message{};
  message.msg_name = &name;
  message.msg_namelen = sizeof name;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(fd_, &message, 0);
  if (got < 0) return false;
  payload.resize(static_cast<std::size_t>(got));
  from = {{ntohl(name.sin_addr.s_addr)}, ntohs(name.sin_port)};
  const cmsghdr* first = CMSG_FIRSTHDR(&message);
  traffic_class = first != nullptr && first->cmsg_type == IP_TOS ? *CMSG_DATA(first) : -1;
  return true;
}

RawLink::RawLink(const std::string& interface) {
  const InPeerNamespace there;
  fd_ = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
  sockaddr_ll name{};
  name.sll_family = AF_PACKET;
  name.sll_protocol = htons(ETH_P_ALL);
  name.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
  must(bind(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0, "bind a raw link");
  const int on = 1;
  must(setsockopt(fd_, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) == 0, "see arrivals");
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  must(ioctl(fd_, SIOCGIFHWADDR, &request) == 0, "read an interface address");
  std::memcpy(mac_.bytes.data(), request.ifr_hwaddr.sa_data, mac_.bytes.size());
}

RawLink::~RawLink() {
  close(fd_);
}

void RawLink::send(std::span<const std::byte> frame) {
  must(write(fd_, frame.data(), frame.size()) == static_cast<ssize_t>(frame.size()),
       "inject a frame");
}

bool RawLink::receive(std::vector<std::byte>& frame) {
  frame.resize(65536);
  const ssize_t got = read(fd_, frame.data(), frame.size());
  frame.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return got >= 0;
}

void disable_checksum_offload(const std::string& interface) {
  const InPeerNamespace there;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ethtool_value off{ETHTOOL_STXCSUM, 0};
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&off);
  must(ioctl(fd, SIOCETHTOOL, &request) == 0, "turn checksum offload off");
  close(fd);
}

}  // namespace gradplane::conformance
