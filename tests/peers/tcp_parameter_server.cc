// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// One process of a parameter server over plain TCP, for comparisons: the server, or a worker.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "tests/peers/harness.h"
#include "tests/peers/parameter_server.h"

namespace {

using namespace gradplane::peers;  // NOLINT: a program of its own

struct Options {
  std::string role;
  Endpoint server;
  std::uint32_t rank = 0;
  std::uint32_t world = 0;
  std::string commands_path;
  std::string answers_path;
};

int run(const Options& o) {
  const bool is_server = o.role == "server";
  const nlohmann::json rank = is_server ? nlohmann::json("server") : nlohmann::json(o.rank);
  Harness harness(o.commands_path, o.answers_path);
  return follow(harness, rank, [&]() -> std::unique_ptr<Participant> {
    if (is_server) return std::make_unique<ParameterServer>(o.server, o.world);
    return std::make_unique<ParameterWorker>(o.server, o.rank, o.world);
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("All-reduce through a parameter server over plain TCP.");
  Options o;
  app.add_option("--role", o.role, "")->required()->check(CLI::IsMember({"server", "worker"}));
  app.add_option("--address", o.server.address, "of the server")->required();
  app.add_option("--port", o.server.port, "of the server")->required();
  app.add_option("--rank", o.rank, "of the worker, from 0");
  app.add_option("--world", o.world, "how many workers")->required()->check(CLI::Range(1, 64));
  app.add_option("--congestion-control", o.server.congestion_control, "")
      ->required()
      ->check(CLI::IsMember({"reno", "cubic", "bbr"}));
  app.add_option("--commands", o.commands_path, "FIFO; default: stdin");
  app.add_option("--answers", o.answers_path, "FIFO; default: stdout");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tcp_parameter_server: %s\n", e.what());
    return 1;
  }
}
