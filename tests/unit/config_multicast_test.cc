// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>

#include "tests/support/catch.h"
#include "tests/unit/config_fixture.h"

using namespace gradplane;
using namespace gradplane::config;

namespace {

ParsedConfig with(const std::string& text) {
  return parse(std::string(kBase) + text);
}

std::string first_error(const std::string& text) {
  const ParsedConfig parsed = with(text);
  return parsed.errors.empty() ? "" : parsed.errors.front().text();
}

bool takes_range(const std::string& range) {
  return with("multicast: {enabled: true, range: " + range + "}\n").ok();
}

}  // namespace

TEST_CASE("nobody sends to groups unless the file says so") {
  const ParsedConfig parsed = parse(kBase);
  REQUIRE(parsed.ok());
  CHECK_FALSE(parsed.config->multicast.enabled);
  const ParsedConfig enabled = with("multicast: {enabled: true}\n");
  REQUIRE(enabled.ok());
  CHECK(enabled.config->multicast.enabled);
  CHECK(enabled.config->multicast.range == GroupRange{.first = {0xef470000}, .prefix_length = 16});
}

TEST_CASE("groups get addresses of the range that the file names") {
  const ParsedConfig parsed = with("multicast: {enabled: true, range: 239.192.32.0/20}\n");
  REQUIRE(parsed.ok());
  CHECK(parsed.config->multicast.range == GroupRange{.first = {0xefc02000}, .prefix_length = 20});
}

TEST_CASE("a range holds multicast addresses that switches do not flood, and no others") {
  CHECK(takes_range("239.71.0.0/16"));
  CHECK(takes_range("239.71.1.0/24"));
  CHECK(takes_range("239.64.0.0/10"));
  CHECK(takes_range("225.1.0.0/16"));
  CHECK_FALSE(takes_range("239.71.1.0/25"));   // too few addresses
  CHECK_FALSE(takes_range("239.71.1.0/255"));  // not a prefix length
  CHECK_FALSE(takes_range("239.71.1.0/272"));  // not read as /27 or /16
  CHECK_FALSE(takes_range("239.71.0.0"));      // no prefix length
  CHECK_FALSE(takes_range("239.71.0.1/16"));   // not the first address of the range
  CHECK_FALSE(takes_range("10.71.0.0/16"));    // unicast
  CHECK_FALSE(takes_range("240.71.0.0/16"));   // reserved
  CHECK_FALSE(takes_range("224.0.0.0/24"));    // switches flood these addresses
  CHECK_FALSE(takes_range("239.0.0.0/24"));    // the same Ethernet addresses as 224.0.0.0/24
  CHECK_FALSE(takes_range("239.128.0.0/16"));  // 239.128.0.0/24 has them, too
  CHECK_FALSE(takes_range("239.0.0.0/8"));     // holds both of these
  CHECK_FALSE(takes_range("232.71.0.0/16"));   // source-specific multicast
  CHECK(first_error("multicast: {enabled: true, range: 239.0.0.0/16}\n") ==
        "f.yaml:14: multicast.range: value '239.0.0.0/16': accepted: a prefix of IPv4 multicast "
        "addresses with a length from 10 to 24, such as 239.71.0.0/16, outside 232.0.0.0/8, that "
        "holds none of x.0.0.0/24 and x.128.0.0/24, which switches flood");
}

TEST_CASE("what contradicts multicast is refused") {
  CHECK(first_error("multicast: {range: 239.72.0.0/16}\n") ==
        "f.yaml:14: multicast.range: value '239.72.0.0/16': means nothing without "
        "multicast.enabled: true; remove it");
  CHECK(with("multicast: {range: 239.71.0.0/16}\n").ok());  // the default is allowed anywhere
  CHECK(first_error("multicast: {enabled: true}\ngrants: {enabled: true}\n") ==
        "f.yaml:14: multicast.enabled: value 'true': means nothing with grants.enabled: true, "
        "because credit is given to one sender for one receiver; remove one of them");
}
