// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/aggregate/bucket.h"
#include "dataplane/model/geometry.h"
#include "dataplane/wire/block.h"

namespace gradplane::job {

/// The statement of a block about its round.
inline Statement statement_of(const wire::BlockHeader& h) {
  return {.type = h.element_type,
          .elements = h.round_elements,
          .bucket = h.bucket,
          .operation = h.operation,
          .source = h.source,
          .reduction = h.reduction};
}

inline bool says_the_same(const wire::BlockHeader& h, const Geometry& g) {
  return h.round_elements == g.elements && h.element_type == g.type && h.bucket == g.bucket &&
         h.operation == g.operation && h.source == g.source && h.reduction == g.reduction;
}

/// The payload bytes of a block, by its header and its round.
inline std::size_t payload_bytes(const wire::BlockHeader& h, const Geometry& g) {
  return h.is_empty() ? 0 : wire_bytes(h.wire_type, g.type, g.elements_in(h.block));
}

/// The number of consecutive blocks in a packet's payload, beginning with the header's block. 0 if
/// the payload is anything else than whole blocks.
inline std::size_t blocks_in(const wire::BlockPacket& packet, const Geometry& g) {
  const wire::BlockHeader& h = packet.header;
  std::span<const std::byte> rest = packet.payload;
  std::size_t count = 0;
  for (std::uint32_t block = h.block; !rest.empty(); ++block, ++count) {
    if (block >= g.blocks) return 0;
    const std::size_t bytes = wire_bytes(h.wire_type, g.type, g.elements_in(block));
    if (bytes > rest.size() || !wire::has_sound_scale(h, rest)) return 0;
    rest = rest.subspan(bytes);
  }
  return count;
}

/// Whether a block may have its wire type. A sender that knows the bucket uses the wire type of the
/// bucket's tensors, or sends plain elements. A receiver that does not know the bucket yet takes
/// any wire type.
inline bool may_go_as(const wire::BlockHeader& h, const aggregate::Bucket* bucket) {
  return h.wire_type == WireType::kElements || bucket == nullptr ||
         bucket->wire_type(h.block) == h.wire_type;
}

}  // namespace gradplane::job
