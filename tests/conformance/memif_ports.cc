// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <stdlib.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/conformance/memif.h"
#include "tests/conformance/port_suite.h"

namespace gradplane::conformance {
namespace {

/// The folder of the sockets. It is made once, and leave_at_once() removes it.
const std::string& folder() {
  static char name[] = "/tmp/gp-memif-XXXXXX";
  static const std::string path = mkdtemp(name) != nullptr ? name : "/tmp/gp-memif";
  return path;
}

int exit_status = 0;

/// Ends the process with its exit code and without destructors. The interrupt thread of DPDK 22.11
/// sometimes reads a memif device that a destructor or a test case has freed. After the last test
/// case, a crash of that thread says nothing about the port.
void leave_at_once(int status, void*) {
  exit_status = status;
  std::signal(SIGSEGV, [](int) { _exit(exit_status); });
  std::fflush(nullptr);
  std::error_code ignored;
  std::filesystem::remove_all(folder(), ignored);
  _exit(status);
}

}  // namespace

std::unique_ptr<port::Port> open_memif(const char* socket, port::MemifRole role, Ipv4 address,
                                       const port::Steering& steering) {
  port::DpdkPortOptions o;
  o.kind = port::DeviceKind::kMemif;
  o.memif_socket = folder() + "/" + socket;
  o.memif_role = role;
  o.address = address;
  o.mtu = 9000;
  o.memory_mb = 512;
  o.steering = steering;
  auto opened = port::open_dpdk_port(o);
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    std::exit(1);
  }
  return std::move(opened.value());
}

PortPair& ports() {
  static auto left = open_memif("pair", port::MemifRole::kServer, Ipv4{0x0a4d0001});
  static auto right = open_memif("pair", port::MemifRole::kClient, Ipv4{0x0a4d0002});
  static PortPair pair{*left, *right, Ipv4{0x0a4d0063}};
  // Registered after the statics above, so it runs before their destructors.
  [[maybe_unused]] static const int registered = on_exit(leave_at_once, nullptr);
  return pair;
}

Result<PortPair*> ports_with_queues() {
  (void)ports();  // sets up memory and the end of the process
  // Never destroyed, because the destructors of statics here would run before leave_at_once().
  constexpr Ipv4 kLeft{0x0a510001}, kRight{0x0a510002};
  static PortPair pair{*open_memif("queues", port::MemifRole::kServer, kLeft, kSteering).release(),
                       *open_memif("queues", port::MemifRole::kClient, kRight, kSteering).release(),
                       Ipv4{0x0a510063}};
  return &pair;
}

}  // namespace gradplane::conformance
