// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/bounds.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::telemetry;

namespace {

/// A page in which no field has its default value.
BoundsPage full_page() {
  BoundsPage page;
  page.node = "agg";
  page.jobs = {0x3fa81c02, 7};
  page.job = 0x3fa81c02;
  page.label = "train.py";
  page.compensation = "rescale";
  page.buckets = 2;
  page.closes = {.full = 90, .early = 8, .deadline = 1, .absent = 3};
  page.sources = {
      {.node = "w1", .missing_blocks = 25, .expected_blocks = 1000, .threshold_ns = 3200000}};
  page.sources_omitted = 4;
  page.tensors = {{.bucket = 1,
                   .name = "layer4.conv1.weight",
                   .elements = 5000,
                   .blocks = 15,
                   .bound = 0.2,
                   .why = "preset",
                   .rule = "ltp",
                   .wire = "bf16",
                   .missing_blocks = 5,
                   .expected_blocks = 400,
                   .excluded_blocks = 6}};
  page.more = true;
  page.next_bucket = 1;
  page.next_tensor = 9;
  return page;
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a page of bounds survives JSON, every field of it") {
  const std::string text = to_json(full_page());
  const auto page = bounds_from_json(text);
  REQUIRE(page.ok());
  CHECK(to_json(page.value()) == text);
  for (const char* zero : {":\"\"", ":0,", ":0}", ":false"}) CHECK_FALSE(has(text, zero));
  CHECK(page.value().tensors[0].bound == 0.2);
  CHECK(page.value().closes.absent == 3);
  CHECK(page.value().jobs == std::vector<std::uint32_t>{0x3fa81c02, 7});
}

TEST_CASE("bounds that no daemon sends are refused by name") {
  const auto error_of = [](const std::string& text) {
    const auto page = bounds_from_json(text);
    return page.ok() ? std::string() : page.error().message;
  };
  CHECK(error_of("x") == "bounds: not JSON");
  CHECK(error_of("[]") == "bounds: an object is accepted");
  CHECK(error_of(R"({"tensors": [{"bound": "x"}]})") == "tensors[0].bound: a number is accepted");
  CHECK(error_of(R"({"more": 1})") == "more: true or false is accepted");
  std::string many = R"({"tensors": [{})";
  for (std::size_t i = 0; i < kMaxTensorsPerPage; ++i) many += ",{}";
  CHECK(has(error_of(many + "]}"), "tensors: a list of at most 512 entries"));
  CHECK(error_of(R"({"news": 1})").empty());
}

TEST_CASE("a person sees what may be missing, why, and what was") {
  const std::string text = bounds_text({full_page()});
  for (const char* part :
       {"job 3fa81c02 train.py", "1 tensor in 2 buckets; compensation rescale", "TENSOR",
        "layer4.conv1.weight", "20 %", "preset", "ltp", "bf16", "1.25 %",
        "rounds summed here: 90 full, 8 early, 1 by deadline, 3 without somebody", "SOURCE", "w1",
        "2.5 %", "3.2 ms", "and 4 more"}) {
    CHECK(has(text, part));
  }
}

TEST_CASE("without jobs, bounds or a root here there is still something to say") {
  CHECK(bounds_text({}) == "no jobs\n");
  CHECK(bounds_json({}) == "[]\n");
  BoundsPage page = full_page();
  page.buckets = 0;
  CHECK(has(bounds_text({page}), "no bounds: every round is gathered exactly"));
  page = full_page();
  page.sources.clear();
  page.tensors[0].expected_blocks = 0;
  page.tensors[0].bound = 0;
  page.tensors.push_back(page.tensors[0]);
  page.tensors[1].why = "learned";
  page.tensors[0].name = "\x1b[31m";
  const std::string text = bounds_text({page, full_page()});
  CHECK(has(text, "exact"));
  CHECK(has(text, "      -  learned  ltp"));
  CHECK(has(text, "?[31m"));
  CHECK_FALSE(has(text, "\x1b"));
}
