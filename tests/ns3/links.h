// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <ns3/net-device.h>
#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "dataplane/base/time.h"

/// Conversions between ns-3's time and links and gradplane's units.
namespace gradplane::ns3_host {

/// Bytes of a frame on the wire besides the IP packet: Ethernet with checksum, preamble and gap.
inline constexpr std::size_t kFrameBytes = 38;

inline ns3::Time time_of(Duration duration) {
  return ns3::NanoSeconds(static_cast<std::uint64_t>(duration.count_ns()));
}

/// The virtual clock.
inline Instant now() {
  return Instant::from_ns(ns3::Simulator::Now().GetNanoSeconds());
}

/// A queue's size in ns-3's format.
inline std::string bytes_text(std::size_t bytes) {
  return std::to_string(bytes) + "B";
}

/// Sets the rate of one end of a point-to-point link. A frame then takes as long as an Ethernet
/// frame with the same packet.
void set_rate(const ns3::Ptr<ns3::NetDevice>& end, std::uint64_t bits_per_second);

}  // namespace gradplane::ns3_host
