// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/support/catch.h"
#include "tests/unit/config_fixture.h"

using namespace gradplane;
using namespace gradplane::config;

namespace {

std::vector<std::string> added(const std::string& line) {
  return errors_of(std::string(kBase) + line + "\n");
}

}  // namespace

TEST_CASE("a file gives typed values and documented defaults") {
  const ParsedConfig parsed = parse(kBase);
  REQUIRE(parsed.ok());
  const Config& c = *parsed.config;
  CHECK(c.self == 0);
  CHECK(c.control.socket == "/run/gradplane/gradplaned.sock");
  CHECK(c.control.allow_uids.empty());
  CHECK(c.port().kind == PortKind::kAfPacket);
  CHECK(c.port().interface == "eth1");
  CHECK(c.port().mtu_bytes == 1500);
  CHECK(c.port().memory_bytes == 0);  // 0: as much as the port needs
  CHECK_FALSE(c.port().vlan);
  CHECK_FALSE(c.port().link_rate_bits_per_s);
  CHECK(c.cluster.udp_port == 47000);
  REQUIRE(c.cluster.key);
  CHECK((*c.cluster.key)[1] == std::byte{0x11});
  CHECK(c.cluster.coordinator == 0);
  REQUIRE(c.cluster.nodes.size() == 2);
  CHECK(c.cluster.nodes[1].address.value == 0x0a000002);
  CHECK(c.cluster.nodes[1].prefix_length == 24);
  CHECK(c.plan.kind == PlanKind::kStar);
  CHECK(c.plan.root == 0);
  CHECK(c.poll.idle == IdlePolicy::kAdaptive);
  CHECK(c.poll.max_sleep == Duration::ms(2));
  CHECK(!c.poll.real_time);
  CHECK(c.round_bytes == kMaxRoundBytes);
  CHECK(c.block_bytes == kDefaultBlockBytes);
  CHECK(c.liveness.suspect_after == Duration::seconds(3));
  CHECK(c.authenticate);
  CHECK(!c.require);
  CHECK(c.log_level == LogLevel::kInfo);
}

TEST_CASE("every kind of value is read") {
  const ParsedConfig parsed = parse(std::string(kBase) + R"(control:
  socket: /tmp/x.sock
  allow_uids: [1000, 1001]
plan: {kind: sharded, roots: training}
poll: {idle: adaptive, core: 3, spin: 1.5 ms, max_sleep: "10 ms", real_time: true}
rounds: {bytes: 1 MiB}
block: {bytes: 512 B}
security: {authenticate: false}
ranks: {require: true}
log: {level: debug}
)");
  REQUIRE(parsed.errors.empty());
  const Config& c = *parsed.config;
  CHECK(c.control.allow_uids == std::vector<std::uint32_t>{1000, 1001});
  CHECK(c.require);
  CHECK(c.plan.kind == PlanKind::kSharded);
  CHECK(c.plan.roots == ShardRoots::kTraining);
  CHECK(c.plan.root == api::kNoNode);
  CHECK(c.poll.core == 3U);
  CHECK(c.poll.spin == Duration::us(1500));
  CHECK(c.poll.max_sleep == Duration::ms(10));
  CHECK(c.poll.real_time);
  CHECK(c.round_bytes == std::size_t{1} << 20);
  CHECK(c.block_bytes == 512);
  CHECK_FALSE(c.authenticate);
  CHECK(c.log_level == LogLevel::kDebug);
}

TEST_CASE("a node overrides port settings for itself alone") {
  const std::string text =
      base_with("  interface: eth1\n", "  interface: eth1\n  mtu: 9000\n  link_rate: 1 Gbit/s\n") +
      "      port: {interface: ens5, link_rate: 10 Gbit/s, vlan: 7}\n";
  const ParsedConfig parsed = parse(text);
  REQUIRE(parsed.errors.empty());
  const auto& nodes = parsed.config->cluster.nodes;
  CHECK(nodes[0].port.interface == "eth1");
  CHECK(nodes[0].port.link_rate_bits_per_s == 1000000000U);
  CHECK_FALSE(nodes[0].port.vlan);
  CHECK(nodes[1].port.interface == "ens5");
  CHECK(nodes[1].port.link_rate_bits_per_s == 10000000000U);
  CHECK(nodes[1].port.vlan == 7);
  CHECK(nodes[1].port.mtu_bytes == 9000);
}

