// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// One rank of an all-reduce over an overlay of plain TCP connections, for comparisons.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <sstream>
#include <string>

#include "tests/peers/overlay.h"

namespace {

using namespace gradplane::peers;  // NOLINT: a program of its own

struct Options {
  std::string kind;
  MeshPlaces places;
  std::uint32_t rank = 0;
  std::uint32_t root = 0;
  std::size_t chunk_bytes = 0;
  std::vector<std::string> trees;
  std::string commands_path;
  std::string answers_path;
};

std::vector<std::vector<std::uint32_t>> read_trees(const std::vector<std::string>& texts) {
  std::vector<std::vector<std::uint32_t>> trees;
  for (const std::string& text : texts) {
    std::istringstream words(text);
    std::string word;
    auto& parents = trees.emplace_back();
    while (std::getline(words, word, ',')) {
      parents.push_back(static_cast<std::uint32_t>(std::stoul(word)));
    }
  }
  return trees;
}

int run(const Options& o) {
  Harness harness(o.commands_path, o.answers_path);
  return follow(harness, o.rank, [&]() -> std::unique_ptr<Participant> {
    if (o.kind == "pairs") {
      return std::make_unique<PairRank>(o.places, o.rank, o.chunk_bytes, o.root);
    }
    return std::make_unique<TreeRank>(o.places, o.rank, o.chunk_bytes, read_trees(o.trees));
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("All-reduce over an overlay of plain TCP connections.");
  Options o;
  app.add_option("kind", o.kind, "")->required()->check(CLI::IsMember({"trees", "pairs"}));
  app.add_option("--addresses", o.places.addresses, "of all ranks, with commas")
      ->required()
      ->delimiter(',');
  app.add_option("--port", o.places.port, "on which every rank listens")->required();
  app.add_option("--congestion-control", o.places.congestion_control, "")
      ->required()
      ->check(CLI::IsMember({"reno", "cubic", "bbr"}));
  app.add_option("--rank", o.rank, "from 0")->required();
  app.add_option("--root", o.root, "of pairs: where sums end, and who schedules");
  app.add_option("--tree", o.trees, "the parent of every rank, with commas; the root's is itself");
  app.add_option("--chunk-bytes", o.chunk_bytes, "")
      ->required()
      ->check(CLI::Range(std::size_t{4}, std::size_t{kMaxChunkBytes}));
  app.add_option("--commands", o.commands_path, "FIFO; default: stdin");
  app.add_option("--answers", o.answers_path, "FIFO; default: stdout");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tcp_overlay: %s\n", e.what());
    return 1;
  }
}
