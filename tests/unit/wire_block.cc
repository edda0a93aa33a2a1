// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/block.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "dataplane/wire/seal.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::wire;

namespace {

constexpr std::uint64_t kCoverage[] = {0x5152535455565758, 0x6162636465666768};
constexpr std::uint16_t kRoute[] = {0x7172, 0x7374, 0x7576, 0x7778};
constexpr std::size_t kPayloadBytes = 24;

struct ABlock {
  Envelope envelope = {.type = PacketType::kPush,
                       .flags = kFlagRetransmission,
                       .job = 0x01020304,
                       .sender = 0x0506,
                       .number = 0x0708090a,
                       .timestamp_us = 0x0b0c0d0e};
  BlockHeader header = {.epoch = 0x1112,
                        .bucket = 0x0314,
                        .round = 0x15161718,
                        .tree = 0x19,
                        .block = 0x1a1b,
                        .round_elements = 0x1c1d1e1f,
                        .contributors = 0x2021,
                        .element_type = ElementType::kBfloat16};
  std::optional<HopFeedback> hop =
      HopFeedback{.sent_blocks = 0x31323334, .waiting_blocks = 0x3536, .round_trip = 0x3738};
  ExtensionFields extension = {};
  std::size_t payload_bytes = kPayloadBytes;

  /// Returns the packet without its tag.
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> out(kMaxDatagramBytes, std::byte{0xee});
    out.resize(write_block(out, envelope, header, hop ? &*hop : nullptr, extension) +
               payload_bytes);
    return out;
  }
};

/// Reads a block. The envelope is read from a datagram with a tag.
std::optional<BlockPacket> read(const std::vector<std::byte>& bytes, ParseError& error) {
  std::vector<std::byte> datagram = bytes;
  datagram.resize(bytes.size() + kTagBytes);
  Envelope envelope;
  BlockPacket packet;
  error = read_envelope(datagram, envelope);
  if (error == ParseError::kNone) error = read_block(envelope, bytes, packet);
  return error == ParseError::kNone ? std::optional(packet) : std::nullopt;
}

ParseError why_not(const std::vector<std::byte>& bytes) {
  ParseError error{};
  REQUIRE_FALSE(read(bytes, error));
  return error;
}

void check_bytes(const std::vector<std::byte>& bytes, const std::vector<std::uint8_t>& golden) {
  REQUIRE(bytes.size() == golden.size() + kPayloadBytes);
  for (std::size_t i = 0; i < golden.size(); ++i) {
    CAPTURE(i);
    CHECK(std::to_integer<int>(bytes[i]) == golden[i]);
  }
}

struct Row {
  const char* what;
  void (*change)(ABlock&);
  std::optional<ParseError> error;
};
constexpr auto kField = ParseError::kBadField;
constexpr auto kLength = ParseError::kBadLength;

void check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.what);
    ABlock block;
    row.change(block);
    ParseError error{};
    const std::vector<std::byte> bytes = block.bytes();
    CHECK(read(bytes, error).has_value() == !row.error);
    if (row.error) CHECK(error == *row.error);
  }
}

void gathers(ABlock& block) {
  block.header.operation = Operation::kAllGather;
  block.header.bucket = 0;
}

}  // namespace

TEST_CASE("the bytes of a block to one node never change") {
  check_bytes(
      ABlock{}.bytes(),
      {
          0x67, 7,    1,    34,   1,    2,    3,    4,    5,  6,
          0,    0,    7,    8,    9,    10,   11,   12,   13, 14,  // envelope
          0x11, 0x12, 0x03, 0x14, 0x15, 0x16, 0x17, 0x18,          // epoch, bucket, round
          0x19, 0,    0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,  // tree, patience, block, round elements
          0x20, 0x21, 0x10, 4,                             // contributors, operation, element type
          0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38   // hop
      });
}

TEST_CASE("the bytes of a block to a group, with all that it may carry, never change") {
  ABlock block;
  block.envelope.type = PacketType::kResult;
  block.hop.reset();
  block.extension = {.coverage = kCoverage, .route = kRoute, .route_next = 3};
  check_bytes(block.bytes(),
              {0x67, 7,    2,    194,  1,    2,    3,    4,    5,    6,    4,    0, 7, 8,
               9,    10,   11,   12,   13,   14,                // envelope
               0x11, 0x12, 0x03, 0x14, 0x15, 0x16, 0x17, 0x18,  // as above
               0x19, 0,    0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x10, 4, 4, 3,
               0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0,    0,    0,    0, 0, 0,  // route
               0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,  // coverage
               0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68});
}

