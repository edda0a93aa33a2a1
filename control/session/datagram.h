// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/model/limits.h"

/// The body of a control datagram between two daemons, in network byte order:
///
///   0 tag u64                        SipHash-2-4 of the rest, under the cluster key
///   8 version u8, flags u8
///  10 source u16, destination u16    node ids
///  14 source incarnation u64         identifies the sender since its start
///  22 destination incarnation u64    identifies the receiver; 0: not known yet
///  30 timestamp u64, echo u64        the sender's clock; the timestamp of the receiver that it
///                                    answers
///  46 acknowledged u32               the next frame that the sender expects
///  50 selective u32                  bit i: frame acknowledged + 1 + i has arrived
///  54 sequence u32                   the number of the frame in the body
///  58 body                           a frame: a piece of a message
namespace gradplane::session {

using ClusterKey = std::array<std::byte, 16>;

inline constexpr std::uint8_t kDatagramVersion = 14;
inline constexpr std::size_t kDatagramHeaderBytes = 58;
inline constexpr std::size_t kMaxFrameBytes = kMaxControlBytes - kDatagramHeaderBytes;

/// Bits of Datagram::flags.
inline constexpr std::uint8_t kHasFrame = 1;    // sequence and body are set
inline constexpr std::uint8_t kFirstFrame = 2;  // of a message
inline constexpr std::uint8_t kLastFrame = 4;   // of a message
inline constexpr std::uint8_t kWantsReply = 8;  // a ping
inline constexpr std::uint8_t kGoodbye = 16;    // the sender ends, and with it the conversation
inline constexpr std::uint8_t kAllFlags = 31;

struct Datagram {
  std::uint8_t flags = 0;
  api::NodeId source = api::kNoNode;
  api::NodeId destination = api::kNoNode;
  std::uint64_t source_incarnation = 0;
  std::uint64_t destination_incarnation = 0;
  std::uint64_t timestamp = 0;
  std::uint64_t echo = 0;
  std::uint32_t acknowledged = 0;
  std::uint32_t selective = 0;
  std::uint32_t sequence = 0;
  std::span<const std::byte> body;  // after decoding it points into the decoded bytes
};

/// Why a datagram was dropped. Each reason has a counter.
enum class DatagramDrop : std::uint8_t {
  kTruncated,  // shorter than a header, or longer than any control message
  kBadTag,     // forged, damaged, or of another cluster
  kBadVersion,
  kBadFlags,
  kNotForUs,          // another destination, or a source that is not in the node list
  kStaleIncarnation,  // for an earlier incarnation of ours
  kUnproven,          // from a new incarnation that has not echoed a timestamp of ours yet
  kBeyondWindow,      // a frame that cannot be taken yet
  kDuplicate,         // a frame that has come already
  kBadMessage,        // a frame or message that no honest peer sends
  kNotExpected,       // a message that this node, in its role, does not take from this peer
  kStalePlan,         // a message about a plan that came twice, late or out of order
  kBadSample,         // a sample that no honest node reports, or for which there is no room
  kStaleTerm,         // sent in a term that is over
  kCount,
};
std::string_view datagram_drop_name(DatagramDrop drop);

std::vector<std::byte> encode_datagram(const ClusterKey& key, const Datagram& datagram);

/// Decodes a datagram. It checks the tag before anything else. kCount: `out` is filled.
DatagramDrop decode_datagram(const ClusterKey& key, std::span<const std::byte> bytes,
                             Datagram& out);

}  // namespace gradplane::session
