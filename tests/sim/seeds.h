// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace gradplane::sim {

/// The scenarios that the command line asks for.
struct Seeds {
  std::vector<std::uint64_t> first = {1};
  std::uint64_t count = 1;  // how many seeds, beginning with each of `first`
  bool fresh = false;       // instead of `first`, begins with a random seed
  std::uint32_t jobs = 1;   // how many seeds run at a time
  std::size_t cores = 1;    // poll cores of each node
  bool verbose = false;
  bool tolerant = false;
  bool narrow = false;
  bool large = false;
  bool crashes = false;
  bool replanned = false;
  bool sites = false;
  bool routes = false;
  bool groups = false;
  bool parity = false;
  bool redrawn = false;
  bool stop = false;
};

/// The flags that repeat a run with this kind of scenarios.
inline std::string flags_of(const Seeds& seeds) {
  std::string text;
  for (const auto& [is_set, flag] :
       std::initializer_list<std::pair<bool, const char*>>{{seeds.tolerant, "--tolerant "},
                                                           {seeds.narrow, "--narrow "},
                                                           {seeds.large, "--large "},
                                                           {seeds.replanned, "--replanned "},
                                                           {seeds.sites, "--sites "},
                                                           {seeds.crashes, "--crashes "},
                                                           {seeds.routes, "--routes "},
                                                           {seeds.groups, "--groups "},
                                                           {seeds.parity, "--parity "},
                                                           {seeds.redrawn, "--redrawn "}}) {
    if (is_set) text += flag;
  }
  if (seeds.cores > 1) text += "--cores " + std::to_string(seeds.cores) + " ";
  return text;
}

/// A first seed that was not used before and is short enough to type.
inline std::uint64_t fresh_seed() {
  constexpr std::uint64_t kAbove = 1'000'000'000;  // seeds in files and documents are below this
  std::random_device random;
  return kAbove + std::uniform_int_distribution<std::uint64_t>(0, 999 * kAbove)(random);
}

}  // namespace gradplane::sim
