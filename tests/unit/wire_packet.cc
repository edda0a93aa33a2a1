// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <vector>

#include "dataplane/base/siphash.h"
#include "dataplane/wire/packet.h"
#include "tests/support/catch.h"
#include "tests/support/packet.h"

using namespace gradplane;
using gradplane::testing::PacketBuilder;
using wire::ParseError;

namespace {

PacketBuilder::Round a_round() {
  return {.job = 0x01020304,
          .epoch = 0x05060708,
          .id = 0x090a0b0c,
          .geometry = Geometry::of(ElementType::kBfloat16, 1000, kMinBlockBytes)};
}

PacketBuilder a_push() {
  return PacketBuilder::block(wire::PacketType::kPush, a_round(), 3)
      .tree(0x21)
      .sender(0x2223)
      .contributors(0x2425)
      .bucket(0x0b0c)
      .timestamp_us(0x26272829)
      .demand(0x2a2b2c2d, 0x2e2f)
      .round_trip(0x3031);
}

ParseError why_not(const std::vector<std::byte>& bytes) {
  ParseError error{};
  REQUIRE_FALSE(wire::parse(bytes, error));
  return error;
}

}  // namespace

TEST_CASE("the bytes of a header never change") {
  // Golden: what other versions rely on. 1000 elements in blocks of 256: block 3 has 232.
  const std::vector<std::uint8_t> golden = {
      0x67, 0x70, 4,    1,
      1,    56,   4,    0x21,  // magic, version, type, flags, length, element, tree
      1,    2,    3,    4,
      5,    6,    7,    8,  // job, epoch
      9,    10,   11,   12,
      0,    0,    0,    3,  // round, block
      0x22, 0x23, 0,    232,
      0x24, 0x25, 0x0b, 0x0c,  // sender, elements, contributors, bucket
      0x26, 0x27, 0x28, 0x29,
      0,    0,    3,    0xe8,  // timestamp, round elements
      0x2a, 0x2b, 0x2c, 0x2d,
      0x2e, 0x2f, 0x30, 0x31,  // sent, waiting, round trip
      0,    0,    0,    0,
      0,    0,    0,    0};  // tag
  const std::vector<std::byte> bytes = a_push().bytes();
  REQUIRE(bytes.size() == 56 + 464);
  for (std::size_t i = 0; i < golden.size(); ++i) {
    CAPTURE(i);
    CHECK(std::to_integer<int>(bytes[i]) == golden[i]);
  }
}

TEST_CASE("a block comes back as it was written") {
  ParseError error{};
  const std::vector<std::byte> bytes = a_push().flags(0xff).bytes();
  const auto packet = wire::parse(bytes, error);
  REQUIRE(packet);
  const wire::Header& h = packet->header;
  CHECK(h.type == wire::PacketType::kPush);
  CHECK(h.flags == 0xff);
  CHECK(h.element_type == ElementType::kBfloat16);
  CHECK(h.tree == 0x21);
  CHECK(h.job == 0x01020304);
  CHECK(h.epoch == 0x05060708);
  CHECK(h.round == 0x090a0b0c);
  CHECK(h.block == 3);
  CHECK(h.sender == 0x2223);
  CHECK(h.elements == 232);
  CHECK(h.contributors == 0x2425);
  CHECK(h.bucket == 0x0b0c);
  CHECK(h.timestamp_us == 0x26272829);
  CHECK(h.round_elements == 1000);
  CHECK(h.sent_blocks == 0x2a2b2c2d);
  CHECK(h.waiting_blocks == 0x2e2f);
  CHECK(h.round_trip == 0x3031);
  CHECK(packet->payload.data() == bytes.data() + wire::kHeaderBytes);
  CHECK(packet->payload.size() == 464);
}

TEST_CASE("an ack comes back as it was written, up to the longest") {
  const std::size_t words = GENERATE(0u, 1u, 127u, 128u);
  std::vector<std::uint64_t> sent(words);
  for (std::size_t i = 0; i < words; ++i) sent[i] = ~(std::uint64_t{i} << 40);
  const auto first = static_cast<std::uint32_t>(wire::kMaxAckWords - words);
  const std::vector<std::byte> bytes = PacketBuilder::ack(wire::PacketType::kResultAck, a_round())
                                           .words(first, sent)
                                           .echo_us(7)
                                           .ack_delay_us(8)
                                           .marked_packets(0x090a0b0c)
                                           .bytes();
  CHECK(bytes.size() <= wire::kMaxAckBytes);
  ParseError error{};
  const auto packet = wire::parse(bytes, error);
  REQUIRE(packet);
  wire::AckBody body;
  std::array<std::uint64_t, wire::kMaxAckWords> got{};
  REQUIRE(wire::read_ack(*packet, body, got) == words);
  CHECK(std::vector<std::uint64_t>(got.begin(), got.begin() + static_cast<long>(words)) == sent);
  CHECK(packet->header.block == first);
  CHECK(body.echo_us == 7);
  CHECK(body.ack_delay_us == 8);
  CHECK(body.marked_packets == 0x090a0b0c);
  CHECK(std::to_integer<int>(bytes[40]) == 9);  // in the header
}

