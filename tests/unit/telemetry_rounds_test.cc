// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/rounds.h"
#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::telemetry;

namespace {

RoundEntry full_entry() {
  return {
      .number = 431,
      .round = 812,
      .epoch = 77,
      .bucket = 3,
      .tree = 5,
      .reason = "early",
      .duration_ns = 4'250'000,
      .missing_blocks = 24,
      .expected_blocks = 960,
      .sources = {{.node = "w2", .ranks = {2, 3}, .missing_blocks = 12, .expected_blocks = 480}},
      .other_sources = 2,
      .other_sources_missing_blocks = 9,
      .tensors = {{.index = 1,
                   .name = "layer4.conv1.weight",
                   .missing_blocks = 11,
                   .expected_blocks = 240}},
      .other_tensors = 4,
      .other_tensors_missing_blocks = 7};
}

/// A page in which no field has its default value.
RoundsPage full_page() {
  RoundsPage page;
  page.node = "agg";
  page.jobs = {0x3fa81c02, 7};
  page.job = 0x3fa81c02;
  page.epoch = 6;
  page.label = "train.py";
  page.buckets = 2;
  page.roots = {"agg", "w1"};
  page.roots_omitted = 1;
  page.gathers = true;
  page.closed = 440;
  page.lost = 8;
  page.rounds = {full_entry()};
  page.more = true;
  page.next_after = 431;
  return page;
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a page of rounds survives JSON, every field of it") {
  const std::string text = to_json(full_page());
  const auto page = rounds_from_json(text);
  REQUIRE(page.ok());
  CHECK(to_json(page.value()) == text);
  for (const char* zero : {":\"\"", ":0,", ":0}", ":false", "[]"}) CHECK_FALSE(has(text, zero));
  CHECK(page.value().rounds[0].sources[0].ranks == std::vector<std::uint32_t>{2, 3});
  CHECK(page.value().rounds[0].tensors[0].name == "layer4.conv1.weight");
  CHECK(page.value().next_after == 431);
}

TEST_CASE("rounds that no page told of are counted") {
  RoundsPage page;
  CHECK(missed_rounds(7, page) == 0);
  for (const std::uint64_t number : {8, 9, 10}) {
    page.rounds.push_back(full_entry());
    page.rounds.back().number = number;
  }
  CHECK(missed_rounds(7, page) == 0);
  CHECK(missed_rounds(2, page) == 5);
  CHECK(missed_rounds(0, page) == 7);
  page.rounds[1].number = 30;  // rounds may be missing between those of a page, too
  page.rounds[2].number = 40;
  CHECK(missed_rounds(7, page) == 30);
  CHECK(missed_rounds(40, page) == 0);
  CHECK(missed_rounds(39, page) == 0);  // no daemon sends this
}

TEST_CASE("rounds that no daemon sends are refused by name") {
  const auto error_of = [](const std::string& text) {
    const auto page = rounds_from_json(text);
    return page.ok() ? std::string() : page.error().message;
  };
  CHECK(error_of("x") == "rounds: not JSON");
  CHECK(has(error_of(R"({"rounds": [{"number": -1}]})"), "rounds[0].number: an integer"));
  const auto list_of = [](std::size_t count) {
    std::string list = "[{}";
    for (std::size_t i = 1; i < count; ++i) list += ",{}";
    return list + "]";
  };
  CHECK(error_of(R"({"rounds":)" + list_of(kKeptRounds) + "}").empty());
  CHECK(has(error_of(R"({"rounds":)" + list_of(kKeptRounds + 1) + "}"), "at most 128 entries"));
  CHECK(has(error_of(R"({"rounds":[{"sources":)" + list_of(33) + "}]}"), "at most 32 entries"));
  CHECK(has(error_of(R"({"rounds":[{"tensors":)" + list_of(9) + "}]}"), "at most 8 entries"));
  CHECK(has(error_of(R"({"roots":[7]})"), "roots[0]: a text"));
}

TEST_CASE("a person sees why a round closed, and what was missing of whom") {
  const std::string text = rounds_text({full_page()});
  for (const char* part :
       {"job 3fa81c02 train.py", "ROUND", "  812 ", "early", "4.25", "2.5 %",
        "w2 (ranks 2, 3): 12, 2 others: 9", "layer4.conv1.weight: 11, 4 others: 7",
        "1 of 440 rounds that this node has closed; 8 were not noted",
        "what this node roots of a sharded plan; for the rest ask w1 and 1 more"}) {
    CHECK(has(text, part));
  }
}

TEST_CASE("a row names few, and counts the others") {
  RoundsPage page = full_page();
  RoundEntry& round = page.rounds[0];
  round.sources.assign(5, {.node = "w", .ranks = {}, .missing_blocks = 3, .expected_blocks = 4});
  round.tensors = {{.index = 6, .name = "", .missing_blocks = 1, .expected_blocks = 2}};
  round.other_tensors = 0;
  const std::string rows = rounds_rows(page);
  CHECK(has(rows, "w: 3, w: 3, w: 3, 4 others: 15"));
  CHECK(has(rows, "tensor 6: 1\n"));
  CHECK_FALSE(has(rows, "ROUND"));
}

TEST_CASE("rows that follow stand below the headings of the rows before") {
  RoundsPage page = full_page();
  const std::string table = rounds_text({page});
  const std::size_t headings = table.find('\n') + 1;
  const std::size_t missing_ends = table.find("MISSING") + 7 - headings;
  page.rounds[0].round = 123456789;
  page.rounds[0].reason = "deadline";
  page.rounds[0].duration_ns = 12'345'000'000;
  page.rounds[0].missing_blocks = 0;
  const std::string row = rounds_rows(page);
  CHECK(has(row, "123456789 "));
  CHECK(has(row, "12345.00"));
  CHECK(row.find(" %") + 2 == missing_ends);
}

TEST_CASE("where nothing is gathered, a person hears why and whom to ask") {
  CHECK(rounds_text({}) == "no jobs\n");
  CHECK(rounds_json({}) == "[]\n");
  RoundsPage page = full_page();
  page.rounds.clear();
  CHECK(has(rounds_text({page}), "no round has been gathered here under bounds yet"));
  page.gathers = false;
  CHECK(has(rounds_text({page}), "nothing is gathered at this node; ask w1 and 1 more"));
  page.buckets = 0;
  CHECK(has(rounds_text({page}), "no bounds: every round is gathered exactly"));
  page = full_page();
  page.roots = {"agg"};
  page.roots_omitted = 0;
  CHECK_FALSE(has(rounds_text({page}), "sharded"));
}

TEST_CASE("a log names everything in one line, and nothing drives the terminal") {
  RoundEntry round = full_entry();
  CHECK(round_line(round) ==
        "round 812 (epoch 77) of bucket 3 closed early after 4.2 ms without 24 of 960 blocks: w2 "
        "(ranks 2, 3): "
        "12, 2 others: 9; layer4.conv1.weight: 11, 4 others: 7");
  round.tensors[0].name = "\x1b[31m";
  CHECK(has(round_line(round), "?[31m"));
  CHECK(source_text("w", {1, 2, 3, 4, 5, 6, 7, 8, 9}) == "w (ranks 1, 2, 3, 4, 5, 6, 7, 8, ...)");
}
