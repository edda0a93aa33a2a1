// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Runs a fuzz target on random inputs, which are the same in every run. Any compiler can do that.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kMaxInputBytes = 4096;

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 0;
  const int first = argc > 2 ? std::atoi(argv[2]) : 1;
  if (count <= 0) {
    std::fprintf(stderr, "usage: %s COUNT [FIRST_SEED]\n", argv[0]);
    return 2;
  }
  for (int seed = first; seed < first + count; ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    std::vector<std::uint8_t> input(random() % kMaxInputBytes);
    for (std::uint8_t& byte : input) byte = static_cast<std::uint8_t>(random());
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%d random inputs from seed %d\n", count, first);
  return 0;
}
