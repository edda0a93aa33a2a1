// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/support/catch.h"

namespace gradplane::testing {

/// The part of a page under a heading of the second level.
inline std::string docs_section(const std::string& page_path, const std::string& heading) {
  std::ifstream file(page_path);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  const std::size_t at = page.find("\n## " + heading + "\n");
  REQUIRE(at != std::string::npos);
  return page.substr(at, page.find("\n## ", at + 1) - at);
}

/// Checks that a part of a page explains a name.
inline void check_explained(const std::string& section, std::string_view name) {
  const std::string text(name);
  CAPTURE(text);
  CHECK(section.find("`" + text + "`") != std::string::npos);
}

}  // namespace gradplane::testing