TEST_CASE("the bytes that name an operation and what it is about never change") {
  struct Row {
    Operation operation;
    std::uint8_t kinds;
    std::uint16_t bucket;
    std::uint16_t source;
    std::uint16_t subject;
  };
  for (const Row& row :
       {Row{Operation::kAllReduce, 0x10, 0x0314, 0, 0x0314},
        Row{Operation::kReduceScatter, 0x20, 0, 0, 0}, Row{Operation::kAllGather, 0x30, 0, 0, 0},
        Row{Operation::kBroadcast, 0x40, 0, 0x0203, 0x0203},
        Row{Operation::kExchange, 0x50, 0x0f14, 5, 0xaf14},
        Row{Operation::kExchange, 0x50, kMaxBuckets, kMaxSelections - 1, 0xf000}}) {
    ABlock block;
    block.header.operation = row.operation;
    block.header.bucket = row.bucket;
    block.header.source = row.source;
    const std::vector<std::byte> bytes = block.bytes();
    CHECK(bytes[38] == std::byte{row.kinds});
    CHECK(bytes[22] == std::byte(row.subject >> 8));
    CHECK(bytes[23] == std::byte(row.subject & 0xff));
    ParseError error{};
    const BlockHeader got = read(bytes, error).value_or(BlockPacket{}).header;
    CHECK(got.operation == row.operation);
    CHECK(got.bucket == row.bucket);
    CHECK(got.source == row.source);
  }
}

TEST_CASE("a block comes back as it was written") {
  const bool has_hop = GENERATE(true, false);
  const std::size_t coverage = GENERATE(std::size_t{0}, 1, kMaxCoverageWords);
  const std::size_t route = GENERATE(std::size_t{0}, 1, 3, 4, kMaxRouteNodes);
  std::vector<std::uint64_t> words(coverage);
  std::vector<std::uint16_t> nodes(route);
  for (std::size_t i = 0; i < coverage; ++i) words[i] = ~(std::uint64_t{i} << 40);
  for (std::size_t i = 0; i < route; ++i) nodes[i] = static_cast<std::uint16_t>(0x0100 + i);
  ABlock sent;
  if (!has_hop) sent.hop.reset();
  sent.extension = {
      .coverage = words, .route = nodes, .route_next = static_cast<std::uint8_t>(route)};
  const std::vector<std::byte> bytes = sent.bytes();
  ParseError error{};
  const auto got = read(bytes, error);
  REQUIRE(got);
  CHECK(got->header.epoch == sent.header.epoch);
  CHECK(got->header.bucket == sent.header.bucket);
  CHECK(got->header.round == sent.header.round);
  CHECK(got->header.tree == sent.header.tree);
  CHECK(got->header.block == sent.header.block);
  CHECK(got->header.round_elements == sent.header.round_elements);
  CHECK(got->header.contributors == sent.header.contributors);
  CHECK(got->header.operation == Operation::kAllReduce);
  CHECK(got->header.wire_type == WireType::kElements);
  CHECK(got->header.element_type == ElementType::kBfloat16);
  REQUIRE(got->has_hop == has_hop);
  if (has_hop) {
    CHECK(got->hop.sent_blocks == 0x31323334);
    CHECK(got->hop.waiting_blocks == 0x3536);
    CHECK(got->hop.round_trip == 0x3738);
  }
  REQUIRE(got->extension.coverage.size() == coverage);
  for (std::size_t i = 0; i < coverage; ++i) CHECK(got->extension.coverage[i] == words[i]);
  REQUIRE(got->extension.route.size() == route);
  for (std::size_t i = 0; i < route; ++i) CHECK(got->extension.route[i] == nodes[i]);
  CHECK(got->extension.route_next == route);
  CHECK(got->payload.size() == kPayloadBytes);
  CHECK(got->payload.data() == bytes.data() + bytes.size() - kPayloadBytes);
}

