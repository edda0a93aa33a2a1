// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/check_config_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "control/cli/exit_codes.h"
#include "control/cli/output.h"
#include "control/config/config.h"

namespace gradplane::cli {
namespace {

std::string summary(const std::string& file, const config::Config& config) {
  std::string text =
      fmt::format("{}: ok: {} node{}, {}, blocks of {} B", file, config.cluster.nodes.size(),
                  config.cluster.nodes.size() == 1 ? "" : "s", plan_kind_name(config.plan.kind),
                  config.block_bytes);
  if (config.multicast.enabled) text += ", results to multicast groups";
  if (config.self != api::kNoNode) {
    text += fmt::format("; here {} with {}", config.self_node().name,
                        config::name_of(config.port().kind));
  }
  return text + "\n";
}

int check_file(const std::string& file, const CheckConfigOptions& options) {
  const auto parsed =
      config::load_config(file, {.node_override = options.node, .host_name = {}, .any_node = true});
  for (const auto* found : {&parsed.errors, &parsed.warnings})
    for (const config::ConfigError& entry : *found) fmt::print(stderr, "{}\n", entry.text());
  if (!parsed.ok()) return kExitFailure;
  return print(options.effective ? config::effective_yaml(parsed) : summary(file, *parsed.config));
}

}  // namespace

int check_config(const CheckConfigOptions& options) {
  int code = kExitOk;
  for (const std::string& file : options.files) {
    if (check_file(file, options) != kExitOk) code = kExitFailure;
  }
  return code;
}

}  // namespace gradplane::cli
