// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "control/config/config.h"
#include "dataplane/daemon/daemon.h"
#include "dataplane/daemon/status.h"

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("gradplaned: carries gradients of training jobs over its own network port.");
  std::string path;
  std::string node;
  app.add_option("-c,--config", path, "the configuration, a YAML file")->required();
  app.add_option("-n,--node", node, "who this host is in cluster.nodes (default: node.name)");
  app.set_version_flag("--version", gradplane::daemon::software());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kUsage;
  }
  gradplane::config::ParseOptions options;
  options.node_override = node;
  auto parsed = gradplane::config::load_config(path, options);
  for (const auto* found : {&parsed.errors, &parsed.warnings})
    for (const auto& entry : *found) std::fprintf(stderr, "%s\n", entry.text().c_str());
  if (!parsed.ok()) return kUsage;
  auto daemon = gradplane::daemon::Daemon::start(std::move(*parsed.config));
  if (!daemon) {
    std::fprintf(stderr, "gradplaned: cannot start: %s\n", daemon.error().message.c_str());
    return kFailed;
  }
  daemon.value()->run();
  daemon.value().reset();
  // Everything of ours has ended in order. What is left are threads of DPDK's drivers, which now
  // and then touch a device that process-wide destructors have freed.
  std::fflush(nullptr);
  std::_Exit(0);
}
