// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

#include "tests/conformance/memif.h"
#include "tests/conformance/port_suite.h"

namespace gradplane::conformance {
namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/gp-memif-XXXXXX";
    path = mkdtemp(name) != nullptr ? name : "/tmp";
  }
  ~Folder() { (void)rmdir(path.c_str()); }
  std::string path;
};

}  // namespace

std::unique_ptr<port::Port> open_memif(const char* socket, port::MemifRole role, Ipv4 address) {
  static Folder folder;
  port::DpdkPortOptions o;
  o.kind = port::DeviceKind::kMemif;
  o.memif_socket = folder.path + "/" + socket;
  o.memif_role = role;
  o.address = address;
  o.mtu = 9000;
  o.memory_mb = 512;
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

}  // namespace gradplane::conformance
