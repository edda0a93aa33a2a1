// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/copy_crew.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "trainer-shim/group/process.h"

using namespace gradplane;
using shim::CopyCrew;
using shim::CopyKind;

namespace {

std::vector<std::byte> pattern(std::size_t bytes, std::size_t seed = 0) {
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    out[i] = static_cast<std::byte>(i * 31 + (i >> 16) + seed);
  return out;
}

}  // namespace

TEST_CASE("a crew copies every byte, and touches none beside") {
  constexpr std::byte kUntouched{0xee};
  constexpr std::size_t kBeside = 8;
  const CopyKind kind = GENERATE(CopyKind::kOrdinary, CopyKind::kPastCaches);
  const unsigned threads = GENERATE(1U, 2U, 5U);
  CopyCrew crew(threads);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1000}, shim::kSharedCopyBytes - 1, shim::kSharedCopyBytes,
        shim::kSharedCopyBytes + 1, 7 * shim::kCopyPieceBytes + 12345}) {
    const std::vector<std::byte> from = pattern(bytes);
    std::vector<std::byte> to(bytes + 2 * kBeside, kUntouched);
    crew.copy(to.data() + kBeside, from.data(), bytes, kind);
    CAPTURE(bytes, threads);
    CHECK(std::equal(from.begin(), from.end(), to.begin() + kBeside));
    CHECK(std::all_of(to.begin(), to.begin() + kBeside, [](auto b) { return b == kUntouched; }));
    CHECK(std::all_of(to.end() - kBeside, to.end(), [](auto b) { return b == kUntouched; }));
  }
}

TEST_CASE("helpers of a crew take part, one copy after the other") {
  CopyCrew crew(3);
  const std::vector<std::byte> from = pattern(std::size_t{16} << 20);
  std::vector<std::byte> to(from.size());
  // A helper that the kernel does not run in time takes nothing of a copy.
  constexpr int kMostCopies = 10000;
  for (int i = 0; i < kMostCopies && crew.helped() < 100; ++i) {
    for (std::size_t b = 0; b < to.size(); ++b) to[b] = ~from[b];
    crew.copy(to.data(), from.data(), from.size(), CopyKind::kOrdinary);
    // The pieces that are taken last are looked at at once, before a late helper could end.
    for (std::size_t piece = 1; piece <= 4; ++piece) {
      const std::size_t last = to.size() - 1 - (piece - 1) * shim::kCopyPieceBytes;
      REQUIRE(to[last] == from[last]);
    }
    REQUIRE(std::memcmp(to.data(), from.data(), from.size()) == 0);
  }
  CHECK(crew.helped() >= 100);
}

TEST_CASE("a crew alone has no helpers, and short copies ask none") {
  const std::vector<std::byte> from = pattern(2 * shim::kSharedCopyBytes);
  std::vector<std::byte> to(from.size());
  CopyCrew one(1);
  one.copy(to.data(), from.data(), from.size(), CopyKind::kOrdinary);
  CHECK(one.helped() == 0);
  CopyCrew two(2);
  for (int i = 0; i < 100; ++i)
    two.copy(to.data(), from.data(), shim::kSharedCopyBytes - 1, CopyKind::kOrdinary);
  CHECK(two.helped() == 0);
}

TEST_CASE("threads that copy at the same time get their own bytes") {
  CopyCrew crew(2);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<std::byte> from =
          pattern(2 * shim::kSharedCopyBytes + 1, static_cast<std::size_t>(t));
      for (int i = 0; i < 20; ++i) {
        std::vector<std::byte> to(from.size());
        crew.copy(to.data(), from.data(), from.size(), CopyKind::kPastCaches);
        wrong += to == from ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

#ifndef __SANITIZE_THREAD__  // which ends a child that starts a thread beside the parent's
TEST_CASE("a child of fork() has a crew of its own") {
  setenv("GRADPLANE_COPY_THREADS", "2", 1);
  shim::begin_process(shim::Reports::kOfUse, nullptr);
  const std::vector<std::byte> from = pattern(2 * shim::kSharedCopyBytes);
  std::vector<std::byte> to(from.size());
  CopyCrew& own = shim::copy_crew();
  own.copy(to.data(), from.data(), from.size(), CopyKind::kOrdinary);
  CHECK(&shim::copy_crew() == &own);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::fill(to.begin(), to.end(), std::byte{});
    shim::copy_crew().copy(to.data(), from.data(), from.size(), CopyKind::kOrdinary);
    _exit(&shim::copy_crew() != &own && to == from ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
#endif
