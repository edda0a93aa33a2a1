// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/support/catch.h"
#include "tests/unit/config_fixture.h"

using namespace gradplane;
using namespace gradplane::config;

namespace {

std::vector<std::string> one(const std::string& text) {
  return {"f.yaml:" + text};
}

constexpr std::string_view kPort = "  kind: af_packet\n  interface: eth1\n";

}  // namespace

TEST_CASE("names and addresses are unique") {
  CHECK(errors_of(base_with("name: b", "name: a")) ==
        one("12: cluster.nodes[1].name: value 'a': is the name of cluster.nodes[0] already; names "
            "are unique"));
  CHECK(errors_of(base_with("10.0.0.2/24", "10.0.0.1/24")) ==
        one("13: cluster.nodes[1].address: value '10.0.0.1/24': is the address of "
            "cluster.nodes[0] already; addresses are unique"));
}

TEST_CASE("a node that is referred to exists") {
  CHECK(errors_of(base_with("name: a", "name: c")) ==
        one("2: node.name: value 'c': no such node in cluster.nodes (a, b)"));
  CHECK(errors_of(base_with("cluster:\n", "cluster:\n  coordinator: c\n")) ==
        one("7: cluster.coordinator: value 'c': no such node in cluster.nodes (a, b)"));
  CHECK(errors_of(std::string(kBase) + "plan: {root: c}\n") ==
        one("14: plan.root: value 'c': no such node in cluster.nodes (a, b)"));
  const ParsedConfig parsed =
      parse(base_with("cluster:\n", "plan: {root: b}\ncluster:\n  coordinator: b\n"));
  REQUIRE(parsed.ok());
  CHECK(parsed.config->plan.root == 1);
  CHECK(parsed.config->cluster.coordinator == 1);
}

TEST_CASE("each poll thread has a CPU of its own") {
  const auto with = [](const std::string& poll) { return errors_of(std::string(kBase) + poll); };
  CHECK(with("poll: {cores: [2, 3]}\n").empty());
  CHECK(with("poll: {cores: []}\n").empty());
  CHECK(with("poll: {core: 1, cores: [2, 3]}\n") ==
        one("14: poll.core: value '1': poll.cores is given too; only one of them is accepted"));
  CHECK(with("poll: {cores: [2, 2]}\n").size() == 1);
  CHECK(with("poll: {cores: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}\n").size() == 1);
}

TEST_CASE("several nodes share exactly one key") {
  CHECK(
      errors_of(base_with("key: 00112233445566778899aabbccddeeff", "key_file: /etc/key")).empty());
  CHECK(errors_of(base_with("  nodes", "  key_file: /etc/key\n  nodes")) ==
        one("8: cluster.key_file: value '/etc/key': cluster.key is given too; only one of them is "
            "accepted"));
  CHECK(errors_of(base_with("  key: 00112233445566778899aabbccddeeff\n", "")).size() == 1);
  CHECK(errors_of("node: {name: a}\nport: {kind: loopback}\ncluster:\n  nodes: [{name: a, address: "
                  "10.0.0.1/24, aggregate: true}]\n")
            .empty());
}

TEST_CASE("a port kind has what it needs and nothing that means nothing to it") {
  CHECK(errors_of(base_with("  interface: eth1\n", "")) ==
        std::vector<std::string>{
            "f.yaml:4: port.interface: missing; port.kind af_packet of node a needs it",
            "f.yaml:4: port.interface: missing; port.kind af_packet of node b needs it"});
  CHECK(errors_of(base_with(kPort, "  kind: pci\n  pci: 0000:3b:00.0\n")).empty());
  CHECK(errors_of(base_with(kPort, "  kind: pci\n")).size() == 2);
  CHECK(errors_of(base_with(kPort, "  kind: pci\n  pci: 3b:00.9\n")).size() == 1);
  CHECK(errors_of(base_with(kPort, "  kind: pci\n  pci: 3b:00.0\n  interface: eth1\n")) ==
        one("6: port.interface: value 'eth1': means nothing with port.kind pci; remove it"));
  CHECK(errors_of(base_with(kPort, "  kind: memif\n")).size() == 2);
  CHECK(errors_of(base_with(kPort, "  kind: memif\n  memif: {socket: /run/m.sock}\n")).empty());
  CHECK(errors_of(base_with(kPort, "  kind: loopback\n")) ==
        one("4: port.kind: value 'loopback': a loopback port reaches no other node; a cluster of "
            "several nodes needs another kind"));
  CHECK(errors_of(base_with(kPort, "  kind: af_xdp\n  interface: eth1\n  mtu: 9000\n")) ==
        one("6: port.mtu: value '9000': at most 3400 is accepted with port.kind af_xdp"));
}