TEST_CASE("who this host is: --node, then node.name, then the host name") {
  const auto self = [](std::string_view text, const ParseOptions& options) {
    const ParsedConfig parsed = parse_config(text, "f.yaml", options);
    return parsed.ok() ? parsed.config->self : 99;
  };
  const std::string unnamed = base_with("node:\n  name: a\n", "");
  CHECK(self(kBase, {.node_override = "b", .host_name = "x"}) == 1);
  CHECK(self(kBase, {.node_override = "", .host_name = "b"}) == 0);
  CHECK(self(unnamed, {.node_override = "", .host_name = "b"}) == 1);
  CHECK(self(unnamed, {.node_override = "", .host_name = "x"}) == 99);
  CHECK(self(unnamed, {.node_override = "", .host_name = "x", .any_node = true}) == api::kNoNode);
  CHECK(self(unnamed, {.node_override = "x", .host_name = "b", .any_node = true}) == 99);
}

TEST_CASE("an error names file, line, key, value and what is accepted") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"port: 3", "f.yaml:14: port: given twice; the first is in line 3"},
      {"poll: {idle: sometimes}",
       "f.yaml:14: poll.idle: value 'sometimes': accepted: one of busy, adaptive"},
      {"rounds: {bytes: 4096}",
       "f.yaml:14: rounds.bytes: value '4096': accepted: auto, or a size from 64 KiB to 4 MiB, a "
       "multiple of 4 KiB, with a unit (B, KiB, MiB, GiB)"},
      {"liveness: {heartbeat: 250}",
       "f.yaml:14: liveness.heartbeat: value '250': accepted: a time from 10 ms to 1 min, with a "
       "unit (ns, us, ms, s, min)"},
      {"security: {authenticate: yes}",
       "f.yaml:14: security.authenticate: value 'yes': accepted: true or false"},
      {"poll: {core: 1.5}",
       "f.yaml:14: poll.core: value '1.5': accepted: an integer from 0 to 4095"},
      {"log: {level: }",
       "f.yaml:14: log.level: has nothing; accepted: one of error, warn, info, debug"},
      {"log: {level: [info]}",
       "f.yaml:14: log.level: has a list; accepted: one of error, warn, info, debug"},
      {"control: {allow_uids: 5}",
       "f.yaml:14: control.allow_uids: value '5': accepted: a list of at most 64 integers from 0 "
       "to "
       "4294967294"},
      {"control: {allow_uids: [1, x]}",
       "f.yaml:14: control.allow_uids: value '[1, x]': accepted: a list of at most 64 integers "
       "from "
       "0 to 4294967294"},
      {"log: info", "f.yaml:14: log: a section of 'key: value' lines is accepted, not 'info'"},
      {"polls: {idle: busy}", "f.yaml:14: polls: unknown key; did you mean poll?"},
      {"poll: {ilde: busy}", "f.yaml:14: poll.ilde: unknown key; did you mean poll.idle?"},
      {"mtu: 1500", "f.yaml:14: mtu: unknown key; did you mean port.mtu?"},
      {"log.level: info",
       "f.yaml:14: log.level: a key with a dot is not accepted; nest it: one section for each "
       "word"},
      {"block: {x: 1}", "f.yaml:14: block.x: unknown key; accepted here: bytes"},
      {"[1]: 2", "f.yaml:14: a key must be a plain word"},
  };
  for (const auto& [line, expected] : cases) {
    CAPTURE(line);
    CHECK(added(line) == std::vector<std::string>{expected});
  }
}

