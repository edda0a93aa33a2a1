// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
//
// The bucket ids that a carrier uses, from the log of the fake client.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "dataplane/model/loss_bounds.h"
#include "tests/support/catch.h"
#include "trainer-shim/group/carrier.h"

using namespace gradplane;
using namespace gradplane::shim;

namespace {

/// The fake daemon's folder. A process reads its environment only once, so there is only one.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/gp-buckets-XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    path_ = name;
    setenv("GRADPLANE_SOCKET", name, 1);
    setenv("GRADPLANE_TEST_SUBMISSIONS", log().c_str(), 1);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string log() const { return path_ + "/log"; }

 private:
  std::string path_;
};

/// Registrations and submissions of a single rank while `body` is its progress thread. A line is
/// `registered` or `submitted`, bucket, element type, and number of elements.
std::vector<std::string> submissions(const std::function<void(Carrier&)>& body) {
  static const Folder folder;
  const std::string log = folder.log() + ".0";
  std::filesystem::remove(log);
  Carrier carrier({0, 1}, 60000);
  std::string cause;
  REQUIRE(carrier.attach({4, 5, 6}, cause));
  carrier.start(carrier.round_bytes(), carrier.rounds_in_flight_max());
  body(carrier);
  carrier.detach(true);
  std::vector<std::string> lines;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void reduce(Carrier& carrier, ElementType type, std::size_t elements, const BucketLayout* layout) {
  std::vector<std::byte> memory(elements * element_bytes(type));
  Collective collective;
  collective.data = memory.data();
  collective.bytes = memory.size();
  collective.type = type;
  while (!collective.complete()) {
    while (!collective.all_submitted() && carrier.submit_next(collective, layout)) {
    }
    REQUIRE(carrier.poll() != Carrier::Turn::kOver);
  }
}

}  // namespace

TEST_CASE("a bucket keeps its id until its layout changes, and no id is used twice") {
  const BucketLayout first{.key = 1, .version = 1, .tensors = {{"a", 0, 60}, {"b", 60, 40}}};
  const BucketLayout rebuilt{.key = 1, .version = 2, .tensors = {{"b", 0, 40}, {"a", 40, 60}}};
  const BucketLayout other{.key = 2, .version = 1, .tensors = {{"c", 0, 100}}};
  const auto lines = submissions([&](Carrier& carrier) {
    for (const auto* layout : {&first, &other, &first, &rebuilt, &rebuilt, &other, &first}) {
      reduce(carrier, ElementType::kFloat32, 100, layout);
    }
  });
  CHECK(lines ==
        std::vector<std::string>{"registered 1 1 100", "submitted 1 1 100", "registered 2 1 100",
                                 "submitted 2 1 100", "submitted 1 1 100", "registered 3 1 100",
                                 "submitted 3 1 100", "submitted 3 1 100", "submitted 2 1 100",
                                 "registered 4 1 100", "submitted 4 1 100"});
}

TEST_CASE("only gradient buckets of a floating type have an id") {
  const BucketLayout layout{.key = 1, .version = 1, .tensors = {{"a", 0, 100}}};
  const auto lines = submissions([&](Carrier& carrier) {
    reduce(carrier, ElementType::kFloat32, 100, nullptr);
    reduce(carrier, ElementType::kInt32, 100, &layout);
    reduce(carrier, ElementType::kInt64, 100, &layout);
    reduce(carrier, ElementType::kBfloat16, 100, &layout);
  });
  CHECK(lines == std::vector<std::string>{"submitted 0 1 100", "submitted 0 5 100",
                                          "submitted 0 6 100", "registered 1 4 100",
                                          "submitted 1 4 100"});
}

TEST_CASE("each round of a long bucket has an id and the tensors that lie in it") {
  const std::size_t round_elements = 65536 / sizeof(float);
  const BucketLayout layout{
      .key = 1,
      .version = 1,
      .tensors = {{"a", 0, round_elements + 5}, {"b", round_elements + 5, 9}}};
  const auto lines = submissions([&](Carrier& carrier) {
    reduce(carrier, ElementType::kFloat32, round_elements + 14, &layout);
  });
  CHECK(lines == std::vector<std::string>{"registered 1 1 16384", "submitted 1 1 16384",
                                          "registered 2 1 14", "submitted 2 1 14"});
}

