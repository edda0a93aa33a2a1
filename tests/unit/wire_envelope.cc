// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/envelope.h"

#include <algorithm>
#include <vector>

#include "dataplane/wire/extension.h"
#include "dataplane/wire/seal.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::wire;

namespace {

constexpr std::size_t kBodyBytes = 13;

std::vector<std::byte> with_tag(const Envelope& envelope) {
  std::vector<std::byte> bytes(kEnvelopeBytes + kBodyBytes + kTagBytes, std::byte{0x5a});
  write_envelope(bytes, envelope);
  return bytes;
}

Envelope a_push() {
  return {.type = PacketType::kPush,
          .flags = kFlagCritical | kFlagCoverage,
          .job = 0x01020304,
          .sender = 0x0506,
          .extension_words = 7,
          .parity_rows = 17,
          .number = 0x08090a0b,
          .timestamp_us = 0x0c0d0e0f};
}

std::vector<std::byte> changed(std::size_t at, std::uint8_t value) {
  std::vector<std::byte> bytes = with_tag(a_push());
  bytes[at] = std::byte{value};
  return bytes;
}

ParseError why_not(const std::vector<std::byte>& bytes) {
  Envelope envelope;
  return read_envelope(bytes, envelope);
}

std::uint32_t number_in(const std::vector<std::byte>& bytes) {
  Envelope envelope;
  REQUIRE(read_envelope(bytes, envelope) == ParseError::kNone);
  return envelope.number;
}

}  // namespace

TEST_CASE("the bytes of an envelope never change") {
  // Golden bytes, on which other versions rely.
  const std::vector<std::uint8_t> golden = {0x67, 7,  1,  65,   // magic, version, type, flags
                                            1,    2,  3,  4,    // job
                                            5,    6,  7,  17,   // sender, extension, parity rows
                                            8,    9,  10, 11,   // packet number
                                            12,   13, 14, 15};  // timestamp
  const std::vector<std::byte> bytes = with_tag(a_push());
  for (std::size_t i = 0; i < golden.size(); ++i) {
    CAPTURE(i);
    CHECK(std::to_integer<int>(bytes[i]) == golden[i]);
  }
  CHECK(golden.size() == kEnvelopeBytes);
}

TEST_CASE("an envelope comes back as it was written") {
  Envelope e;
  REQUIRE(read_envelope(with_tag(a_push()), e) == ParseError::kNone);
  CHECK(e.type == PacketType::kPush);
  CHECK(e.flags == (kFlagCritical | kFlagCoverage));
  CHECK(e.job == 0x01020304);
  CHECK(e.sender == 0x0506);
  CHECK(e.extension_words == 7);
  CHECK(e.parity_rows == 17);
  CHECK(e.number == 0x08090a0b);
  CHECK(e.timestamp_us == 0x0c0d0e0f);
}

TEST_CASE("what is not an envelope is refused for its reason") {
  struct Row {
    const char* what;
    std::size_t at;
    std::uint8_t value;
    ParseError error;
  };
  const Row rows[] = {
      {"magic", 0, 0x66, ParseError::kBadMagic},
      {"an older version", 1, 6, ParseError::kBadVersion},
      {"a newer version", 1, 8, ParseError::kBadVersion},
      {"no type", 2, 0, ParseError::kBadType},
      {"an unknown type", 2, 10, ParseError::kBadType},
      {"an extension without a flag", 3, 0, ParseError::kBadField},
      {"a flag without an extension", 10, 0, ParseError::kBadField},
      {"too long an extension", 10, kMaxExtensionWords + 1, ParseError::kBadField},
      {"more rows than there can be", 11, kMaxParityRows + 1, ParseError::kBadField}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(why_not(changed(row.at, row.value)) == row.error);
  }
  CHECK(why_not(changed(10, kMaxExtensionWords)) == ParseError::kNone);
}

TEST_CASE("each type of packet has its own flags") {
  struct Row {
    PacketType type;
    std::uint8_t flags;  // flags that need no extension
  };
  const std::uint8_t of_blocks =
      kFlagCritical | kFlagRetransmission | kFlagLast | kFlagPartial | kFlagBounded | kFlagHop;
  const std::uint8_t of_acks =
      kFlagSlow | kFlagSound | kFlagAllowed | kFlagEnded | kFlagComplete | kFlagClosed;
  const std::uint8_t of_parity = kFlagLast | kFlagBounded | kFlagHop;
  const Row rows[] = {{PacketType::kPush, of_blocks},
                      {PacketType::kResult, of_blocks},
                      {PacketType::kPushAck, of_acks},
                      {PacketType::kResultAck, of_acks},
                      {PacketType::kControl, 0},
                      {PacketType::kGrant, 0},
                      {PacketType::kSounding, kFlagAnswer | kFlagSlow},
                      {PacketType::kPushParity, of_parity},
                      {PacketType::kResultParity, of_parity}};
  for (const Row& row : rows) {
    for (int bit = 0; bit < 8; ++bit) {
      const auto flag = static_cast<std::uint8_t>(1U << bit);
      CAPTURE(row.type, bit);
      const ParseError expected =
          (row.flags & flag) != 0 ? ParseError::kNone : ParseError::kBadField;
      const std::uint8_t parity_rows = is_parity(row.type) ? 1 : 0;
      CHECK(why_not(with_tag({.type = row.type, .flags = flag, .parity_rows = parity_rows})) ==
            expected);
    }
  }
}

