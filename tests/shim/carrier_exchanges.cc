// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// How a carrier exchanges gradients, with the fake client.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/shim/fake_sums.h"
#include "tests/support/catch.h"
#include "trainer-shim/group/carrier.h"

using namespace gradplane;
using namespace gradplane::shim;

namespace {

constexpr std::uint32_t kWorld = 4;
constexpr std::uint32_t kSelections = 3;
constexpr std::size_t kElements = 20000;  // two rounds

/// The fake daemon's folder. A process reads its environment only once, so there is only one.
struct Folder {
  Folder() {
    char name[] = "/tmp/gp-exchanges-XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    path = name;
    setenv("GRADPLANE_SOCKET", name, 1);
    setenv("GRADPLANE_TEST_SELECTIVE", (std::to_string(kSelections) + ":7").c_str(), 1);
    setenv("GRADPLANE_TEST_SUBMISSIONS", (path + "/log").c_str(), 1);
    setenv("GRADPLANE_TEST_DRIFT", (path + "/drift").c_str(), 1);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }

  std::vector<std::string> lines(const std::string& name) const {
    std::vector<std::string> out;
    std::ifstream file(path + "/" + name);
    for (std::string line; std::getline(file, line);) out.push_back(line);
    std::filesystem::remove(path + "/" + name);
    return out;
  }
  std::string path;
};

const Folder& folder() {
  static const Folder only;
  return only;
}

/// A rank's state after one collective.
struct End {
  std::vector<float> values;
  std::size_t exchanged_bytes = 0;
  bool complete = false;
  bool left_a_rank_behind = false;
};

struct What {
  std::optional<std::uint64_t> pass;
  std::uint32_t selections = kSelections;
  int sums_after = 0;  // number of exact collectives of one round that follow
};

void carry_one(Carrier& carrier, Collective& collective) {
  while (!collective.complete()) {
    while (!collective.all_submitted() && carrier.submit_next(collective, nullptr)) {
    }
    if (carrier.poll() == Carrier::Turn::kOver) return;
    carrier.wait(10);
  }
}

Collective of(std::vector<float>& values) {
  Collective c;
  c.data = reinterpret_cast<std::byte*>(values.data());
  c.bytes = values.size() * sizeof(float);
  return c;
}

End carry_as(std::uint32_t rank, const JobKey& key, const What& what) {
  End end;
  Carrier carrier({rank, kWorld}, 60000);
  std::string cause;
  if (!carrier.attach(key, cause) || !carrier.wait_ready(cause)) return end;
  carrier.start(carrier.round_bytes(), carrier.rounds_in_flight_max(), 0, what.selections);
  for (std::size_t i = 0; i < kElements; ++i) {
    end.values.push_back(static_cast<float>(i % 100 * 8 + rank));
  }
  Collective collective = of(end.values);
  collective.pass = what.pass;
  carry_one(carrier, collective);
  for (int i = 0; i < what.sums_after; ++i) {
    std::vector<float> one = {1};
    Collective sum = of(one);
    carry_one(carrier, sum);
  }
  carrier.report_drift(rank, 0.5, 2);
  end.exchanged_bytes = collective.exchanged_bytes;
  end.complete = collective.complete();
  end.left_a_rank_behind = carrier.left_a_rank_behind();
  carrier.detach(true);
  return end;
}

std::vector<End> carry(const What& what) {
  static std::uint8_t jobs = 0;
  folder();
  const JobKey key = {++jobs};
  std::vector<End> ends(kWorld);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    threads.emplace_back([&, rank] { ends[rank] = carry_as(rank, key, what); });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

}  // namespace

TEST_CASE("a gradient is exchanged by the selection of its pass") {
  for (const std::uint64_t pass : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2},
                                   std::uint64_t{3}, (std::uint64_t{1} << 40) + 1}) {
    CAPTURE(pass);
    const auto ends = carry({.pass = pass});
    for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
      const End& end = ends[rank];
      REQUIRE(end.complete);
      CHECK(end.exchanged_bytes == kElements * sizeof(float));
      const std::size_t sender = test::sender_to(rank, pass % kSelections, kWorld);
      bool right = true;
      for (std::size_t i = 0; i < kElements; ++i) {
        // The mean of two updates, times four ranks.
        const auto want = static_cast<float>(2 * (2 * (i % 100 * 8) + rank + sender));
        right = right && end.values[i] == want;
      }
      CHECK(right);
      std::string operation = "exchange/";
      operation += std::to_string(pass % kSelections);
      CHECK(folder().lines("log." + std::to_string(rank)) ==
            std::vector<std::string>{operation + " 0 1 16384", operation + " 0 1 3616"});
    }
  }
}

TEST_CASE("what is no gradient is summed, and so is a gradient where nothing is exchanged") {
  for (const What& what : {What{.pass = {}}, What{.pass = 1, .selections = 0}}) {
    const auto ends = carry(what);
    for (const End& end : ends) {
      REQUIRE(end.complete);
      CHECK(end.exchanged_bytes == 0);
      CHECK(end.values[1] == 8 * 4 + 6);
      CHECK_FALSE(end.left_a_rank_behind);
    }
    for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
      for (const std::string& line : folder().lines("log." + std::to_string(rank))) {
        CHECK(line.starts_with("submitted 0 "));
      }
    }
  }
}

TEST_CASE("who has an exchange waits for the others at its end, until all have come further") {
  constexpr int kEnough = static_cast<int>(kMaxLeadRounds);
  for (const int sums : {0, 1, kEnough - 1, kEnough}) {
    CAPTURE(sums);
    const auto ends = carry({.pass = 0, .sums_after = sums});
    for (const End& end : ends) CHECK(end.left_a_rank_behind == (sums < kEnough));
  }
}

TEST_CASE("a rank that receives less than others does not count as left behind by the daemon") {
  // The highest rank is in no round, so the receiver of its update has only its own.
  setenv("GRADPLANE_TEST_FAKE", "behind=0:2", 1);
  const auto ends = carry({.pass = 0, .sums_after = kMaxLeadRounds});
  unsetenv("GRADPLANE_TEST_FAKE");
  CHECK(ends[0].complete);
  CHECK(ends[0].values[1] == 4 * 8);  // its own update, times four ranks
  CHECK(ends[1].values[1] == 2 * (2 * 8 + 0 + 1));
}

TEST_CASE("the drift reaches the daemon") {
  folder();
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    folder().lines("drift." + std::to_string(rank));
  }
  carry({.pass = 0});
  CHECK(folder().lines("drift.3") == std::vector<std::string>{"3 0.5 2"});
}

TEST_CASE("a daemon that carries no exchanges is told of no drift") {
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    folder().lines("drift." + std::to_string(rank));
  }
  carry({.pass = std::nullopt, .selections = 0});
  CHECK(folder().lines("drift.3").empty());
}
