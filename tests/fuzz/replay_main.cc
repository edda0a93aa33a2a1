// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

/// The number of small changes to every input, which are the same in every run. Any compiler can do
/// that, without libFuzzer.
constexpr int kMutationsPerInput = 300;

std::vector<std::uint8_t> read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void mutate(std::vector<std::uint8_t>& bytes, std::mt19937& random) {
  for (std::uint32_t change = 0; change <= random() % 4; ++change) {
    const std::size_t at = bytes.empty() ? 0 : random() % bytes.size();
    const auto value = static_cast<std::uint8_t>(random());
    switch (random() % 4) {
      case 0:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), value);
        break;
      case 1:
        if (!bytes.empty()) bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 2:
        if (!bytes.empty()) bytes[at] = value;
        break;
      case 3:
        if (!bytes.empty()) bytes[at] ^= static_cast<std::uint8_t>(1 << (value % 8));
        break;
    }
  }
}

}  // namespace

/// Runs a fuzz target on the files of a folder, and on small changes of them.
int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::mt19937 random(1);
  for (const auto& file : files) {
    const std::vector<std::uint8_t> input = read_file(file);
    LLVMFuzzerTestOneInput(input.data(), input.size());
    for (int i = 0; i < kMutationsPerInput; ++i) {
      std::vector<std::uint8_t> changed = input;
      mutate(changed, random);
      LLVMFuzzerTestOneInput(changed.data(), changed.size());
    }
  }
  std::printf("%zu inputs, %d changes of each\n", files.size(), kMutationsPerInput);
  return files.empty() ? 1 : 0;
}
