// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/ns3/links.h"

#include <ns3/data-rate.h>

namespace gradplane::ns3_host {
namespace {

/// ns-3's point-to-point frames have two bytes of PPP. A gap adds the other bytes of Ethernet.
constexpr std::size_t kPppBytes = 2;

}  // namespace

void set_rate(const ns3::Ptr<ns3::NetDevice>& end, std::uint64_t bits_per_second) {
  const ns3::DataRate rate(bits_per_second);
  end->SetAttribute("DataRate", ns3::DataRateValue(rate));
  end->SetAttribute("InterframeGap",
                    ns3::TimeValue(rate.CalculateBytesTxTime(kFrameBytes - kPppBytes)));
}

}  // namespace gradplane::ns3_host
