// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/dpdk/interface.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

#include "dataplane/ipc/trusted_folder.h"
#include "dataplane/port/dpdk/dpdk_port.h"

namespace gradplane::port {
namespace {

constexpr const char* kLockFolder = "/run/gradplane";

class Socket {
 public:
  Socket(int domain, int type, int protocol) : fd_(socket(domain, type | SOCK_CLOEXEC, protocol)) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

std::string because() {
  return std::strerror(errno);
}

std::string existing_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "unknown";
  std::set<std::string> names;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) names.insert(at->ifa_name);
  freeifaddrs(list);
  std::string text;
  for (const std::string& n : names) text += (text.empty() ? "" : ", ") + n;
  return text.empty() ? "none" : text;
}

// The name goes into a device argument list, where a comma or an equals sign would begin another
// argument.
bool is_interface_name(const std::string& name) {
  return !name.empty() && name.size() < IFNAMSIZ &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-' || c == '@' || c == ':';
         });
}

Status bring_up(int fd, ifreq& request, InterfaceFacts& facts) {
  const std::string name = request.ifr_name;
  if (ioctl(fd, SIOCGIFFLAGS, &request) != 0) {
    return Error{"port: the flags of interface " + name + " are unreadable: " + because()};
  }
  if ((request.ifr_flags & IFF_UP) != 0) return Nothing{};
  facts.was_down = true;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (ioctl(fd, SIOCSIFFLAGS, &request) != 0) {
    return Error{"port: interface " + name + " is down and cannot be brought up: " + because() +
                 "; run: ip link set dev " + name + " up"};
  }
  return Nothing{};
}

std::string process_name(pid_t pid) {
  std::string name = "another process";
  std::ifstream("/proc/" + std::to_string(pid) + "/comm") >> name;
  return name;
}

/// The number of this thread's network namespace. Two namespaces may have different devices of the
/// same name.
Result<std::uint64_t> network_namespace() {
  struct stat info {};
  if (stat("/proc/thread-self/ns/net", &info) == 0) return std::uint64_t{info.st_ino};
  return Error{"port: /proc/thread-self/ns/net is unreadable: " + because() + "; mount /proc"};
}

/// What to do if the lock folder is not ours.
std::string lock_folder_remedy() {
  const uid_t self = geteuid();
  if (self == 0) return {};
  return "; the daemons of a host keep their locks there and run as one user: run as root, or let "
         "root run: install -d -o " +
         std::to_string(self) + " " + kLockFolder;
}

/// The process that has written its number into the lock file.
std::string lock_holder(int fd) {
  char text[16] = {};
  const ssize_t length = pread(fd, text, sizeof text - 1, 0);
  const pid_t pid = length > 0 ? static_cast<pid_t>(std::strtol(text, nullptr, 10)) : 0;
  if (pid <= 0) return "another process";
  return process_name(pid) + " (process " + std::to_string(pid) + ")";
}

}  // namespace

Result<InterfaceFacts> take_interface(const std::string& name) {
  if (!is_interface_name(name)) {
    return Error{"port: '" + name +
                 "' is not an interface name; there are: " + existing_interfaces()};
  }
  InterfaceFacts facts;
  facts.index = static_cast<int>(if_nametoindex(name.c_str()));
  if (facts.index == 0) {
    return Error{"port: interface " + name +
                 " does not exist; there are: " + existing_interfaces()};
  }
  const Socket s(AF_INET, SOCK_DGRAM, 0);
  ifreq request{};
  std::memcpy(request.ifr_name, name.c_str(), name.size() + 1);
  if (ioctl(s.fd(), SIOCGIFHWADDR, &request) != 0) {
    return Error{"port: the address of interface " + name + " is unreadable: " + because()};
  }
  if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
    return Error{"port: interface " + name +
                 " is not an Ethernet interface; choose one of: " + existing_interfaces()};
  }
  std::memcpy(facts.mac.bytes.data(), request.ifr_hwaddr.sa_data, facts.mac.bytes.size());
  if (ioctl(s.fd(), SIOCGIFMTU, &request) != 0) {
    return Error{"port: the MTU of interface " + name + " is unreadable: " + because()};
  }
  facts.mtu = static_cast<std::uint16_t>(std::clamp(request.ifr_mtu, 0, int{kMaxMtu}));
  if (Status up = bring_up(s.fd(), request, facts); !up) return up.error();
  return facts;
}

Status check_address_is_free(Ipv4 address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return Nothing{};
  std::string holder;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in in;
    std::memcpy(&in, at->ifa_addr, sizeof in);
    if (ntohl(in.sin_addr.s_addr) == address.value) holder = at->ifa_name;
  }
  freeifaddrs(list);
  if (holder.empty()) return Nothing{};
  return Error{"port: the kernel has the address " + to_text(address) + " on interface " + holder +
               ", and would answer for it beside the port; give the port an address of its own, or "
               "run: ip address flush dev " +
               holder + " to " + to_text(address)};
}

Status check_raw_permission() {
  const Socket s(AF_PACKET, SOCK_RAW, 0);
  if (s.fd() >= 0) return Nothing{};
  return Error{"port: a socket below IP cannot be opened: " + because() +
               "; run as root, or give the program cap_net_raw and cap_net_admin"};
}

Result<DeviceLock> DeviceLock::take(const std::string& device) {
  const Result<std::uint64_t> space = network_namespace();
  if (!space) return space.error();
  // A process that can open the file can lock it, so it is in a folder where only we create and
  // open files.
  if (Status folder = ipc::make_trusted_folder(kLockFolder); !folder) {
    return Error{"port: " + device + " cannot be locked: " + folder.error().message +
                 lock_folder_remedy()};
  }
  const std::string path =
      std::string(kLockFolder) + "/port-" + std::to_string(space.value()) + "-" + device + ".lock";
  ipc::UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) {
    return Error{"port: " + device + " cannot be locked: " + path + ": " + because() +
                 lock_folder_remedy()};
  }
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{"port: " + device + " is already the port of " + lock_holder(file.get()) +
                 "; two would both answer; stop that one or give this one another interface"};
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(file.get(), 0) != 0 ||
      pwrite(file.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return Error{"port: " + path + " cannot be written: " + because() + "; make room there"};
  }
  return DeviceLock(std::move(file));
}

}  // namespace gradplane::port
