// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "control/protocol/node_messages.h"
#include "control/session/bucket_tables.h"
#include "control/session/datagram.h"
#include "control/session/plan_codec.h"
#include "dataplane/base/assert.h"

using namespace gradplane;

namespace {

/// A table from a collector must be one that can be sent on, and that nodes can gather.
void check_table_part(std::span<const std::byte> bytes) {
  auto part = session::decode_table_part(bytes);
  if (!part.ok()) return;
  session::TableCollector collector;
  auto table = collector.add(std::move(part.value()));
  if (!table.ok() || !table.value()) return;
  std::uint64_t end = 0;
  for (const api::BoundedTensor& tensor : table.value()->tensors) {
    GP_ASSERT(tensor.elements > 0 && tensor.offset_elements >= end);
    GP_ASSERT(tensor.bound >= 0 && tensor.bound <= kMaxBound);
    end = std::uint64_t{tensor.offset_elements} + tensor.elements;
  }
  GP_ASSERT(end <= table.value()->elements);
  GP_ASSERT(table.value()->elements <= kMaxRoundBytes / element_bytes(table.value()->type));
  for (const std::vector<std::byte>& again : session::encode_table(*table.value()))
    GP_ASSERT(session::decode_table_part(again).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto message = protocol::parse_node_message(bytes);
  if (message.ok()) {
    const auto again = protocol::parse_node_message(protocol::encode(*message.message));
    GP_ASSERT(again.ok());
    GP_ASSERT(protocol::encode(*again.message) == protocol::encode(*message.message));
    if (const auto* prepare = std::get_if<protocol::Prepare>(&*message.message))
      (void)session::decode_plan(prepare->plan);
    if (const auto* describe = std::get_if<protocol::DescribeBucket>(&*message.message))
      check_table_part(describe->part);
  }
  check_table_part(bytes);
  const auto plan = session::decode_plan(bytes);
  if (plan.ok()) {
    const auto encoded = session::encode_plan(plan.value());
    if (encoded.ok()) GP_ASSERT(session::decode_plan(encoded.value()).ok());
  }
  session::Datagram datagram;
  (void)session::decode_datagram({}, bytes, datagram);
  return 0;
}