TEST_CASE("blocks may have rows of parity, parity has some, and nothing else has any") {
  for (std::uint8_t t = 1; t <= static_cast<std::uint8_t>(PacketType::kResultParity); ++t) {
    const auto type = static_cast<PacketType>(t);
    const auto with_rows = [&](std::size_t rows) {
      return why_not(with_tag({.type = type, .parity_rows = static_cast<std::uint8_t>(rows)}));
    };
    CAPTURE(t);
    const bool may_have = is_block(type) || is_parity(type);
    constexpr auto kGood = ParseError::kNone;
    constexpr auto kBad = ParseError::kBadField;
    CHECK(with_rows(0) == (is_parity(type) ? kBad : kGood));
    CHECK(with_rows(1) == (may_have ? kGood : kBad));
    CHECK(with_rows(kMaxParityRows) == (may_have ? kGood : kBad));
    CHECK(with_rows(kMaxParityRows + 1) == kBad);
  }
}

TEST_CASE("an envelope is read from as few bytes as its type may have") {
  for (const auto type : {PacketType::kPush, PacketType::kGrant, PacketType::kControl}) {
    const std::vector<std::byte> all = with_tag({.type = type});
    const std::size_t least = kEnvelopeBytes + (type == PacketType::kControl ? 0 : kTagBytes);
    for (std::size_t size = 0; size <= all.size(); ++size) {
      CAPTURE(type, size);
      // The copy has exactly this size, so AddressSanitizer sees a read past its end.
      const std::vector<std::byte> bytes(all.begin(), all.begin() + static_cast<long>(size));
      CHECK(why_not(bytes) == (size >= least ? ParseError::kNone : ParseError::kTooShort));
    }
  }
}

TEST_CASE("a sealed packet opens for its key, writer, receiver and number alone") {
  const Gmac key(Key{std::byte{1}});
  const PacketName name{0x0304, Receiver::node(0x0102), 0x1'0000'0007};
  const auto with_number = [&](std::uint64_t number) {
    return PacketName{name.writer, name.receiver, number};
  };
  std::vector<std::byte> bytes = with_tag(a_push());
  seal(bytes, key, name);
  CHECK(number_in(bytes) == 7);
  const auto opened = open(bytes, key, name);
  REQUIRE(opened);
  CHECK(opened->data() == bytes.data());
  CHECK(opened->size() == bytes.size() - kTagBytes);
  CHECK_FALSE(open(bytes, Gmac(Key{}), name));
  CHECK_FALSE(open(bytes, key, with_number(7)));
  CHECK_FALSE(open(bytes, key, with_number(name.number + (std::uint64_t{1} << 32))));
  CHECK_FALSE(open(std::span(bytes).first(bytes.size() - 1), key, name));
  for (std::uint16_t id = 0; id < 0x8000; ++id) {
    const PacketName to_node{name.writer, Receiver::node(id), name.number};
    if (open(bytes, key, to_node).has_value() != (id == 0x0102)) FAIL("node " << id);
    const PacketName to_group{name.writer, Receiver::group(id), name.number};
    if (open(bytes, key, to_group)) FAIL("group " << id);
    const PacketName from{id, name.receiver, name.number};
    if (open(bytes, key, from).has_value() != (id == 0x0304)) FAIL("writer " << id);
  }
}

TEST_CASE("every changed bit of a sealed packet makes its tag wrong") {
  const Gmac key(Key{std::byte{1}});
  const PacketName name{2, Receiver::group(3), 9};
  std::vector<std::byte> bytes = with_tag(a_push());
  seal(bytes, key, name);
  REQUIRE(open(bytes, key, name));
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto flip = static_cast<std::byte>(1U << (bit % 8));
    bytes[bit / 8] ^= flip;
    const bool opens = open(bytes, key, name).has_value();
    bytes[bit / 8] ^= flip;
    if (opens) FAIL("bit " << bit);
  }
}

TEST_CASE("what a tag covers never changes") {
  // Golden: the tag at the end is the first half of the GMAC of the packet without the tag. The
  // nonce is writer, receiver and number.
  const Gmac key(Key{std::byte{1}});
  std::vector<std::byte> bytes = with_tag(a_push());
  seal(bytes, key, {0x0b0c, Receiver::group(0x0102), 0x0304'0506'0708'090a});
  CHECK(std::to_integer<int>(bytes[12]) == 7);
  CHECK(std::to_integer<int>(bytes[15]) == 10);
  const std::uint8_t name[] = {0x0b, 0x0c, 0x81, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  Gmac::Nonce nonce;
  std::transform(std::begin(name), std::end(name), nonce.begin(),
                 [](std::uint8_t b) { return std::byte{b}; });
  const Gmac::Tag tag = key.tag(nonce, std::span(bytes).first(bytes.size() - 8));
  CHECK(std::equal(bytes.end() - 8, bytes.end(), tag.begin()));
}

TEST_CASE("where authentication is off a packet has a number and an empty tag") {
  std::vector<std::byte> bytes = with_tag(a_push());
  number_unsealed(bytes, 0x1'0000'0007);
  CHECK(number_in(bytes) == 7);
  CHECK(std::all_of(bytes.end() - 8, bytes.end(), [](std::byte b) { return b == std::byte{}; }));
  CHECK(open_unsealed(bytes).size() == bytes.size() - 8);
}
