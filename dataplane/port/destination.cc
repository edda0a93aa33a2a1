// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/destination.h"

namespace gradplane::port {

std::string to_text(Ipv4 a) {
  return std::to_string(a.value >> 24) + "." + std::to_string((a.value >> 16) & 0xff) + "." +
         std::to_string((a.value >> 8) & 0xff) + "." + std::to_string(a.value & 0xff);
}

}  // namespace gradplane::port
