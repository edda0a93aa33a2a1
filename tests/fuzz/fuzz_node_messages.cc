// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstdint>
#include <span>

#include "control/protocol/node_messages.h"
#include "control/session/datagram.h"
#include "control/session/plan_codec.h"
#include "dataplane/base/assert.h"

using namespace gradplane;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto message = protocol::parse_node_message(bytes);
  if (message.ok()) {
    const auto again = protocol::parse_node_message(protocol::encode(*message.message));
    GP_ASSERT(again.ok());
    GP_ASSERT(protocol::encode(*again.message) == protocol::encode(*message.message));
    if (const auto* prepare = std::get_if<protocol::Prepare>(&*message.message))
      (void)session::decode_plan(prepare->plan);
  }
  const auto plan = session::decode_plan(bytes);
  if (plan.ok()) {
    const auto encoded = session::encode_plan(plan.value());
    if (encoded.ok()) GP_ASSERT(session::decode_plan(encoded.value()).ok());
  }
  session::Datagram datagram;
  (void)session::decode_datagram({}, bytes, datagram);
  return 0;
}
