// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/port/port.h"

namespace gradplane::port {

std::string_view port_drop_name(PortDrop drop) {
  switch (drop) {
    case PortDrop::kNotForUs:
      return "not_for_us";
    case PortDrop::kNotUdp:
      return "not_udp";
    case PortDrop::kBadHeader:
      return "bad_header";
    case PortDrop::kBadChecksum:
      return "bad_checksum";
    case PortDrop::kWrongVlan:
      return "wrong_vlan";
    case PortDrop::kNoNeighbour:
      return "no_neighbour";
    case PortDrop::kTxFull:
      return "tx_full";
    case PortDrop::kNoBuffer:
      return "no_buffer";
    case PortDrop::kTooLong:
      return "too_long";
    case PortDrop::kAddressConflict:
      return "address_conflict";
    case PortDrop::kCount:
      break;
  }
  return "unknown";
}

}  // namespace gradplane::port
