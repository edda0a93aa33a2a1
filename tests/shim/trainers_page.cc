// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// docs/trainers.md explains every variable, every member of the report, and every reason to pass.
#include <regex>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/docs_page.h"
#include "trainer-shim/group/counters.h"
#include "trainer-shim/group/environment.h"

using namespace gradplane::shim;
using namespace gradplane::testing;

namespace {

std::string section(const std::string& heading) {
  return docs_section(GRADPLANE_SOURCE_DIR "/docs/trainers.md", heading);
}

}  // namespace

TEST_CASE("the page of trainers has every variable") {
  const std::string variables = section("Variables");
  REQUIRE(known_variables().size() > 10);
  for (const std::string_view name : known_variables()) check_explained(variables, name);
}

TEST_CASE("the page of trainers has every member of the report and every reason") {
  const std::string report = section("The report");
  const std::string json = counters_json();
  const std::regex member("\"([a-z_]+)\": ");
  std::size_t count = 0;
  for (auto at = std::sregex_iterator(json.begin(), json.end(), member);
       at != std::sregex_iterator(); ++at, ++count)
    check_explained(report, (*at)[1].str());
  CHECK(count > 20);
  for (std::size_t i = 0; i < static_cast<std::size_t>(OtherOperation::kCount); ++i)
    check_explained(report, other_operation_name(static_cast<OtherOperation>(i)));
  const std::string reasons = section("Why an operation passes");
  for (std::size_t i = 0; i < static_cast<std::size_t>(PassReason::kCount); ++i)
    check_explained(reasons, pass_reason_name(static_cast<PassReason>(i)));
}
