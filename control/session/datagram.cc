// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/datagram.h"

#include <algorithm>

#include "dataplane/base/assert.h"
#include "dataplane/base/bytes.h"
#include "dataplane/base/siphash.h"

namespace gradplane::session {

std::string_view datagram_drop_name(DatagramDrop drop) {
  switch (drop) {
    case DatagramDrop::kTruncated:
      return "truncated";
    case DatagramDrop::kBadTag:
      return "bad_tag";
    case DatagramDrop::kBadVersion:
      return "bad_version";
    case DatagramDrop::kBadFlags:
      return "bad_flags";
    case DatagramDrop::kNotForUs:
      return "not_for_us";
    case DatagramDrop::kStaleIncarnation:
      return "stale_incarnation";
    case DatagramDrop::kUnproven:
      return "unproven";
    case DatagramDrop::kBeyondWindow:
      return "beyond_window";
    case DatagramDrop::kDuplicate:
      return "duplicate";
    case DatagramDrop::kBadMessage:
      return "bad_message";
    case DatagramDrop::kNotExpected:
      return "not_expected";
    case DatagramDrop::kStalePlan:
      return "stale_plan";
    case DatagramDrop::kBadSample:
      return "bad_sample";
    case DatagramDrop::kStaleTerm:
      return "stale_term";
    case DatagramDrop::kCount:
      break;
  }
  return "?";
}

std::vector<std::byte> encode_datagram(const ClusterKey& key, const Datagram& d) {
  GP_ASSERT(d.body.size() <= kMaxFrameBytes);
  std::vector<std::byte> bytes(kDatagramHeaderBytes + d.body.size());
  const std::span<std::byte> all(bytes);
  const std::span<std::byte> tagged = all.subspan(sizeof(std::uint64_t));
  ByteWriter out(tagged);
  out.write(kDatagramVersion);
  out.write(d.flags);
  out.write(d.source);
  out.write(d.destination);
  out.write(d.source_incarnation);
  out.write(d.destination_incarnation);
  out.write(d.timestamp);
  out.write(d.echo);
  out.write(d.acknowledged);
  out.write(d.selective);
  out.write(d.sequence);
  GP_ASSERT(out.size() + sizeof(std::uint64_t) == kDatagramHeaderBytes);
  std::copy(d.body.begin(), d.body.end(), bytes.begin() + kDatagramHeaderBytes);
  ByteWriter(all).write(siphash24(key, tagged));
  return bytes;
}

DatagramDrop decode_datagram(const ClusterKey& key, std::span<const std::byte> bytes,
                             Datagram& out) {
  if (bytes.size() < kDatagramHeaderBytes || bytes.size() > kMaxControlBytes)
    return DatagramDrop::kTruncated;
  const std::uint64_t tag = ByteReader(bytes).read<std::uint64_t>();
  const std::span<const std::byte> tagged = bytes.subspan(sizeof tag);
  if (tag != siphash24(key, tagged)) return DatagramDrop::kBadTag;

  ByteReader in(tagged);
  if (in.read<std::uint8_t>() != kDatagramVersion) return DatagramDrop::kBadVersion;
  out.flags = in.read<std::uint8_t>();
  out.source = in.read<api::NodeId>();
  out.destination = in.read<api::NodeId>();
  out.source_incarnation = in.read<std::uint64_t>();
  out.destination_incarnation = in.read<std::uint64_t>();
  out.timestamp = in.read<std::uint64_t>();
  out.echo = in.read<std::uint64_t>();
  out.acknowledged = in.read<std::uint32_t>();
  out.selective = in.read<std::uint32_t>();
  out.sequence = in.read<std::uint32_t>();
  out.body = in.rest();
  GP_ASSERT(in.ok());

  const bool has_frame = (out.flags & kHasFrame) != 0;
  if ((out.flags & ~kAllFlags) != 0 || has_frame == out.body.empty() || out.source_incarnation == 0)
    return DatagramDrop::kBadFlags;
  return DatagramDrop::kCount;
}

}  // namespace gradplane::session
