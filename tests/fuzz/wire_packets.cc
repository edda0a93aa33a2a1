// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// wire::parse() over any bytes: what it takes is consistent, and writing it gives the same bytes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "dataplane/base/assert.h"
#include "dataplane/wire/packet.h"

using namespace gradplane;

static constexpr std::size_t kVersionOffset = 2;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> copy(data, data + size);  // its end is guarded
  // Whatever the input says: a corpus lives longer than a version, and behind a wrong one there is
  // nothing to see.
  if (size > kVersionOffset) copy[kVersionOffset] = wire::kVersion;
  const auto bytes = std::as_bytes(std::span(copy));
  wire::ParseError error{};
  const auto packet = wire::parse(bytes, error);
  if (!packet) return 0;
  GP_ASSERT(packet->payload.size() + wire::kHeaderBytes == size);

  std::array<std::byte, wire::kHeaderBytes> header;
  wire::write_header(header, packet->header);
  GP_ASSERT(std::equal(header.begin(), header.end(), bytes.begin()));

  const auto type = packet->header.type;
  if (type == wire::PacketType::kPushAck || type == wire::PacketType::kResultAck) {
    wire::AckBody body;
    std::array<std::uint64_t, wire::kMaxAckWords> words;
    const std::size_t count = wire::read_ack(*packet, body, words);
    std::array<std::byte, wire::kMaxAckBytes> out;
    const std::size_t length =
        wire::write_ack(out, packet->header, body, std::span(words).first(count));
    GP_ASSERT(length == size && std::equal(bytes.begin(), bytes.end(), out.begin()));
  }
  if (type == wire::PacketType::kGrant) {
    std::array<std::byte, wire::kHeaderBytes + wire::kGrantBodyBytes> out;
    const std::size_t length = wire::write_grant(out, packet->header, wire::read_grant(*packet));
    GP_ASSERT(length == size && std::equal(bytes.begin(), bytes.end(), out.begin()));
  }
  (void)wire::is_authentic(bytes, {}, wire::Receiver::node(0));
  return 0;
}
