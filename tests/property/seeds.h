// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/support/catch.h"

namespace gradplane::testing {

/// Sanitizers make a simulation ten to twenty times slower, and check memory. Tests that count what
/// all simulations together have shown run them without sanitizers.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// The seeds that a property test runs. GRADPLANE_SEED=<seed> runs only that one, and
/// GRADPLANE_SEEDS=<count> runs so many from 0 on.
struct Seeds {
  explicit Seeds(std::uint64_t default_count)
      : alone(std::getenv("GRADPLANE_SEED") != nullptr),
        first(number("GRADPLANE_SEED", 0)),
        count(alone ? 1 : number("GRADPLANE_SEEDS", default_count)) {}

  /// The seeds for simulations: a tenth of them under sanitizers.
  static Seeds of_simulations(std::uint64_t default_count) {
    Seeds seeds(kSanitized ? (default_count + 9) / 10 : default_count);
    seeds.is_whole = !kSanitized && seeds.count >= default_count;
    return seeds;
  }

  /// Calls `check(seed)` for each seed. A failure in `test`, a file's name, prints the seed.
  template <typename Check>
  void each(const std::string& test, Check check) const {
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
      INFO("replay: GRADPLANE_SEED=" << seed << " and the options -# [#" << test << "]");
      check(seed);
    }
  }

  static std::uint64_t number(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
  }

  bool alone;
  std::uint64_t first;
  std::uint64_t count;
  bool is_whole = true;  // at least the test's default number of seeds
};

}  // namespace gradplane::testing
