// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstring>
#include <vector>

#include "control/daemon/huge_pages.h"
#include "control/daemon/nap_policy.h"
#include "tests/support/catch.h"

using namespace gradplane;
using daemon::NapPolicy;

namespace {

constexpr Duration kMax = Duration::ms(2);
constexpr bool kJobs = true;
constexpr bool kNoJobs = false;
constexpr Duration kNothingDue = Duration::seconds(10);

}  // namespace

TEST_CASE("a nap is a sixteenth of the time since the last work") {
  const NapPolicy naps(0, kMax);
  CHECK(naps.length(Duration::us(50), kJobs, kNothingDue) == Duration::us(10));
  CHECK(naps.length(Duration::us(160), kJobs, kNothingDue) == Duration::us(10));
  CHECK(naps.length(Duration::us(1600), kJobs, kNothingDue) == Duration::us(100));
  CHECK(naps.length(Duration::us(1600), kNoJobs, kNothingDue) == Duration::us(100));
}

TEST_CASE("naps are short while a job trains, and long when nothing has happened for long") {
  const NapPolicy naps(0, kMax);
  CHECK(naps.length(Duration::ms(900), kJobs, kNothingDue) == Duration::us(500));
  CHECK(naps.length(Duration::ms(1000), kJobs, kNothingDue) == kMax);
  CHECK(naps.length(Duration::ms(900), kNoJobs, kNothingDue) == kMax);
  CHECK(NapPolicy(0, Duration::us(100)).length(Duration::ms(900), kJobs, kNothingDue) ==
        Duration::us(100));
}

TEST_CASE("on a link of known rate no nap is shorter than eight packets take") {
  constexpr std::uint64_t kGigabit = 1'000'000'000;
  const Duration block = NapPolicy::block_time(kGigabit);
  CHECK(block > Duration::us(11));
  CHECK(block < Duration::us(13));
  CHECK(NapPolicy(kGigabit, kMax).length(Duration::us(50), kJobs, kNothingDue) == block * 8);
  CHECK(NapPolicy(kGigabit / 100, kMax).length(Duration::us(50), kJobs, kNothingDue) ==
        Duration::us(500));
  CHECK(NapPolicy::block_time(0) == Duration{});
}

TEST_CASE("a nap lasts past the next deadline by the shortest nap at most") {
  const NapPolicy naps(0, kMax);
  CHECK(naps.length(Duration::ms(16), kNoJobs, Duration::us(300)) == Duration::us(300));
  CHECK(naps.length(Duration::ms(16), kNoJobs, Duration::us(1)) == Duration::us(10));
}

TEST_CASE("large blocks of memory begin with a huge page, and small ones come from new") {
  std::pmr::memory_resource& memory = daemon::huge_pages();
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  for (const std::size_t bytes : {std::size_t{100}, kHugePage - 1, kHugePage, 5 * kHugePage + 1}) {
    void* const at = memory.allocate(bytes, 64);
    std::memset(at, 1, bytes);
    CHECK((reinterpret_cast<std::uintptr_t>(at) % kHugePage == 0) == (bytes >= kHugePage));
    memory.deallocate(at, bytes, 64);
  }
  CHECK(&memory == &daemon::huge_pages());
  std::pmr::vector<std::byte> zeros(3 * kHugePage, &memory);
  CHECK(zeros.back() == std::byte{});
}
