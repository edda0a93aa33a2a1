// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <array>

#include "dataplane/port/loopback/loopback.h"
#include "tests/conformance/port_suite.h"

namespace gradplane::conformance {

namespace {

constexpr std::array kAddresses = {Ipv4{0x0a4d0001}, Ipv4{0x0a4d0002}};

}  // namespace

PortPair& ports() {
  static auto network = port::LoopbackNetwork::create(kAddresses, {}).value();
  static auto left = network->open(kAddresses[0]);
  static auto right = network->open(kAddresses[1]);
  static PortPair pair{*left.value(), *right.value(), Ipv4{0x0a4d0063}};
  return pair;
}

Result<PortPair*> ports_with_queues() {
  static auto network = port::LoopbackNetwork::create(kAddresses, {.steering = kSteering}).value();
  static auto left = network->open(kAddresses[0]);
  static auto right = network->open(kAddresses[1]);
  static PortPair pair{*left.value(), *right.value(), Ipv4{0x0a4d0063}};
  return &pair;
}

}  // namespace gradplane::conformance