TEST_CASE("all errors of a file are reported, by line") {
  const auto errors = errors_of(base_with("  kind: af_packet\n", "  kind: af_pakcet\n  mtu: 12\n") +
                                "      agregate: true\nlog: {level: loud}\n");
  CHECK(errors ==
        std::vector<std::string>{
            "f.yaml:4: port.kind: value 'af_pakcet': accepted: one of af_packet, af_xdp, memif, "
            "pci, loopback",
            "f.yaml:5: port.mtu: value '12': accepted: auto, or an integer from 1364 to 9216",
            "f.yaml:15: cluster.nodes[1].agregate: unknown key; did you mean "
            "cluster.nodes[1].aggregate?",
            "f.yaml:16: log.level: value 'loud': accepted: one of error, warn, info, debug"});
}

TEST_CASE("a required key that is missing is an error") {
  CHECK(errors_of("") ==
        std::vector<std::string>{
            "f.yaml: cluster.nodes: missing; a list of nodes with name and address is required",
            "f.yaml: port.kind: missing; it has no default"});
  CHECK(errors_of(base_with("  kind: af_packet\n", "")) ==
        std::vector<std::string>{"f.yaml:4: port.kind: missing; it has no default"});
  CHECK(errors_of(base_with("      address: 10.0.0.2/24\n", "      aggregate: false\n")).size() ==
        1);
}

TEST_CASE("a secret is never shown") {
  const auto errors = errors_of(base_with("00112233445566778899aabbccddeeff", "hunter2"));
  CHECK(errors == std::vector<std::string>{
                      "f.yaml:7: cluster.key: value '<hidden>': accepted: 32 hex digits"});
  CHECK(effective_yaml(parse(kBase)).find("00112233") == std::string::npos);
}

TEST_CASE("what is not one YAML document is an error with a line") {
  CHECK(errors_of("port: [1\nlog: }").size() == 1);
  CHECK(errors_of("port: [1\nlog: }")[0].starts_with("f.yaml:2: not YAML: "));
  CHECK(added("---\nlog: {}") ==
        std::vector<std::string>{"f.yaml:15: one document is accepted; a second one begins here"});
  CHECK(errors_of("\tport: 1")[0].starts_with("f.yaml:1: not YAML: "));
  CHECK_FALSE(errors_of(std::string(kMaxConfigBytes + 1, ' ')).empty());
}

TEST_CASE("anchors that contain themselves or multiply end") {
  CHECK_FALSE(errors_of("port: &p {mtu: *p}").empty());
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (char level = '1'; level <= '9'; ++level) {
    const std::string item{'*', 'a', static_cast<char>(level - 1), ','};
    bomb.append({'a', level, ':', ' ', '&', 'a', level, ' ', '['});
    for (int i = 0; i < 9; ++i) bomb += item;
    bomb += "]\n";
  }
  CHECK_FALSE(errors_of(bomb).empty());
}

TEST_CASE("a value cannot smuggle in a device argument or a control character") {
  for (const char* name : {"eth0,iface=eth1", "a b", "../x", "abcdefghijklmnop", "\"e\\x1b[2J\""}) {
    CAPTURE(name);
    const auto errors = errors_of(base_with("eth1", name));
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].find('\x1b') == std::string::npos);
  }
  CHECK(errors_of(base_with("eth1", "enp3s0.77")).empty());
  const std::string kept = std::string(kBase) + "control: {socket: \"/run/a";
  CHECK(errors_of(kept + "@b\"}\n").empty());
  for (const char* end : {",b\"}\n", " b\"}\n", "\\nb\"}\n"})
    CHECK(errors_of(kept + end).size() == 1);
}

TEST_CASE("addresses") {
  for (const char* bad :
       {"10.0.0.1", "10.0.0.1/33", "10.0.0.0/24", "10.0.0.255/24", "10.0.0.256/24", "10.0.256.1/24",
        "127.0.0.1/24", "224.0.0.1/24", "0.0.0.1/24", "10.0.0.01/24", "10.0.0/24", "10.0.0.1.2/24",
        "10.0.0.1/31", "10.0.0.1/", "a.b.c.d/24"}) {
    CAPTURE(bad);
    CHECK(errors_of(base_with("10.0.0.1/24", bad)).size() == 1);
  }
}
