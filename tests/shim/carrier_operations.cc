// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// How a carrier slices and carries collectives that copy, with the fake client.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "trainer-shim/group/carrier.h"
#include "trainer-shim/group/round_window.h"

using namespace gradplane;
using namespace gradplane::shim;

namespace {

constexpr std::size_t kFakeRoundBytes = 65536;

struct Folder {
  Folder() {
    char name[] = "/tmp/gp-operations-XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    path = name;
    setenv("GRADPLANE_SOCKET", name, 1);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

/// Byte `i` of a rank's input.
std::byte given(std::uint32_t rank, std::size_t i) {
  return static_cast<std::byte>((i * 7 + i / 251 + rank * 31 + 1) % 256);
}

Collective broadcast_of(std::vector<std::byte>& memory, std::uint16_t source) {
  Collective c;
  c.data = memory.data();
  c.bytes = memory.size();
  c.type = ElementType::kInt32;
  c.operation = Operation::kBroadcast;
  c.source = source;
  return c;
}

Collective all_gather_of(std::vector<std::byte>& memory, std::size_t ranks) {
  Collective c;
  c.data = memory.data();
  c.bytes = memory.size() / ranks;
  c.type = ElementType::kInt32;
  c.operation = Operation::kAllGather;
  c.shards = ranks;
  return c;
}

/// A rank's state at the end of its session.
struct End {
  bool complete = false;
  bool left_a_rank_behind = false;
};

/// Carries one collective for each of `world` ranks, each in its own thread.
std::vector<End> carry(std::uint32_t world, const std::function<Collective(std::uint32_t)>& make) {
  static const Folder folder;
  static std::uint8_t jobs = 0;
  const JobKey key = {++jobs};
  std::vector<End> ends(world);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      Carrier carrier({rank, world}, 60000);
      std::string cause;
      if (!carrier.attach(key, cause) || !carrier.wait_ready(cause)) return;
      carrier.start(carrier.round_bytes(), carrier.rounds_in_flight_max());
      Collective collective = make(rank);
      while (!collective.complete()) {
        while (!collective.all_submitted() && carrier.submit_next(collective, nullptr)) {
        }
        if (carrier.poll() == Carrier::Turn::kOver) break;
        carrier.wait(10);
      }
      ends[rank] = {collective.complete(), carrier.left_a_rank_behind()};
      carrier.detach(true);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

std::size_t blocks_of(std::size_t bytes, std::size_t block) {
  return (bytes + block - 1) / block;
}

/// Whether a round of these shards has at most as many blocks as the longest slot.
bool fits(const Round& round, std::size_t round_bytes, std::size_t block) {
  return round.shards * blocks_of(round.padded_bytes, block) <= blocks_of(round_bytes, block);
}

}  // namespace

TEST_CASE("shards are cut so that daemons with blocks of any size take them") {
  for (const std::size_t round_bytes : {std::size_t{65536}, std::size_t{1} << 20, kMaxRoundBytes}) {
    for (std::size_t ranks = 2; ranks <= kMaxRanks; ranks = ranks * 5 / 4 + 1) {
      Collective c;
      c.bytes = std::size_t{1} << 40;
      c.operation = Operation::kAllGather;
      c.shards = ranks;
      const Round round = cut(c, round_bytes);
      CAPTURE(round_bytes, ranks, round.bytes);
      CHECK(round.bytes > 0);
      CHECK(round.bytes % kBlockAlignBytes == 0);
      CHECK(round.slot_bytes() <= round_bytes);
      bool all_fit = true;
      for (std::size_t block = kMinBlockBytes; block <= kMaxBlockBytes; block += kBlockAlignBytes) {
        all_fit = all_fit && fits(round, round_bytes, block);
      }
      // If a slot has too few blocks of the largest size for so many shards, the round is a sum.
      const bool has_room = blocks_of(round_bytes, kMaxBlockBytes) >= ranks;
      CHECK(round.operation == (has_room ? Operation::kAllGather : Operation::kAllReduce));
      CHECK((all_fit || !has_room));
    }
  }
}

TEST_CASE("large shards use nearly all of a large round") {
  Collective c;
  c.bytes = std::size_t{1} << 40;
  c.operation = Operation::kAllGather;
  c.shards = 8;
  CHECK(cut(c, kMaxRoundBytes).slot_bytes() > kMaxRoundBytes * 97 / 100);
}

TEST_CASE("what a rank does not give is zero in a round that is summed instead of gathered") {
  std::vector<std::byte> memory(9 * 5, std::byte{0xaa});
  Collective c = all_gather_of(memory, 9);
  const Round round = cut(c, kFakeRoundBytes);
  REQUIRE(round.operation == Operation::kAllReduce);
  REQUIRE(round.padded_bytes == 8);
  std::vector<std::byte> slot(round.slot_bytes(), std::byte{0xbb});
  round.give(slot.data(), 3);
  for (std::size_t i = 0; i < slot.size(); ++i) {
    CHECK(slot[i] == (i >= 24 && i < 29 ? std::byte{0xaa} : std::byte{}));
  }
}

TEST_CASE("what pads a slice is zero") {
  std::vector<std::byte> memory(5, std::byte{0xaa});
  Collective c = broadcast_of(memory, 2);
  std::vector<std::byte> slot(8, std::byte{0xbb});
  cut(c, kFakeRoundBytes).give(slot.data(), 2);
  CHECK(slot[4] == std::byte{0xaa});
  for (std::size_t i = 5; i < 8; ++i) CHECK(slot[i] == std::byte{});
}

TEST_CASE("bytes of any number are broadcast") {
  constexpr std::uint32_t kWorld = 3;
  for (const std::size_t bytes : {1U, 3U, 64U, 65535U, 65537U, 1000003U}) {
    for (std::uint16_t source = 0; source < kWorld; ++source) {
      CAPTURE(bytes, source);
      std::vector<std::vector<std::byte>> memory(kWorld, std::vector<std::byte>(bytes));
      for (std::size_t i = 0; i < bytes; ++i) memory[source][i] = given(source, i);
      const auto sent = memory[source];
      const auto ends =
          carry(kWorld, [&](std::uint32_t rank) { return broadcast_of(memory[rank], source); });
      for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
        CHECK(ends[rank].complete);
        CHECK_FALSE(ends[rank].left_a_rank_behind);
        CHECK(memory[rank] == sent);
      }
    }
  }
}

TEST_CASE("the memory of a broadcast's source is only read") {
  constexpr std::size_t kBytes = 4096;
  void* page = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  std::vector<std::byte> unused(kBytes);
  std::vector<std::byte> received(kBytes, std::byte{1});
  const auto ends = carry(2, [&](std::uint32_t rank) {
    Collective c = broadcast_of(rank == 0 ? unused : received, 0);
    if (rank == 0) c.data = static_cast<std::byte*>(page);
    return c;
  });
  CHECK((ends[0].complete && ends[1].complete));
  CHECK(received == std::vector<std::byte>(kBytes));
  munmap(page, kBytes);
}

TEST_CASE("every rank gets the shard of each rank") {
  for (const std::uint32_t world : {2U, 3U, 8U, 9U, 16U}) {
    for (const std::size_t bytes : {1U, 7U, 4096U, 100001U}) {
      CAPTURE(world, bytes);
      std::vector<std::vector<std::byte>> memory(
          world, std::vector<std::byte>(world * bytes, std::byte{0xee}));
      std::vector<std::byte> want(world * bytes);
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        for (std::size_t i = 0; i < bytes; ++i) {
          memory[rank][rank * bytes + i] = want[rank * bytes + i] = given(rank, i);
        }
      }
      const auto ends =
          carry(world, [&](std::uint32_t rank) { return all_gather_of(memory[rank], world); });
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        CHECK(ends[rank].complete);
        CHECK_FALSE(ends[rank].left_a_rank_behind);
        CHECK(memory[rank] == want);
      }
    }
  }
}

TEST_CASE("a gathering by sums that lacks a rank is not taken for a result") {
  constexpr std::uint32_t kWorld = 9;
  setenv("GRADPLANE_TEST_FAKE", "behind=0:1", 1);
  std::vector<std::vector<std::byte>> memory(kWorld, std::vector<std::byte>(kWorld * 4));
  const auto ends =
      carry(kWorld, [&](std::uint32_t rank) { return all_gather_of(memory[rank], kWorld); });
  unsetenv("GRADPLANE_TEST_FAKE");
  for (const End& end : ends) CHECK_FALSE(end.complete);
}
