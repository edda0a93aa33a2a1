// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/units.h"

#include "tests/support/catch.h"

using namespace gradplane::config;

TEST_CASE("numbers with units are exact") {
  CHECK(parse_with_unit("4 MiB", size_units()) == std::int64_t{4} << 20);
  CHECK(parse_with_unit("4MiB", size_units()) == std::int64_t{4} << 20);
  CHECK(parse_with_unit("0.25 KiB", size_units()) == 256);
  CHECK(parse_with_unit("1.50 s", time_units()) == 1500000000);
  CHECK(parse_with_unit("2.5 Gbit/s", rate_units()) == 2500000000);
  CHECK(parse_with_unit("0 B", size_units()) == 0);
  CHECK(parse_with_unit("9223372036854775807 ns", time_units()) == INT64_MAX);
}

TEST_CASE("numbers with units refuse what they cannot hold exactly") {
  for (const char* text : {"0.1 B", "0.3 KiB", "1.0000000001 ns", "0.5 ns"}) {
    CHECK_FALSE(parse_with_unit(text, size_units()));
    CHECK_FALSE(parse_with_unit(text, time_units()));
  }
  CHECK_FALSE(parse_with_unit("9223372036854775808 B", size_units()));
  CHECK_FALSE(parse_with_unit("9007199254740992 KiB", size_units()));
  CHECK_FALSE(parse_with_unit("9223372036.9 s", time_units()));
  CHECK_FALSE(parse_with_unit("0.0000000000000000000000001 GiB", size_units()));
}

TEST_CASE("numbers with units refuse everything else") {
  for (const char* text :
       {"", " ", "4", "MiB", "4 mib", "4 MB", "4  MiB", " 4 MiB", "4 MiB ", "-4 MiB", "+4 MiB",
        "4. MiB", ".5 MiB", "1e3 B", "0x10 B", "04 MiB", "4 MiB/s"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_with_unit(text, size_units()));
  }
}

TEST_CASE("integers") {
  CHECK(parse_integer("0") == 0);
  CHECK(parse_integer("65535") == 65535);
  for (const char* text :
       {"", "-1", "+1", "01", "1 ", "1.0", "1e3", "0x1", "9223372036854775808"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_integer(text));
  }
}
