// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/ack.h"

#include <optional>
#include <vector>

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::wire;

namespace {

constexpr std::uint16_t kRoute[] = {0x7172, 0x7374, 0x7576};
constexpr std::uint64_t kWords[] = {0x8182838485868788, 0x9192939495969798};

struct AnAck {
  Envelope envelope = {.type = PacketType::kResultAck,
                       .flags = kFlagEnded,
                       .job = 0x01020304,
                       .sender = 0x0506,
                       .number = 0x0708090a,
                       .timestamp_us = 0x0b0c0d0e};
  AckHeader header = {.epoch = 0x1112, .tree = 0x13, .round = 0x15161718, .first_word = 0x19};
  AckBody body = {.loss = 0x1b1c,
                  .echo_us = 0x21222324,
                  .ack_delay_us = 0x25262728,
                  .unscheduled_blocks = 0x292a2b2c,
                  .total_blocks = 0x2d2e2f30,
                  .marked_packets = 0x31323334,
                  .oldest_round = 0x35363738};
  std::vector<std::uint64_t> words = {kWords[0], kWords[1]};
  ExtensionFields extension = {};

  /// Returns the packet without its tag.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> out(kMinMtuPayloadBytes);
    out.resize(write_ack(out, envelope, header, body, words, extension) - kTagBytes);
    return out;
  }
};

std::optional<AckPacket> read(const std::vector<std::byte>& bytes, ParseError& error) {
  std::vector<std::byte> datagram = bytes;
  datagram.resize(bytes.size() + kTagBytes);
  Envelope envelope;
  AckPacket packet;
  error = read_envelope(datagram, envelope);
  if (error == ParseError::kNone) error = read_ack(envelope, bytes, packet);
  return error == ParseError::kNone ? std::optional(packet) : std::nullopt;
}

ParseError why_not(const std::vector<std::byte>& bytes) {
  ParseError error{};
  REQUIRE_FALSE(read(bytes, error));
  return error;
}

void check_bytes(const std::vector<std::byte>& bytes, const std::vector<std::uint8_t>& golden) {
  REQUIRE(bytes.size() == golden.size());
  for (std::size_t i = 0; i < golden.size(); ++i) {
    CAPTURE(i);
    CHECK(std::to_integer<int>(bytes[i]) == golden[i]);
  }
}

}  // namespace

TEST_CASE("the bytes of an ack never change") {
  check_bytes(
      AnAck{}.bytes(),
      {0x67, 7, 4, 16, 1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12, 13, 14,  // envelope
       0x11, 0x12, 0x13, 0, 0x15, 0x16, 0x17, 0x18, 0x19, 2, 0x1b, 0x1c,     // epoch, tree, round,
                                                                             // words, loss
       0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,                       // echo, delay
       0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f, 0x30,                       // unscheduled, total
       0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,                       // marked, oldest round
       0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88,                       // bitmap
       0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98});
}

TEST_CASE("the bytes of a grant never change") {
  std::vector<std::byte> bytes(kGrantBytes);
  const Envelope envelope{.type = PacketType::kGrant, .job = 1, .sender = 2, .number = 3};
  const Grant grant{.epoch = 0x1112, .total_blocks = 0x13141516, .unscheduled_blocks = 0x1718191a};
  CHECK(write_grant(bytes, envelope, grant) == kGrantBytes);
  bytes.resize(kGrantBytes - kTagBytes);
  check_bytes(
      bytes,
      {
          0x67, 7,    6, 0, 0,    0,    0,    1,    0,    2,    0,    0,
          0,    0,    0, 3, 0,    0,    0,    0,                            // envelope
          0x11, 0x12, 0, 0, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a  // epoch, spare, blocks
      });
  Grant got;
  REQUIRE(read_grant(bytes, got) == ParseError::kNone);
  CHECK(got.epoch == grant.epoch);
  CHECK(got.total_blocks == grant.total_blocks);
  CHECK(got.unscheduled_blocks == grant.unscheduled_blocks);
}