TEST_CASE("nodes of one cluster may have ports of different kinds") {
  const std::string node_b = "      port: {kind: pci, pci: 3b:00.0}\n";
  CHECK(errors_of(std::string(kBase) + node_b).empty());
  CHECK(errors_of(std::string(kBase) + "      port: {pci: 3b:00.0}\n") ==
        one("14: cluster.nodes[1].port.pci: value '3b:00.0': means nothing with port.kind "
            "af_packet; remove it"));
}

TEST_CASE("nodes reach each other, or have a gateway") {
  const std::string apart = base_with("10.0.0.2/24", "10.0.1.2/24");
  const auto errors = errors_of(apart);
  REQUIRE(errors.size() == 2);
  CHECK(errors[0] ==
        "f.yaml:10: cluster.nodes[0].address: value '10.0.0.1/24': node b (10.0.1.2) is outside "
        "this subnet and there is no port.gateway");
  CHECK(errors_of(base_with("      aggregate: true\n    - name: b\n      address: 10.0.0.2/24\n",
                            "      aggregate: true\n      port: {gateway: 10.0.0.254}\n"
                            "    - name: b\n      address: 10.0.1.2/24\n"
                            "      port: {gateway: 10.0.1.254}\n"))
            .empty());
  CHECK(errors_of(base_with("  interface: eth1\n", "  interface: eth1\n  gateway: 10.0.9.1\n"))
            .size() == 2);
  CHECK(errors_of(base_with("  interface: eth1\n", "  interface: eth1\n  gateway: 10.0.0.2\n")) ==
        one("6: port.gateway: value '10.0.0.2': is the address of a node; a gateway is a router"));
}

TEST_CASE("blocks fit the smallest MTU of the cluster") {
  const std::string jumbo = base_with("  interface: eth1\n", "  interface: eth1\n  mtu: 9000\n");
  CHECK(parse(jumbo).config->block_bytes == kMaxBlockBytes);
  const ParsedConfig mixed = parse(jumbo + "      port: {mtu: 1500}\n");
  REQUIRE(mixed.ok());
  CHECK(mixed.config->block_bytes == kDefaultBlockBytes);
  std::string first_is_smaller = jumbo;
  first_is_smaller.insert(first_is_smaller.find("    - name: b"), "      port: {mtu: 1500}\n");
  CHECK(parse(first_is_smaller).config->block_bytes == kDefaultBlockBytes);
  CHECK(errors_of(std::string(kBase) + "block: {bytes: 1472 B}\n") ==
        one("14: block.bytes: value '1472 B': does not fit the smallest MTU of the nodes; at most "
            "1408 B, or auto"));
  CHECK(errors_of(std::string(kBase) + "block: {bytes: 1000 B}\n").size() == 1);
  constexpr std::size_t kFits = kIpUdpHeaderBytes + kMaxHeaderBytes + coverage_bytes(2) + 1344;
  for (const auto& [mtu, block_bytes] : {std::pair{kFits, 1344U}, std::pair{kFits - 1, 1280U}}) {
    const std::string with_mtu = "  interface: eth1\n  mtu: " + std::to_string(mtu) + "\n";
    CHECK(parse(base_with("  interface: eth1\n", with_mtu)).config->block_bytes == block_bytes);
  }
}

TEST_CASE("the MTU that nobody names is large where all nodes have memif") {
  const std::string memif = "  kind: memif\n  memif: {socket: /run/m.sock}\n";
  const std::string all = base_with("  kind: af_packet\n  interface: eth1\n", memif);
  const ParsedConfig large = parse(all);
  REQUIRE(large.ok());
  CHECK(large.config->port().mtu_bytes == 9000);
  CHECK(large.config->block_bytes == kMaxBlockBytes);
  CHECK(parse(all + "      port: {mtu: 1500}\n").config->block_bytes == kDefaultBlockBytes);
  CHECK(parse(all + "      port: {kind: af_packet, interface: eth1}\n").config->port().mtu_bytes ==
        1500);
}

TEST_CASE("an MTU that the operator has chosen is known from one that nobody names") {
  CHECK(parse(kBase).config->port().has_default_mtu);
  CHECK_FALSE(parse(base_with("  interface: eth1\n", "  interface: eth1\n  mtu: 1500\n"))
                  .config->port()
                  .has_default_mtu);
}

TEST_CASE("a node whose port is of another kind than the common one does not have its device") {
  const std::string memif = "      port: {kind: memif, memif: {socket: /run/m.sock}}\n";
  const ParsedConfig mixed = parse(std::string(kBase) + memif);
  REQUIRE(mixed.ok());
  CHECK(mixed.config->cluster.nodes[0].port.interface == "eth1");
  CHECK(mixed.config->cluster.nodes[1].port.interface.empty());
  const ParsedConfig nics =
      parse(base_with(kPort, "  kind: pci\n  pci: \"0000:01:00.0\"\n") + memif);
  REQUIRE(nics.ok());
  CHECK(nics.config->cluster.nodes[0].port.pci == "0000:01:00.0");
  CHECK(nics.config->cluster.nodes[1].port.pci.empty());
}

