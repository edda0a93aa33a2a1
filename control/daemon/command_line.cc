// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory_resource>

#include "control/config/config.h"
#include "control/daemon/daemon.h"
#include "control/daemon/huge_pages.h"
#include "control/daemon/status.h"

namespace gradplane::daemon {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

}  // namespace

int run(int argc, char** argv) {
  CLI::App app("gradplaned: carries gradients of training jobs over its own network port.");
  std::string path;
  std::string node;
  app.add_option("-c,--config", path, "the configuration, a YAML file")->required();
  app.add_option("-n,--node", node, "who this host is in cluster.nodes (default: node.name)");
  app.set_version_flag("--version", software());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kUsage;
  }
  config::ParseOptions options;
  options.node_override = node;
  auto parsed = config::load_config(path, options);
  for (const auto* found : {&parsed.errors, &parsed.warnings})
    for (const auto& entry : *found) std::fprintf(stderr, "%s\n", entry.text().c_str());
  if (!parsed.ok()) return kUsage;
  std::pmr::set_default_resource(&huge_pages());
  auto daemon = Daemon::start(std::move(*parsed.config));
  if (!daemon) {
    std::fprintf(stderr, "gradplaned: cannot start: %s\n", daemon.error().message.c_str());
    return kFailed;
  }
  daemon.value()->run();
  daemon.value().reset();
  return 0;
}

}  // namespace gradplane::daemon