TEST_CASE("an ack comes back as it was written, up to the longest") {
  const std::size_t words = GENERATE(std::size_t{0}, 1, kMaxAckWords - 1, kMaxAckWords);
  const bool is_routed = GENERATE(false, true);
  AnAck sent;
  sent.words.resize(words);
  for (std::size_t i = 0; i < words; ++i) sent.words[i] = ~(std::uint64_t{i} << 40);
  sent.header.first_word = static_cast<std::uint16_t>(kMaxAckWords - words);
  if (is_routed) sent.extension = {.coverage = {}, .route = kRoute, .route_next = 1};
  const std::vector<std::byte> bytes = sent.bytes();
  if (!is_routed) CHECK(bytes.size() + kTagBytes <= kMaxAckBytes);
  ParseError error{};
  const auto got = read(bytes, error);
  REQUIRE(got);
  CHECK(got->header.epoch == sent.header.epoch);
  CHECK(got->header.tree == sent.header.tree);
  CHECK(got->header.round == sent.header.round);
  CHECK(got->header.first_word == sent.header.first_word);
  CHECK(got->body.loss == sent.body.loss);
  CHECK(got->body.echo_us == sent.body.echo_us);
  CHECK(got->body.ack_delay_us == sent.body.ack_delay_us);
  CHECK(got->body.unscheduled_blocks == sent.body.unscheduled_blocks);
  CHECK(got->body.total_blocks == sent.body.total_blocks);
  CHECK(got->body.marked_packets == sent.body.marked_packets);
  CHECK(got->body.oldest_round == sent.body.oldest_round);
  CHECK(got->extension.route.size() == (is_routed ? 3 : 0));
  REQUIRE(got->words.size() == words);
  for (std::size_t i = 0; i < words; ++i) CHECK(got->words[i] == sent.words[i]);
}

TEST_CASE("what is not an ack is refused for its reason") {
  AnAck ack;
  ack.header.first_word = kMaxAckWords - 2;
  ParseError error{};
  CHECK(read(ack.bytes(), error));
  ack.header.first_word = kMaxAckWords - 1;
  CHECK(why_not(ack.bytes()) == ParseError::kBadField);
  ack.header.first_word = UINT16_MAX;
  CHECK(why_not(ack.bytes()) == ParseError::kBadField);
  ack = AnAck{};
  ack.header.first_word = 0;
  ack.words.resize(kMaxAckWords + 1);
  CHECK(why_not(ack.bytes()) == ParseError::kBadField);
  std::vector<std::byte> bytes = AnAck{}.bytes();
  bytes[23] = std::byte{kMaxPaths};
  CHECK(why_not(bytes) == ParseError::kBadField);
  bytes[23] = std::byte{kMaxPaths - 1};
  REQUIRE(read(bytes, error));
  CHECK(read(bytes, error)->header.path == kMaxPaths - 1);
  bytes = AnAck{}.bytes();
  bytes.push_back(std::byte{});
  CHECK(why_not(bytes) == ParseError::kBadLength);
}

TEST_CASE("nothing of an ack is left in the value that the next one is read into") {
  AnAck ack;
  ack.extension = {.coverage = {}, .route = kRoute, .route_next = 1};
  const std::vector<std::byte> first = ack.bytes();
  Envelope envelope = ack.envelope;
  envelope.flags = kFlagRoute;
  envelope.extension_words = 1;
  AckPacket packet;
  REQUIRE(read_ack(envelope, first, packet) == ParseError::kNone);
  const std::vector<std::byte> second = AnAck{}.bytes();
  REQUIRE(read_ack(ack.envelope, second, packet) == ParseError::kNone);
  CHECK(packet.extension.route.empty());
  CHECK(packet.words.size() == 2);
}

TEST_CASE("an ack that is cut anywhere is refused") {
  AnAck ack;
  ack.extension = {.coverage = {}, .route = kRoute, .route_next = 1};
  const std::vector<std::byte> all = ack.bytes();
  for (std::size_t size = kEnvelopeBytes; size < all.size(); ++size) {
    CAPTURE(size);
    const std::vector<std::byte> bytes(all.begin(), all.begin() + static_cast<long>(size));
    CHECK(why_not(bytes) == ParseError::kBadLength);
  }
}

TEST_CASE("a grant of another length, or with something in its spare bytes, is refused") {
  std::vector<std::byte> all(kGrantBytes);
  (void)write_grant(all, {.type = PacketType::kGrant}, {});
  const std::size_t right = kGrantBytes - kTagBytes;
  for (std::size_t size = kEnvelopeBytes; size <= kGrantBytes; ++size) {
    CAPTURE(size);
    const std::vector<std::byte> bytes(all.begin(), all.begin() + static_cast<long>(size));
    Grant got;
    const ParseError expected = size == right ? ParseError::kNone : ParseError::kBadLength;
    CHECK(read_grant(bytes, got) == expected);
  }
  for (const std::size_t spare : {std::size_t{22}, std::size_t{23}}) {
    std::vector<std::byte> bytes(all.begin(), all.begin() + static_cast<long>(right));
    bytes[spare] = std::byte{1};
    Grant got;
    CHECK(read_grant(bytes, got) == ParseError::kBadField);
  }
}
