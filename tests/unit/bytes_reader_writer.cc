// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <array>

#include "dataplane/base/bytes.h"
#include "tests/support/catch.h"

using namespace gradplane;

TEST_CASE("numbers are written most significant byte first and come back") {
  std::array<std::byte, 15> bytes{};
  ByteWriter out(bytes);
  out.write(std::uint8_t{0x01});
  out.write(std::uint16_t{0x0203});
  out.write(std::uint32_t{0x04050607});
  out.write(std::uint64_t{0x08090a0b0c0d0e0f});
  REQUIRE(out.ok());
  REQUIRE(out.size() == 15);
  for (std::size_t i = 0; i < 15; ++i) CHECK(std::to_integer<std::size_t>(bytes[i]) == i + 1);
  ByteReader in(bytes);
  CHECK(in.read<std::uint8_t>() == 0x01);
  CHECK(in.read<std::uint16_t>() == 0x0203);
  CHECK(in.read<std::uint32_t>() == 0x04050607);
  CHECK(in.read<std::uint64_t>() == 0x08090a0b0c0d0e0f);
  CHECK(in.rest().empty());
  CHECK(in.ok());
}

TEST_CASE("a read past the end gives zero and is remembered") {
  const std::array<std::byte, 3> bytes{std::byte{1}, std::byte{2}, std::byte{3}};
  ByteReader in(bytes);
  CHECK(in.read<std::uint32_t>() == 0);
  CHECK_FALSE(in.ok());
  CHECK(in.read<std::uint16_t>() == 0x0102);
  CHECK_FALSE(in.ok());
}

TEST_CASE("a write past the end touches nothing and is remembered") {
  std::array<std::byte, 4> bytes{};
  ByteWriter out(std::span<std::byte>(bytes).first(3));
  out.write(~std::uint32_t{0});
  CHECK_FALSE(out.ok());
  CHECK(out.size() == 0);
  CHECK(bytes == std::array<std::byte, 4>{});
}
