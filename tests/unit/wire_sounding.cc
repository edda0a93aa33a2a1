// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/sounding.h"

#include <algorithm>
#include <vector>

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::wire;

namespace {

constexpr std::size_t kBlockBytes = 64;

std::vector<std::byte> written(const Sounding& sounding) {
  const auto flags = static_cast<std::uint8_t>(sounding.is_answer ? kFlagAnswer : 0);
  std::vector<std::byte> out(sounding_bytes(kBlockBytes), std::byte{0xff});
  out.resize(write_sounding(out,
                            {.type = PacketType::kSounding,
                             .flags = flags,
                             .job = 0x01020304,
                             .sender = 0x0506,
                             .number = 0x0708090a,
                             .timestamp_us = 0x0b0c0d0e},
                            sounding));
  return out;
}

ParseError read(std::vector<std::byte> datagram, Sounding& out) {
  Envelope envelope;
  const ParseError error = read_envelope(datagram, envelope);
  if (error != ParseError::kNone) return error;
  datagram.resize(datagram.size() - kTagBytes);
  return read_sounding(envelope, datagram, out);
}

constexpr Sounding kOurs = {.epoch = 0x1112, .round_trip = 0x1314, .number = 0x15161718};
constexpr Sounding kAnswer = {
    .epoch = 0x1112, .number = 0x15161718, .echo_us = 0x191a1b1c, .is_answer = true};

}  // namespace

TEST_CASE("the bytes of a sounding and of its answer never change") {
  for (const bool is_answer : {false, true}) {
    const std::vector<std::byte> bytes = written(is_answer ? kAnswer : kOurs);
    const std::vector<std::uint8_t> golden = {0x67,
                                              7,
                                              7,
                                              static_cast<std::uint8_t>(is_answer ? 1 : 0),
                                              1,
                                              2,
                                              3,
                                              4,
                                              5,
                                              6,
                                              0,
                                              0,
                                              7,
                                              8,
                                              9,
                                              10,
                                              11,
                                              12,
                                              13,
                                              14,
                                              0x11,
                                              0x12,
                                              static_cast<std::uint8_t>(is_answer ? 0 : 0x13),
                                              static_cast<std::uint8_t>(is_answer ? 0 : 0x14),
                                              0x15,
                                              0x16,
                                              0x17,
                                              0x18,
                                              static_cast<std::uint8_t>(is_answer ? 0x19 : 0),
                                              static_cast<std::uint8_t>(is_answer ? 0x1a : 0),
                                              static_cast<std::uint8_t>(is_answer ? 0x1b : 0),
                                              static_cast<std::uint8_t>(is_answer ? 0x1c : 0)};
    REQUIRE(bytes.size() == (is_answer ? kSoundingAnswerBytes : sounding_bytes(kBlockBytes)));
    for (std::size_t i = 0; i + kTagBytes < bytes.size(); ++i) {
      CAPTURE(is_answer, i);
      CHECK(std::to_integer<int>(bytes[i]) == (i < golden.size() ? golden[i] : 0));
    }
  }
}

TEST_CASE("a sounding's packet is as long as one with a full block") {
  CHECK(sounding_bytes(kDefaultBlockBytes) == kDefaultBlockBytes + kBlockOverheadBytes);
}

TEST_CASE("soundings and answers are read as they were written") {
  Sounding out;
  REQUIRE(read(written(kOurs), out) == ParseError::kNone);
  CHECK_FALSE(out.is_answer);
  CHECK(out.epoch == kOurs.epoch);
  CHECK(out.round_trip == kOurs.round_trip);
  CHECK(out.number == kOurs.number);
  REQUIRE(read(written(kAnswer), out) == ParseError::kNone);
  CHECK(out.is_answer);
  CHECK(out.number == kAnswer.number);
  CHECK(out.echo_us == kAnswer.echo_us);
}

TEST_CASE("what is no sounding is refused for its reason") {
  Sounding out;
  std::vector<std::byte> bytes = written(kAnswer);
  bytes[3] = std::byte{0};
  CHECK(read(bytes, out) == ParseError::kBadLength);  // a sounding needs padding
  bytes = written(kOurs);
  bytes[3] = std::byte{kFlagAnswer};
  CHECK(read(bytes, out) == ParseError::kBadLength);  // padding behind an answer
  bytes = written(kOurs);
  bytes[31] = std::byte{1};
  CHECK(read(bytes, out) == ParseError::kBadField);  // only answers carry an echo
  bytes = written(kOurs);
  bytes[3] = std::byte{kFlagSound};
  CHECK(read(bytes, out) == ParseError::kBadField);
  bytes[3] = std::byte{kFlagSlow};
  CHECK(read(bytes, out) == ParseError::kBadField);  // only answers may have this flag
  for (const Sounding& nothing : {kOurs, kAnswer}) {
    bytes = written(nothing);
    std::fill_n(bytes.begin() + 24, 4, std::byte{0});
    CHECK(read(bytes, out) == ParseError::kBadField);  // soundings are numbered from 1 on
  }
  bytes = written(kAnswer);
  bytes.pop_back();
  CHECK(read(bytes, out) == ParseError::kBadLength);
  bytes = written(kOurs);
  bytes.resize(sounding_bytes(kMaxBlockBytes));
  CHECK(read(bytes, out) == ParseError::kNone);
  bytes.resize(sounding_bytes(kMaxBlockBytes) + 1);
  CHECK(read(bytes, out) == ParseError::kBadLength);
}
