// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/envelope.h"

#include <algorithm>
#include <vector>

#include "dataplane/base/siphash.h"
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
  // Golden: what other versions rely on.
  const std::vector<std::uint8_t> golden = {0x67, 5,  1,  65,   // magic, version, type, flags
                                            1,    2,  3,  4,    // job
                                            5,    6,  7,  0,    // sender, extension, spare
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
  const Row rows[] = {{"magic", 0, 0x66, ParseError::kBadMagic},
                      {"an older version", 1, 4, ParseError::kBadVersion},
                      {"a newer version", 1, 6, ParseError::kBadVersion},
                      {"no type", 2, 0, ParseError::kBadType},
                      {"an unknown type", 2, 8, ParseError::kBadType},
                      {"an extension without a flag", 3, 0, ParseError::kBadField},
                      {"a flag without an extension", 10, 0, ParseError::kBadField},
                      {"too long an extension", 10, kMaxExtensionWords + 1, ParseError::kBadField},
                      {"spare", 11, 1, ParseError::kBadField}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(why_not(changed(row.at, row.value)) == row.error);
  }
  CHECK(why_not(changed(10, kMaxExtensionWords)) == ParseError::kNone);
}

TEST_CASE("each type of packet has its own flags") {
  struct Row {
    PacketType type;
    std::uint8_t flags;  // that need no extension
  };
  const std::uint8_t of_blocks =
      kFlagCritical | kFlagRetransmission | kFlagLast | kFlagPartial | kFlagBounded | kFlagHop;
  const std::uint8_t of_acks =
      kFlagSlow | kFlagSound | kFlagAllowed | kFlagEnded | kFlagComplete | kFlagClosed;
  const Row rows[] = {{PacketType::kPush, of_blocks},
                      {PacketType::kResult, of_blocks},
                      {PacketType::kPushAck, of_acks},
                      {PacketType::kResultAck, of_acks},
                      {PacketType::kControl, 0},
                      {PacketType::kGrant, 0},
                      {PacketType::kSounding, kFlagAnswer | kFlagSlow}};
  for (const Row& row : rows) {
    for (int bit = 0; bit < 8; ++bit) {
      const auto flag = static_cast<std::uint8_t>(1U << bit);
      CAPTURE(row.type, bit);
      const ParseError expected =
          (row.flags & flag) != 0 ? ParseError::kNone : ParseError::kBadField;
      CHECK(why_not(with_tag({.type = row.type, .flags = flag})) == expected);
    }
  }
}

TEST_CASE("an envelope is read from as few bytes as its type may have") {
  for (const auto type : {PacketType::kPush, PacketType::kGrant, PacketType::kControl}) {
    const std::vector<std::byte> all = with_tag({.type = type});
    const std::size_t least = kEnvelopeBytes + (type == PacketType::kControl ? 0 : kTagBytes);
    for (std::size_t size = 0; size <= all.size(); ++size) {
      CAPTURE(type, size);
      // A copy of exactly this size: a read past its end is seen by the sanitizer.
      const std::vector<std::byte> bytes(all.begin(), all.begin() + static_cast<long>(size));
      CHECK(why_not(bytes) == (size >= least ? ParseError::kNone : ParseError::kTooShort));
    }
  }
}

TEST_CASE("a sealed packet opens for its key, receiver and number alone") {
  const Key key{std::byte{1}};
  const Receiver receiver = Receiver::node(0x0102);
  const std::uint64_t number = 0x1'0000'0007;
  std::vector<std::byte> bytes = with_tag(a_push());
  seal(bytes, key, receiver, number);
  CHECK(number_in(bytes) == 7);
  const auto opened = open(bytes, key, receiver, number);
  REQUIRE(opened);
  CHECK(opened->data() == bytes.data());
  CHECK(opened->size() == bytes.size() - kTagBytes);
  CHECK_FALSE(open(bytes, Key{}, receiver, number));
  CHECK_FALSE(open(bytes, key, receiver, 7));
  CHECK_FALSE(open(bytes, key, receiver, number + (std::uint64_t{1} << 32)));
  CHECK_FALSE(open(std::span(bytes).first(bytes.size() - 1), key, receiver, number));
  for (std::uint16_t id = 0; id < 0x8000; ++id) {
    if (open(bytes, key, Receiver::node(id), number).has_value() != (id == 0x0102)) {
      FAIL("node " << id);
    }
    if (open(bytes, key, Receiver::group(id), number)) FAIL("group " << id);
  }
}

TEST_CASE("every changed bit of a sealed packet makes its tag wrong") {
  const Key key{std::byte{1}};
  const Receiver receiver = Receiver::group(3);
  std::vector<std::byte> bytes = with_tag(a_push());
  seal(bytes, key, receiver, 9);
  REQUIRE(open(bytes, key, receiver, 9));
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto flip = static_cast<std::byte>(1U << (bit % 8));
    bytes[bit / 8] ^= flip;
    const bool opens = open(bytes, key, receiver, 9).has_value();
    bytes[bit / 8] ^= flip;
    if (opens) FAIL("bit " << bit);
  }
}

TEST_CASE("what a tag covers never changes") {
  // Golden: the SipHash-2-4 of receiver, two zeros, the high half of the number and the packet
  // without its tag, which stands at the end.
  const Key key{std::byte{1}};
  std::vector<std::byte> bytes = with_tag(a_push());
  seal(bytes, key, Receiver::group(0x0102), 0x0304'0506'0708'090a);
  const std::uint8_t front[] = {0x81, 2, 0, 0, 3, 4, 5, 6};
  std::vector<std::byte> covered;
  for (const std::uint8_t b : front) covered.push_back(std::byte{b});
  covered.insert(covered.end(), bytes.begin(), bytes.end() - 8);
  CHECK(std::to_integer<int>(bytes[12]) == 7);
  CHECK(std::to_integer<int>(bytes[15]) == 10);
  std::uint64_t tag = 0;
  for (auto at = bytes.end() - 8; at != bytes.end(); ++at) {
    tag = tag << 8 | std::to_integer<std::uint64_t>(*at);
  }
  CHECK(tag == siphash24(key, covered));
}

TEST_CASE("where authentication is off a packet has a number and an empty tag") {
  std::vector<std::byte> bytes = with_tag(a_push());
  number_unsealed(bytes, 0x1'0000'0007);
  CHECK(number_in(bytes) == 7);
  CHECK(std::all_of(bytes.end() - 8, bytes.end(), [](std::byte b) { return b == std::byte{}; }));
  CHECK(open_unsealed(bytes).size() == bytes.size() - 8);
}
