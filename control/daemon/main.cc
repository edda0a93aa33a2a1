// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstdio>
#include <cstdlib>

#include "control/daemon/command_line.h"

int main(int argc, char** argv) {
  const int code = gradplane::daemon::run(argc, argv);
  // The daemon has ended in order. Threads of DPDK's drivers may still run, and now and then they
  // touch a device that process-wide destructors have freed.
  std::fflush(nullptr);
  std::_Exit(code);
}
