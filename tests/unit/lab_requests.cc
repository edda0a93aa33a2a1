// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/lab/requests.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::lab;
using nlohmann::json;

namespace {

constexpr Instant kNow = Instant::from_ns(1'000'000'000);

struct Bench {
  Network network = Network(*parse_description("hosts: [a, b]\n"
                                               "sites: [x, y]\n"
                                               "site_links: [{name: xy, between: [x, y]}]\n"
                                               "schedule: [{at: 1 s, link: a, set: {}}]",
                                               "test.yaml")
                                 .description,
                            16);
  SwitchCounters counters{1.5, 2, 3000, 4, 5};

  json ask(const std::string& request) {
    return json::parse(answer_request(request, network, counters, kNow).json);
  }
};

}  // namespace

TEST_CASE("stats have every link, its settings, and the switch") {
  Bench bench;
  bench.network.offer(0, kNow, std::vector<std::byte>(100));
  const json stats = bench.ask(R"({"do": "stats"})");
  CHECK(stats["ok"] == true);
  CHECK(stats["links"].size() == 3);
  CHECK(stats["links"]["a"]["up"]["frames"] == 1);
  CHECK(stats["links"]["a"]["up"]["bytes"] == 100);
  CHECK(stats["links"]["a"]["up"]["queued_bytes"] == 0);  // a link without a rate has no queue
  CHECK(stats["links"]["xy"]["backward"]["settings"]["rate_bits_per_second"] == 0);
  CHECK(stats["links"]["a"]["up"]["last_data_arrival_ns"] == 0);
  CHECK_FALSE(stats["links"]["xy"]["forward"].contains("last_data_arrival_ns"));
  CHECK(stats["switch"]["cpu_seconds"] == 1.5);
  CHECK(stats["switch"]["latest_us"] == 3.0);
  CHECK(stats["switch"]["ring_drops"] == 4);
  CHECK(stats["switch"]["frames_in_flight"] == 1);
}

TEST_CASE("reset clears what was counted and tells the caller to do the same") {
  Bench bench;
  bench.network.offer(0, kNow, std::vector<std::byte>(100));
  const Answer answer = answer_request(R"({"do":"reset"})", bench.network, bench.counters, kNow);
  CHECK(answer.resets);
  CHECK(bench.ask(R"({"do":"stats"})")["links"]["a"]["up"]["frames"] == 0);
  CHECK_FALSE(answer_request(R"({"do":"stats"})", bench.network, bench.counters, kNow).resets);
}

TEST_CASE("set changes what it names, in the direction that it names") {
  Bench bench;
  const json one = bench.ask(
      R"({"do":"set","link":"a","direction":"down","settings":{"rate":"5 Mbit/s","loss":"2 %"}})");
  CHECK(one["ok"] == true);
  CHECK(one["link"]["down"]["settings"]["rate_bits_per_second"] == 5'000'000);
  CHECK(one["link"]["down"]["settings"]["loss"] == 0.02);
  CHECK(one["link"]["up"]["settings"]["rate_bits_per_second"] == 0);
  const json both = bench.ask(R"({"do":"set","link":"xy","settings":{"delay":"3 ms"}})");
  CHECK(both["link"]["forward"]["settings"]["delay_ns"] == 3'000'000);
  CHECK(both["link"]["backward"]["settings"]["delay_ns"] == 3'000'000);
}

TEST_CASE("start_schedule starts it now") {
  Bench bench;
  CHECK(bench.network.next_event() == Instant::never());
  CHECK(bench.ask(R"({"do":"start_schedule"})")["ok"] == true);
  CHECK(bench.network.next_event() == kNow + Duration::seconds(1));
}

TEST_CASE("a bad request is refused and changes nothing") {
  Bench bench;
  const std::string request = GENERATE(
      as<std::string>{}, "", "x", "[]", "{}", R"({"do":1})", R"({"do":"stop"})", R"({"do":"set"})",
      R"({"do":"set","link":"c","settings":{}})", R"({"do":"set","link":"a"})",
      R"({"do":"set","link":"a","direction":"forward","settings":{"delay":"1 ms"}})",
      R"({"do":"set","link":"a","settings":{"delay":"1 ms","rate":7}})",
      R"({"do":"set","link":"a","settings":{"delay":"1 ms","speed":"7 ms"}})");
  CAPTURE(request);
  const json answer = bench.ask(request);
  CHECK(answer["ok"] == false);
  CHECK_FALSE(answer["error"].get<std::string>().empty());
  CHECK(bench.network.find_link("a")->first.settings() == LinkSettings{});
}
