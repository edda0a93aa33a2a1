// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/protocol/packet_rows.h"

namespace gradplane::testing {
namespace {

using hop::Drop;

Row malformed(std::string description, PacketBuilder packet) {
  return {std::move(description), {}, std::move(packet), {.drop = Drop::kMalformed}};
}

}  // namespace

// docs/wire-protocol.md has the offsets of fields. The tag of a packet is valid after write(), and
// invalid after poke() or a cut.
Rows envelope_rows(const TableNode& n) {
  const PacketBuilder push = n.push(2, 0, 4);
  const PacketBuilder ack = n.push_ack();
  const auto cut = [&](std::size_t bytes) { return PacketBuilder(push).cut_to(bytes); };
  const auto with = [&](std::size_t offset, std::uint8_t value) {
    return PacketBuilder(push).write(offset, value);
  };
  const auto sized = [&](std::ptrdiff_t more) { return PacketBuilder(push).longer_by(more); };
  const std::vector<std::byte> largest(kMaxBlockBytes + 4);
  return {
      malformed("empty", cut(0)),
      malformed("one byte", cut(1)),
      malformed("an envelope less a byte", cut(wire::kEnvelopeBytes - 1)),
      malformed("an envelope and a tag less a byte",
                cut(wire::kEnvelopeBytes + wire::kTagBytes - 1)),
      malformed("an envelope alone", sized(-512 - 28)),
      malformed("half a header", sized(-512 - 14)),
      malformed("a header alone", sized(-512)),
      malformed("a byte less than whole elements", sized(-1)),
      malformed("a byte more than whole elements", sized(1)),
      malformed("another magic", with(0, 0)),
      malformed("an older version", with(1, wire::kVersion - 1)),
      malformed("a newer version", with(1, wire::kVersion + 1)),
      malformed("no type", with(2, 0)),
      malformed("an unknown type", with(2, 10)),
      malformed("a flag without an extension", PacketBuilder(push).flags(wire::kFlagCoverage)),
      malformed("an extension without a flag", with(10, 1)),
      malformed("more rows of parity than there can be", with(11, wire::kMaxParityRows + 1)),
      malformed("an ack with rows of parity", PacketBuilder(ack).write(11, 1)),
      malformed("a patience in a push of no bucket", with(29, 1)),
      malformed("an unknown operation", with(38, 0xf0)),
      malformed("an unknown wire type", with(38, 0x1f)),
      malformed("no element type", with(39, 0)),
      malformed("an unknown element type", with(39, 7)),
      malformed("an unknown reduction", with(39, 0x41)),
      malformed("a bucket that there cannot be", with(22, 0xff)),
      malformed("a block without elements", PacketBuilder(push).payload({})),
      malformed("a block of no rank", PacketBuilder(push).contributors(0)),
      malformed("a block of an empty bucket", PacketBuilder(push).round_elements(0)),
      malformed("a block larger than any", PacketBuilder(push).payload(largest)),
      malformed("an ack with a flag of blocks", PacketBuilder(ack).flags(wire::kFlagCritical)),
      malformed("an ack with more words than it names",
                PacketBuilder(ack).words(0, {1}).longer_by(8)),
      malformed("an ack with fewer words than it names",
                PacketBuilder(ack).words(0, {1}).longer_by(-8)),
      malformed("an ack that begins beyond every round", PacketBuilder(ack).words(129, {})),
      malformed("an ack that ends beyond every round", PacketBuilder(ack).words(128, {1})),
      malformed("an ack whose end overflows", PacketBuilder(ack).words(0xffff, {1})),
      malformed("a control message that is too long",
                PacketBuilder::control(kMaxControlBytes + 1).sender(2)),
      {"a grant where nobody grants",
       {},
       PacketBuilder::grant({}, {.total_blocks = 5, .unscheduled_blocks = 1}).sender(2),
       {.drop = Drop::kBadGrant}},
      {"a grant that was for another node",
       {},
       PacketBuilder::grant({}, {.total_blocks = 5, .unscheduled_blocks = 1}).sender(2).receiver(3),
       {.drop = Drop::kBadTag}},
      malformed("a grant that is too long", PacketBuilder::grant({}, {}).sender(2).longer_by(1)),
      {"a control message", {}, PacketBuilder::control(kMaxControlBytes).sender(2), {}},
      {"an empty control message", {}, PacketBuilder::control(0).sender(2), {}},
      {"a control message under another's name",
       {},
       PacketBuilder::control(8).sender(2),
       {.drop = Drop::kUnknownNode},
       3},
  };
}

}  // namespace gradplane::testing
