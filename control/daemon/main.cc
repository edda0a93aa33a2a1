// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstdio>
#include <cstdlib>

#include "control/daemon/command_line.h"

int main(int argc, char** argv) {
  const int code = gradplane::daemon::run(argc, argv);
  // The daemon has ended in order. Threads of DPDK's drivers may still run, and could use a device
  // after the destructors of static objects have freed it. So no destructors run.
  std::fflush(nullptr);
  std::_Exit(code);
}
