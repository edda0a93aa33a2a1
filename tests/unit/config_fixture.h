// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/config/config.h"

namespace gradplane::config {

/// The file of a small complete cluster. Tests add a line or replace one.
inline constexpr std::string_view kBase = R"(node:
  name: a
port:
  kind: af_packet
  interface: eth1
cluster:
  key: 00112233445566778899aabbccddeeff
  nodes:
    - name: a
      address: 10.0.0.1/24
      aggregate: true
    - name: b
      address: 10.0.0.2/24
)";

/// kBase with the first occurrence of a text replaced.
inline std::string base_with(std::string_view from, std::string_view to) {
  std::string text(kBase);
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return "no such text in kBase";
  return text.replace(at, from.size(), to);
}

inline ParsedConfig parse(std::string_view text) {
  return parse_config(text, "f.yaml", {.node_override = "", .host_name = "nowhere"});
}

inline std::vector<std::string> errors_of(std::string_view text) {
  std::vector<std::string> out;
  for (const ConfigError& error : parse(text).errors) out.push_back(error.text());
  return out;
}

}  // namespace gradplane::config
