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

// Where each field lies: docs/wire-protocol.md.
Rows envelope_rows(const TableNode& n) {
  const PacketBuilder push = n.push(2, 0, 4);
  const PacketBuilder ack = n.push_ack();
  const auto with = [&](std::size_t offset, std::uint8_t value) {
    return PacketBuilder(push).poke(offset, value);
  };
  const std::vector<std::byte> largest(kMaxBlockBytes + 4);
  return {
      malformed("empty", PacketBuilder(push).cut_to(0)),
      malformed("one byte", PacketBuilder(push).cut_to(1)),
      malformed("half a header", PacketBuilder(push).cut_to(wire::kHeaderBytes - 1)),
      malformed("a header alone", PacketBuilder(push).cut_to(wire::kHeaderBytes)),
      malformed("one byte short", PacketBuilder(push).cut_to(wire::kHeaderBytes + 511)),
      malformed("one byte long", PacketBuilder(push).longer_by(1)),
      malformed("another magic", with(0, 0)),
      malformed("an older version", with(2, 1)),
      malformed("a newer version", with(2, wire::kVersion + 1)),
      malformed("no type", with(3, 0)),
      malformed("an unknown type", with(3, 7)),
      malformed("a longer header", with(5, 64)),
      malformed("no element type", with(6, 0)),
      malformed("an unknown element type", with(6, 7)),
      malformed("a bucket that there cannot be", with(30, 0xff)),
      malformed("a block without elements", PacketBuilder(push).elements(0).payload({})),
      malformed("a block of no rank", PacketBuilder(push).contributors(0)),
      malformed("a block of an empty bucket", PacketBuilder(push).round_elements(0)),
      malformed("a block larger than any",
                PacketBuilder(push).elements(kMaxBlockBytes / 4 + 1).payload(largest)),
      malformed("an ack with more words than it names",
                PacketBuilder(ack).words(0, {1}).longer_by(8)),
      malformed("an ack with fewer words than it names",
                PacketBuilder(ack).words(0, {1}).cut_to(wire::kHeaderBytes + wire::kAckBodyBytes)),
      malformed("an ack that begins beyond every round", PacketBuilder(ack).words(129, {})),
      malformed("an ack that ends beyond every round", PacketBuilder(ack).words(128, {1})),
      malformed("an ack whose end overflows", PacketBuilder(ack).words(0xffff'ffff, {1})),
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