TEST_CASE("a header is the same for every receiver but for the hop") {
  ABlock one;
  ABlock other;
  other.hop = HopFeedback{};
  const std::vector<std::byte> a = one.bytes();
  const std::vector<std::byte> b = other.bytes();
  CHECK(std::equal(a.begin(), a.begin() + 40, b.begin()));
}

TEST_CASE("a block packet costs 48 bytes besides its tag, and leaves a coverage word free") {
  ABlock block;
  block.header.element_type = ElementType::kFloat32;
  block.payload_bytes = kDefaultBlockBytes;
  CHECK(block.bytes().size() == 48 + kDefaultBlockBytes);
  block.extension.coverage = std::span(kCoverage).first(1);
  CHECK(block.bytes().size() + kTagBytes == 1472);
}

TEST_CASE("what is not a block is refused for its reason") {
  const std::vector<Row> rows = {
      {"the last bucket", [](ABlock& b) { b.header.bucket = kMaxBuckets; }, std::nullopt},
      {"a bucket after the last", [](ABlock& b) { b.header.bucket = kMaxBuckets + 1; }, kField},
      {"an empty round", [](ABlock& b) { b.header.round_elements = 0; }, kField},
      {"no contributors", [](ABlock& b) { b.header.contributors = 0; }, kField},
      {"no contributors to a partial push",
       [](ABlock& b) {
         b.header.contributors = 0;
         b.envelope.flags = kFlagPartial;
       },
       std::nullopt},
      {"no contributors to a full result",
       [](ABlock& b) {
         b.header.contributors = 0;
         b.envelope.type = PacketType::kResult;
       },
       kField},
      {"no contributors to a partial result",
       [](ABlock& b) {
         b.header.contributors = 0;
         b.envelope.type = PacketType::kResult;
         b.envelope.flags = kFlagPartial;
       },
       std::nullopt},
      {"no operation", [](ABlock& b) { b.header.operation = Operation{0}; }, kField},
      {"an unknown operation", [](ABlock& b) { b.header.operation = Operation{15}; }, kField},
      {"an unknown wire type", [](ABlock& b) { b.header.wire_type = WireType{4}; }, kField},
      {"no element type", [](ABlock& b) { b.header.element_type = ElementType{0}; }, kField},
      {"an unknown element type", [](ABlock& b) { b.header.element_type = ElementType{7}; },
       kField},
      {"no payload", [](ABlock& b) { b.payload_bytes = 0; }, kLength},
      {"half an element", [](ABlock& b) { b.payload_bytes = 23; }, kLength},
      {"the largest payload", [](ABlock& b) { b.payload_bytes = kMaxBlockBytes; }, std::nullopt},
      {"a larger payload", [](ABlock& b) { b.payload_bytes = kMaxBlockBytes + 2; }, kLength},
  };
  check(rows);
}

TEST_CASE("what no operation carries is refused for its reason") {
  check({
      {"an empty push of an all_gather",
       [](ABlock& b) {
         gathers(b);
         b.header.contributors = 0;
         b.envelope.flags = kFlagPartial;
         b.payload_bytes = 0;
       },
       std::nullopt},
      {"an empty push that does not say that it is partial",
       [](ABlock& b) {
         gathers(b);
         b.header.contributors = 0;
         b.payload_bytes = 0;
       },
       kField},
      {"an empty push with a payload",
       [](ABlock& b) {
         gathers(b);
         b.header.contributors = 0;
         b.envelope.flags = kFlagPartial;
       },
       kLength},
      {"a block of an all_gather without a payload",
       [](ABlock& b) {
         gathers(b);
         b.payload_bytes = 0;
       },
       kLength},
      {"a bucket of an all_gather",
       [](ABlock& b) {
         gathers(b);
         b.header.bucket = 1;
       },
       kField},
      {"the last rank as a source",
       [](ABlock& b) {
         b.header.operation = Operation::kBroadcast;
         b.header.source = kMaxRanks - 1;
       },
       std::nullopt},
      {"a source after the last rank",
       [](ABlock& b) {
         b.header.operation = Operation::kBroadcast;
         b.header.source = kMaxRanks;
       },
       kField},
      {"an exchange of a bucket after the last",
       [](ABlock& b) {
         b.header.operation = Operation::kExchange;
         b.header.bucket = kMaxBuckets + 1;
       },
       kField},
      {"the operation after the last", [](ABlock& b) { b.header.operation = Operation{6}; },
       kField},
  });
}