TEST_CASE("rounds are small where all packets go through memory") {
  const std::string memif = "  kind: memif\n  memif: {socket: /run/m.sock}\n";
  CHECK(parse(base_with(kPort, memif)).config->round_bytes == 256 << 10);
  CHECK(parse(base_with(kPort, memif) + "rounds: {bytes: 1 MiB}\n").config->round_bytes == 1 << 20);
  CHECK(parse(base_with(kPort, memif) + "rounds: {bytes: auto}\n").config->round_bytes ==
        256 << 10);
  const ParsedConfig mixed =
      parse(base_with(kPort, memif) + "      port: {kind: af_packet, interface: eth1}\n");
  REQUIRE(mixed.ok());
  CHECK(mixed.config->round_bytes == kMaxRoundBytes);
}

TEST_CASE("a plan has roots") {
  const std::string none = base_with("      aggregate: true\n", "");
  CHECK(errors_of(none) ==
        std::vector<std::string>{"f.yaml: plan.root: missing; plan.kind "
                                 "star needs plan.root, or a node with aggregate: true"});
  CHECK(errors_of(none + "plan: {root: b}\n").empty());
  CHECK(errors_of(none + "plan: {kind: sharded, roots: training}\n").empty());
  CHECK(errors_of(none + "plan: {kind: sharded}\n").size() == 1);
  CHECK(errors_of(std::string(kBase) + "plan: {kind: sharded, root: a}\n") ==
        one("14: plan.root: value 'a': means nothing with plan.kind sharded"));
  CHECK(errors_of(std::string(kBase) + "plan: {roots: training}\n") ==
        one("14: plan.roots: value 'training': means nothing with plan.kind star"));
}

TEST_CASE("the plans of single jobs have roots and trees, too") {
  const std::string none = base_with("      aggregate: true\n", "");
  CHECK(errors_of(none + "plan: {kind: sharded, roots: training, jobs: {x: star}}\n") ==
        std::vector<std::string>{
            "f.yaml:13: plan.root: missing; star in plan.jobs needs plan.root, or "
            "a node with aggregate: true"});
  CHECK(
      errors_of(std::string(kBase) + "plan: {jobs: {x: manual}}\n") ==
      std::vector<std::string>{"f.yaml:14: plan.trees: missing; manual in plan.jobs needs at least "
                               "one tree with its root and parents"});
  // These keys have no effect on plan.kind, but single jobs read them.
  CHECK(
      errors_of(std::string(kBase) + "plan: {kind: sharded, root: a, jobs: {x: star}}\n").empty());
  CHECK(errors_of(std::string(kBase) + "plan: {roots: training, jobs: {x: sharded}}\n").empty());
}

TEST_CASE("values that contradict each other are errors") {
  CHECK(errors_of(std::string(kBase) + "poll: {idle: busy, max_sleep: 5 ms}\n") ==
        one("14: poll.max_sleep: value '5 ms': means nothing with poll.idle busy; remove it"));
  CHECK(errors_of(std::string(kBase) + "poll: {idle: busy, real_time: true}\n") ==
        one("14: poll.real_time: value 'true': means nothing with poll.idle busy; remove it"));
  CHECK(errors_of(std::string(kBase) + "liveness: {suspect_after: 700 ms}\n") ==
        one("14: liveness.suspect_after: value '700 ms': suspect_after must be at least 3 "
            "heartbeats"));
  CHECK(errors_of(std::string(kBase) + "liveness: {heartbeat: 2 s}\n").size() == 1);
}

TEST_CASE("a sharded plan has as many roots as there may be trees") {
  std::string text(kBase);
  text.insert(text.find("cluster:"), "plan: {kind: sharded}\n");
  for (std::size_t i = 2; i <= kMaxTrees; ++i) {
    if (i == kMaxTrees) CHECK(errors_of(text).empty());
    const std::string number = std::to_string(i + 1);
    text += "    - {name: n" + number + ", aggregate: true, address: 10.0.0." + number + "/24}\n";
  }
  CHECK(errors_of(text).empty());
  text += "    - {name: n, aggregate: true, address: 10.0.0.200/24}\n";
  CHECK(errors_of(text) == one("6: plan.roots: 65 nodes have aggregate: true; at most 64 may"));
}

TEST_CASE("too many nodes are refused") {
  std::string text =
      "node: {name: n0}\nport: {kind: af_packet, interface: e}\ncluster:\n  key_file: "
      "/k\n  nodes:\n";
  for (std::size_t i = 0; i <= kMaxNodes; ++i) {
    text += "    - {name: n" + std::to_string(i) + ", aggregate: " + (i == 0 ? "true" : "false") +
            ", address: 10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1) +
            "/16}\n";
    if (i + 1 == kMaxNodes) CHECK(errors_of(text).empty());
  }
  CHECK(errors_of(text) ==
        one("5: cluster.nodes: a list of 1 to 1024 nodes is accepted, each with name and address"));
}