TEST_CASE("a tensor that ends where a round ends has no part in the next one") {
  const std::size_t round_elements = 65536 / sizeof(float);
  const BucketLayout layout{
      .key = 1, .version = 1, .tensors = {{"a", 0, round_elements}, {"b", round_elements, 9}}};
  const auto lines = submissions([&](Carrier& carrier) {
    reduce(carrier, ElementType::kFloat32, round_elements + 9, &layout);
  });
  CHECK(lines == std::vector<std::string>{"registered 1 1 16384", "submitted 1 1 16384",
                                          "registered 2 1 9", "submitted 2 1 9"});
}

TEST_CASE("a new session is told of its buckets anew") {
  const BucketLayout layout{.key = 1, .version = 1, .tensors = {{"a", 0, 100}}};
  const auto lines = submissions([&](Carrier& carrier) {
    reduce(carrier, ElementType::kFloat32, 100, &layout);
    carrier.detach(true);
    std::string cause;
    REQUIRE(carrier.attach({7, 8, 9}, cause));
    carrier.start(carrier.round_bytes(), carrier.rounds_in_flight_max());
    reduce(carrier, ElementType::kFloat32, 100, &layout);
  });
  CHECK(lines == std::vector<std::string>{"registered 1 1 100", "submitted 1 1 100",
                                          "registered 1 1 100", "submitted 1 1 100"});
}

TEST_CASE("sums outside DDP have ids of their own, and leave some to DDP") {
  const auto first = layout_of_sum("outer", 1, ElementType::kFloat32);
  const BucketLayout ddps{.key = 1, .version = 1, .tensors = {{"a", 0, 100}}};
  const auto lines = submissions([&](Carrier& carrier) {
    for (std::uint64_t n = 1; n <= kMaxBucketsOfSums + 1; ++n)
      reduce(carrier, ElementType::kFloat32, 1,
             layout_of_sum("outer", n, ElementType::kFloat32).get());
    reduce(carrier, ElementType::kFloat32, 1, first.get());
    reduce(carrier, ElementType::kFloat32, 100, &ddps);
  });
  REQUIRE(lines.size() == 2 * kMaxBucketsOfSums + 4);
  CHECK(lines[2 * kMaxBucketsOfSums - 1] == "submitted 2048 1 1");
  CHECK(lines[2 * kMaxBucketsOfSums] == "submitted 0 1 1");
  CHECK(lines[2 * kMaxBucketsOfSums + 1] == "submitted 1 1 1");
  CHECK(lines.back() == "submitted 2049 1 100");
}

TEST_CASE("a sum outside DDP is no bucket where ranks exchange") {
  const auto sum = layout_of_sum("outer.100", 100, ElementType::kFloat32);
  const auto lines = submissions([&](Carrier& carrier) {
    reduce(carrier, ElementType::kFloat32, 100, sum.get());
    carrier.start(carrier.round_bytes(), carrier.rounds_in_flight_max(), 1, 2);
    reduce(carrier, ElementType::kFloat32, 100,
           layout_of_sum("b", 100, ElementType::kFloat64).get());
  });
  CHECK(lines ==
        std::vector<std::string>{"registered 1 1 100", "submitted 1 1 100", "submitted 0 1 100"});
}

TEST_CASE("buckets beyond the last id are exact") {
  BucketLayout layout{.key = 1, .version = 1, .tensors = {{"a", 0, 1}}};
  const auto lines = submissions([&](Carrier& carrier) {
    for (; layout.version <= kMaxBuckets + 2; ++layout.version) {
      reduce(carrier, ElementType::kFloat32, 1, &layout);
    }
  });
  REQUIRE(lines.size() == 2 * kMaxBuckets + 2);
  CHECK(lines[2 * kMaxBuckets - 1] == "submitted 4096 1 1");
  CHECK(lines[2 * kMaxBuckets] == "submitted 0 1 1");
  CHECK(lines.back() == "submitted 0 1 1");
}
