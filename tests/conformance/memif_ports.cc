// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/conformance/memif.h"
#include "tests/conformance/port_suite.h"

namespace gradplane::conformance {
namespace {

/// The folder of the sockets. It is made once, and goes after all ports.
const std::string& folder() {
  struct Folder {
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    char name[32] = "/tmp/gp-memif-XXXXXX";
    std::string path = mkdtemp(name) != nullptr ? name : "/tmp/gp-memif";
  };
  static const Folder made;
  return made.path;
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
  return pair;
}

Result<PortPair*> ports_with_queues() {
  (void)ports();  // sets up memory
  static auto left = open_memif("queues", port::MemifRole::kServer, Ipv4{0x0a510001}, kSteering);
  static auto right = open_memif("queues", port::MemifRole::kClient, Ipv4{0x0a510002}, kSteering);
  static PortPair pair{*left, *right, Ipv4{0x0a510063}};
  return &pair;
}

}  // namespace gradplane::conformance