TEST_CASE("an extension that contradicts itself is refused") {
  ABlock block;
  block.extension = {.coverage = kCoverage, .route = std::span(kRoute).first(2), .route_next = 2};
  constexpr std::size_t kAt = 48;  // one word of route, two of coverage
  const auto with = [&](std::size_t at, std::uint8_t value) {
    std::vector<std::byte> bytes = block.bytes();
    bytes[at] = std::byte{value};
    return bytes;
  };
  CHECK(why_not(with(kAt, 0)) == ParseError::kBadField);                   // no nodes
  CHECK(why_not(with(kAt, kMaxRouteNodes + 1)) == ParseError::kBadField);  // too many nodes
  CHECK(why_not(with(kAt, 12)) == ParseError::kBadField);                  // more nodes than fit
  CHECK(why_not(with(kAt, 11)) == ParseError::kBadField);     // no room for the coverage
  CHECK(why_not(with(kAt + 1, 3)) == ParseError::kBadField);  // beyond the route
  CHECK(why_not(with(kAt + 6, 1)) == ParseError::kBadField);  // padding
  CHECK(why_not(with(10, 1)) == ParseError::kBadField);       // no words for the coverage
  CHECK(why_not(with(3, kFlagHop | kFlagRoute)) == ParseError::kBadField);  // words without a flag
  block.extension = {.coverage = kCoverage};
  block.payload_bytes = kMaxExtensionWords * 8;
  CHECK(why_not(with(10, kMaxCoverageWords + 1)) == ParseError::kBadField);
}

TEST_CASE("a route has at least one node, and no more than there may be") {
  ABlock block;
  block.envelope.flags = kFlagRoute;
  block.envelope.extension_words = 1;
  block.hop.reset();
  std::vector<std::byte> bytes = block.bytes();
  std::fill_n(bytes.begin() + 40, 8, std::byte{});  // an empty route instead of payload
  CHECK(why_not(bytes) == ParseError::kBadField);
  bytes[40] = std::byte{1};
  ParseError error{};
  CHECK(read(bytes, error));

  // One node more than the maximum takes the first word of the coverage set.
  const std::vector<std::uint16_t> nodes(kMaxRouteNodes, 1);
  std::vector<std::uint64_t> words(kMaxCoverageWords);
  block.extension = {.coverage = words, .route = nodes, .route_next = 0};
  bytes = block.bytes();
  REQUIRE(read(bytes, error));
  bytes[40] = std::byte{kMaxRouteNodes + 1};
  CHECK(why_not(bytes) == ParseError::kBadField);
}

TEST_CASE("nothing of a block is left in the value that the next one is read into") {
  ABlock block;
  block.extension = {.coverage = kCoverage, .route = kRoute, .route_next = 3};
  Envelope envelope = block.envelope;
  BlockPacket packet;
  const std::vector<std::byte> first = block.bytes();
  envelope.flags = kFlagHop | kFlagCoverage | kFlagRoute;
  envelope.extension_words = 4;
  REQUIRE(read_block(envelope, first, packet) == ParseError::kNone);
  block.extension = {};
  block.hop.reset();
  const std::vector<std::byte> second = block.bytes();
  REQUIRE(read_block(block.envelope, second, packet) == ParseError::kNone);
  CHECK_FALSE(packet.has_hop);
  CHECK(packet.hop.sent_blocks == 0);
  CHECK(packet.extension.coverage.empty());
  CHECK(packet.extension.route.empty());
  CHECK(packet.extension.route_next == 0);
  CHECK(packet.payload.size() == kPayloadBytes);
}

TEST_CASE("a block that is cut anywhere is refused") {
  ABlock block;
  block.header.element_type = ElementType::kFloat64;
  block.payload_bytes = 8;
  block.extension = {.coverage = kCoverage, .route = kRoute, .route_next = 0};
  const std::vector<std::byte> all = block.bytes();
  ParseError error{};
  for (std::size_t size = kEnvelopeBytes; size < all.size(); ++size) {
    CAPTURE(size);
    const std::vector<std::byte> bytes(all.begin(), all.begin() + static_cast<long>(size));
    CHECK(why_not(bytes) == ParseError::kBadLength);
  }
  CHECK(read(all, error));
}
