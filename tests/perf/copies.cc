// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// How fast one to N threads of a rank copy rounds of 4 MiB between a tensor and an arena.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "dataplane/model/limits.h"
#include "trainer-shim/group/copy_crew.h"

using namespace gradplane;
using shim::CopyCrew;
using shim::CopyKind;

namespace {

constexpr std::size_t kTensorBytes = std::size_t{256} << 20;
constexpr std::size_t kArenaBytes = kRoundSlots * kMaxRoundBytes;
static_assert(kTensorBytes % kArenaBytes == 0);
constexpr int kPasses = 9;

/// GB/s of the median pass over the tensor, of which `copy` copies the round that begins there.
template <typename Copy>
double rate(const Copy& copy) {
  std::vector<double> seconds;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t at = 0; at < kTensorBytes; at += kMaxRoundBytes) copy(at);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    seconds.push_back(took.count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kPasses / 2, seconds.end());
  return static_cast<double>(kTensorBytes) / seconds[kPasses / 2] / 1e9;
}

}  // namespace

int main(int count, char** words) {
  const unsigned long most = count > 1 ? std::strtoul(words[1], nullptr, 10) : 2;
  std::vector<std::byte> tensor(kTensorBytes, std::byte{1});
  std::vector<std::byte> arena(kArenaBytes, std::byte{2});
  for (unsigned threads = 1; threads <= std::min<unsigned long>(most, shim::kMaxCopyThreads);
       ++threads) {
    CopyCrew crew(threads);
    const double in = rate([&](std::size_t at) {
      crew.copy(arena.data() + at % kArenaBytes, tensor.data() + at, kMaxRoundBytes,
                CopyKind::kOrdinary);
    });
    const double out = rate([&](std::size_t at) {
      crew.copy(tensor.data() + at, arena.data() + at % kArenaBytes, kMaxRoundBytes,
                CopyKind::kPastCaches);
    });
    fmt::print("{} threads: {:.1f} GB/s in, {:.1f} GB/s out\n", threads, in, out);
  }
  return 0;
}