TEST_CASE("a grant comes back as it was written") {
  const wire::GrantBody sent{.total_blocks = 0x01020304, .unscheduled_blocks = 0x05060708};
  const std::vector<std::byte> bytes = PacketBuilder::grant(a_round(), sent).bytes();
  CHECK(bytes.size() == wire::kHeaderBytes + wire::kGrantBodyBytes);
  ParseError error{};
  const auto packet = wire::parse(bytes, error);
  REQUIRE(packet);
  CHECK(packet->header.type == wire::PacketType::kGrant);
  const wire::GrantBody got = wire::read_grant(*packet);
  CHECK(got.total_blocks == sent.total_blocks);
  CHECK(got.unscheduled_blocks == sent.unscheduled_blocks);
}

TEST_CASE("what is not a packet is refused for its reason") {
  struct Row {
    const char* what;
    PacketBuilder packet;
    ParseError error;
  };
  const auto ack = PacketBuilder::ack(wire::PacketType::kPushAck, a_round());
  const Row rows[] = {
      {"short", a_push().cut_to(55), ParseError::kTooShort},
      {"magic", a_push().poke(1, 0), ParseError::kBadMagic},
      {"version", a_push().poke(2, 1), ParseError::kBadVersion},
      {"no type", a_push().poke(3, 0), ParseError::kBadType},
      {"type", a_push().poke(3, 7), ParseError::kBadType},
      {"header length", a_push().poke(5, 48), ParseError::kBadHeaderLength},
      {"element type", a_push().poke(6, 7), ParseError::kBadField},
      {"bucket", a_push().bucket(kMaxBuckets + 1), ParseError::kBadField},
      {"bucket of an ack", PacketBuilder(ack).bucket(1), ParseError::kBadField},
      {"bucket of a control message", PacketBuilder::control(1).bucket(1), ParseError::kBadField},
      {"no contributors to a partial push", a_push().contributors(0).flags(wire::kFlagPartial),
       ParseError::kBadField},
      {"no contributors to a full result", a_push().type(wire::PacketType::kResult).contributors(0),
       ParseError::kBadField},
      {"no elements", a_push().elements(0).payload({}), ParseError::kBadField},
      {"no contributors", a_push().contributors(0), ParseError::kBadField},
      {"empty bucket", a_push().round_elements(0), ParseError::kBadField},
      {"long", a_push().longer_by(1), ParseError::kBadLength},
      {"truncated", a_push().cut_to(56 + 463), ParseError::kBadLength},
      {"another width", a_push().element_type(ElementType::kFloat32), ParseError::kBadLength},
      {"ack too far", PacketBuilder(ack).words(129, {}), ParseError::kBadField},
      {"ack end", PacketBuilder(ack).words(128, {1}), ParseError::kBadField},
      {"ack overflow", PacketBuilder(ack).words(0xffff'ffff, {1}), ParseError::kBadField},
      {"ack truncated", PacketBuilder(ack).cut_to(56 + 15), ParseError::kBadLength},
      {"long grant", PacketBuilder::grant(a_round(), {}).longer_by(1), ParseError::kBadLength},
      {"short grant", PacketBuilder::grant(a_round(), {}).cut_to(56 + 7), ParseError::kBadLength},
      {"control", PacketBuilder::control(kMaxControlBytes + 1), ParseError::kBadLength},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(why_not(row.packet.bytes()) == row.error);
  }
}

TEST_CASE("every changed bit of a packet makes its tag wrong") {
  const wire::Key key{std::byte{1}};
  const auto receiver = wire::Receiver::node(0x0102);
  std::vector<std::byte> bytes = a_push().key(key).receiver(0x0102).bytes();
  REQUIRE(wire::is_authentic(bytes, key, receiver));
  CHECK_FALSE(wire::is_authentic(bytes, wire::Key{}, receiver));
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto flip = static_cast<std::byte>(1U << (bit % 8));
    bytes[bit / 8] ^= flip;
    const bool authentic = wire::is_authentic(bytes, key, receiver);
    bytes[bit / 8] ^= flip;
    if (authentic) FAIL("bit " << bit);
  }
  CHECK_FALSE(wire::is_authentic(std::span(bytes).first(bytes.size() - 1), key, receiver));
}

TEST_CASE("a tag is one receiver's alone") {
  const wire::Key key{std::byte{1}};
  const auto ack = PacketBuilder::ack(wire::PacketType::kPushAck, a_round());
  const auto grant = PacketBuilder::grant(a_round(), {});
  const auto result = a_push().type(wire::PacketType::kResult);
  for (const PacketBuilder& packet : {a_push(), result, ack, grant}) {
    const std::vector<std::byte> bytes = PacketBuilder(packet).key(key).receiver(0x0102).bytes();
    for (std::uint32_t node = 0; node <= UINT16_MAX; ++node) {
      const auto receiver = wire::Receiver::node(static_cast<std::uint16_t>(node));
      if (wire::is_authentic(bytes, key, receiver) != (node == 0x0102)) FAIL("node " << node);
    }
  }
}

TEST_CASE("what a tag covers never changes") {
  // Golden: the SipHash-2-4 of the packet in which the receiver's number stands in network order in
  // the place of the tag.
  const wire::Key key{std::byte{1}};
  const auto ack = PacketBuilder::ack(wire::PacketType::kPushAck, a_round()).sender(9);
  const std::vector<std::byte> tagged = PacketBuilder(ack).key(key).receiver(0x0102).bytes();
  const std::vector<std::byte> covered = PacketBuilder(ack).poke(54, 1).poke(55, 2).bytes();
  std::uint64_t tag = 0;
  for (std::size_t i = 48; i < 56; ++i) tag = tag << 8 | std::to_integer<std::uint64_t>(tagged[i]);
  CHECK(tag == siphash24(key, covered));
}
