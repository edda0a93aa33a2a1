// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/lab/description.h"

#include <algorithm>
#include <string>

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::lab;

namespace {

std::string errors_of(const std::string& yaml) {
  std::string text;
  for (const auto& error : parse_description(yaml, "net.yaml").errors) text += error.text() + "\n";
  return text;
}

constexpr const char* kWhole = R"(
seed: 42
defaults:
  up:   {rate: 200 Mbit/s, delay: 5 ms, queue: 128 KiB}
  down: {rate: 100 Mbit/s, delay: 1.5 ms, jitter: 20 us, loss: 1 %}
hosts: [h0, {name: h1, site: b, down: {loss: 5 %, rate: unlimited}}]
sites: [a, b]
site_links:
  - name: ab
    between: [a, b]
    rate: 50 Mbit/s
    duplicate: 0.1 %
    ecn_threshold: 30 KiB
    reorder: {share: 2 %, delay: 3 ms}
    backward: {rate: 20 Mbit/s, loss: {random: 1 %, gilbert_elliott: {enter: 0.1 %, leave: 10 %,
      bad: 50 %, good: 0.01 %}}}
schedule:
  - {at: 5 s, link: h1, direction: down, set: {loss: 3 %}}
  - {at: 1 s, link: ab, direction: backward, set: {rate: 1 Gbit/s}}
)";

}  // namespace

TEST_CASE("a whole description is understood") {
  const ParsedDescription parsed = parse_description(kWhole, "net.yaml");
  for (const auto& error : parsed.errors) UNSCOPED_INFO(error.text());
  REQUIRE(parsed.description.has_value());
  const Description& d = *parsed.description;
  CHECK(d.seed == 42);
  REQUIRE(d.hosts.size() == 2);
  CHECK(d.hosts[0].site_index == 0);
  CHECK(d.hosts[1].site_index == 1);
  LinkSettings up;
  up.rate_bits_per_second = 200'000'000;
  up.delay = Duration::ms(5);
  up.queue_bytes = 128 << 10;
  CHECK(d.hosts[0].up == up);
  CHECK(d.hosts[1].up == up);
  LinkSettings down;
  down.rate_bits_per_second = 100'000'000;
  down.delay = Duration::us(1500);
  down.jitter = Duration::us(20);
  down.loss.random = 0.01;
  CHECK(d.hosts[0].down == down);
  down.rate_bits_per_second = 0;
  down.loss.random = 0.05;
  CHECK(d.hosts[1].down == down);
  REQUIRE(d.site_links.size() == 1);
  CHECK(d.site_links[0].ends[0] == 0);
  CHECK(d.site_links[0].ends[1] == 1);
  LinkSettings forward;
  forward.rate_bits_per_second = 50'000'000;
  forward.duplicate_share = 0.001;
  forward.ecn_threshold_bytes = 30 << 10;
  forward.reorder = {0.02, Duration::ms(3)};
  CHECK(d.site_links[0].forward == forward);
  forward.rate_bits_per_second = 20'000'000;
  forward.loss = {0.01, GilbertElliott{0.001, 0.1, 0.5, 0.0001}};
  CHECK(d.site_links[0].backward == forward);
  REQUIRE(d.schedule.size() == 2);
  CHECK(d.schedule[0].at == Duration::seconds(1));
  CHECK(d.schedule[0].direction == Direction::kSecond);
  CHECK(d.schedule[1].link == "h1");
  LinkSettings changed = down;
  d.schedule[1].change.apply_to(changed);
  down.loss.random = 0.03;
  CHECK(changed == down);
}

TEST_CASE("each mistake is told with its line and what is accepted") {
  struct Row {
    const char* yaml;
    const char* expected;
  };
  const Row row = GENERATE(values<Row>({
      {"hosts: [a\n", "not YAML"},
      {"{}", "hosts: at least one host is needed"},
      {"hosts: a", "net.yaml:1: hosts: value 'a': accepted: a list"},
      {"hosts: [a, a]", "another host or site link has this name"},
      {"hosts: [A]", "value 'A': accepted: a name"},
      {"hosts:\n - {site: site}", "net.yaml:2: hosts[0].name: missing"},
      {"hosts: [a]\nhost: 1", "net.yaml:2: host: value '1': unknown; accepted: defaults"},
      {"hosts: [{name: a, site: x}]", "value 'x': no such site; accepted: site"},
      {"hosts: [{name: a, left: 1}]", "unknown; accepted: name, site, up, down"},
      {"hosts:\n- name: a\n  up:\n    rate: 5 Mbit",
       "net.yaml:4: hosts[0].up.rate: value '5 Mbit'"},
      {"hosts: [a]\ndefaults: {up: {rate: 0 bit/s}}", "accepted: unlimited, or a rate"},
      {"hosts: [a]\ndefaults: {up: {delay: 5}}", "accepted: a time"},
      {"hosts: [a]\ndefaults: {up: {delay: 61 min}}", "accepted: a time"},
      {"hosts: [a]\ndefaults: {up: {jitter: -1 ms}}", "accepted: a time"},
      {"hosts: [a]\ndefaults: {up: {queue: 1 KB}}", "accepted: a size"},
      {"hosts: [a]\ndefaults: {up: {loss: 101 %}}", "accepted: a share"},
      {"hosts: [a]\ndefaults: {up: {loss: 0.1}}", "accepted: a share"},
      {"hosts: [a]\ndefaults: {up: {loss: {burst: 1 %}}}", "accepted: random, gilbert_elliott"},
      {"hosts: [a]\ndefaults: {up: {loss: {gilbert_elliott: {enter: 1 %}}}}", "enter, leave"},
      {"hosts: [a]\ndefaults: {up: {reorder: {share: 1 %}}}", "a map with share and delay"},
      {"hosts: [a]\ndefaults: {up: {speed: 1}}", "unknown; accepted: rate, delay, jitter"},
      {"hosts: [a]\ndefaults: {side: {}}", "unknown; accepted: up, down"},
      {"hosts: [a]\nseed: -1", "accepted: a whole number"},
      {"hosts: [a]\nsites: [x, x]", "this site is there already"},
      {"hosts: [a]\nsites: [x, y]\nsite_links: [{name: a, between: [x, y]}]",
       "another host or site link has this name"},
      {"hosts: [a]\nsites: [x, y]\nsite_links: [{name: l, between: [x]}]", "between: [SITE, SITE]"},
      {"hosts: [a]\nsites: [x, y]\nsite_links: [{name: l, between: [x, x]}]",
       "between: [SITE, SITE]"},
      {"hosts: [a, {name: b, site: y}]\nsites: [x, y]", "no way from a to b; add a site link"},
      {"hosts: [a]\nschedule: [{at: 1 s, link: b, set: {}}]", "no such host or site link"},
      {"hosts: [a]\nschedule: [{link: a, set: {}}]", "a map with at, link, set"},
      {"hosts: [a]\nschedule: [{at: 1 s, link: a, direction: forward, set: {}}]",
       "value 'forward': accepted: up, down, both"},
  }));
  const std::string errors = errors_of(row.yaml);
  CAPTURE(row.yaml, row.expected, errors);
  CHECK(errors.find(row.expected) != std::string::npos);
}

TEST_CASE("all mistakes are told at once") {
  const std::string text = errors_of(
      "hosts: [a, B]\ndefaults: {up: {delay: 5, loss: 2}}\nschedule: [{at: 1, link: a, set: {}}]");
  CHECK(std::ranges::count(text, '\n') == 4);
}
