// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/topology.h"

#include <algorithm>
#include <vector>

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::telemetry;

namespace {

LinkStatus measured(std::string from, std::uint64_t mbit, bool at_least = false) {
  return {.node = std::move(from),
          .rate_bits_per_second = mbit * 1'000'000,
          .rate_is_lower_bound = at_least,
          .rate_confidence_percent = 80,
          .rate_age_ns = 2'000'000'000,
          .rtt_ns = 41'000'000,
          .rtt_age_ns = 1'500'000'000,
          .loss_ppm = 1200,
          .loss_confidence_percent = 45,
          .loss_age_ns = 3'000'000'000};
}

/// Two nodes in Paris, one in Rome and one in Oslo.
Topology known() {
  Topology t;
  t.node = "p1";
  t.nodes = {{"p1", "paris"}, {"p2", "paris"}, {"rome", ""}, {"oslo", ""}};
  t.links = {{"p1", measured("rome", 70)},
             {"p1", measured("oslo", 20, true)},
             {"p2", measured("rome", 90)},
             {"p1", measured("p2", 900)}};
  TopologyJob job;
  job.id = 0x3fa81c02;
  job.label = "train.py";
  job.plan_kind = "packed";
  job.epoch = 4;
  job.trees = {{3, "p1", {{"p2", "p1"}, {"rome", "p1"}, {"oslo", "rome"}}},
               {1, "rome", {{"p1", "rome"}, {"p2", "p1"}, {"oslo", "rome"}}}};
  t.jobs = {job};
  return t;
}

Topology asked_why() {
  Topology t = known();
  TopologyJob& job = t.jobs[0];
  job.predicted_ns = 2'000'000'000;
  job.bottleneck = "link rome > paris";
  job.traffic_bytes = 98'000'000;
  job.gain_needed_percent = 10;
  job.planner = "packed";
  job.plans = {{"star", 4'000'000'000, "node p1"},
               {"fapt", 0, "there is no way to oslo"},
               {"packed", 1'900'000'000, "site rome"}};
  return t;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Returns the text that answers "why" as one line.
std::string why_line(const Topology& topology) {
  std::string line;
  for (const char c : why_text(topology)) {
    const bool is_blank = c == ' ' || c == '\n';
    if (!is_blank || !line.ends_with(' ')) line += is_blank ? ' ' : c;
  }
  return line;
}

/// Whether tags are closed in the right order, and quotes and entities are whole. This is no
/// parser, but enough for a writer without comments and CDATA.
bool is_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < xml.size(); ++at) {
    if (xml[at] == '&') {
      const std::string entity = xml.substr(at, xml.find(';', at) - at);
      if (entity != "&amp" && entity != "&lt" && entity != "&gt" && entity != "&quot") return false;
    }
    if (xml[at] == '>') return false;
    if (xml[at] != '<') continue;
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0 || has(tag, "<")) return false;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty();
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("a topology is told with links and trees") {
  CHECK(topology_text(known()) == R"(as node p1 knows it: 4 nodes, 4 measured links, 1 job

measured links
  FROM  TO                  RATE  SURE  AGE      RTT  AGE    LOSS  SURE  AGE
  rome  p1           70.0 Mbit/s  80 %  2 s  41.0 ms  1 s  0.12 %  45 %  3 s
  oslo  p1  at least 20.0 Mbit/s  80 %  2 s  41.0 ms  1 s  0.12 %  45 %  3 s
  rome  p2           90.0 Mbit/s  80 %  2 s  41.0 ms  1 s  0.12 %  45 %  3 s
  p2    p1          900.0 Mbit/s  80 %  2 s  41.0 ms  1 s  0.12 %  45 %  3 s

job 3fa81c02 train.py: packed, epoch 4
    75 %  root p1: p2 > p1, rome > p1, oslo > rome
    25 %  root rome: p1 > rome, p2 > p1, oslo > rome
)");
}

TEST_CASE("sites take the fastest link between their nodes, and have no inside") {
  const Topology sites = by_sites(known());
  CHECK(topology_text(sites) == R"(as node p1 knows it: 3 nodes, 2 measured links, 1 job

measured links
  FROM  TO                     RATE  SURE  AGE      RTT  AGE    LOSS  SURE  AGE
  oslo  paris  at least 20.0 Mbit/s  80 %  2 s  41.0 ms  1 s  0.12 %  45 %  3 s
  rome  paris           90.0 Mbit/s  80 %  2 s  41.0 ms  1 s  0.12 %  45 %  3 s

job 3fa81c02 train.py: packed, epoch 4
    75 %  root paris: rome > paris, oslo > rome
    25 %  root rome: paris > rome, oslo > rome
)");
}

TEST_CASE("why says what each planner would reach, and whether a switch would pay") {
  CHECK(why_text(asked_why()) ==
        R"(job 3fa81c02 train.py: packed, epoch 4
  predicted for an all_reduce of 93.5 MiB
  PLAN      PREDICTED   AGAINST  SLOWEST AT
  in force    2.000 s    +0.0 %  link rome > paris
  star        4.000 s  +100.0 %  node p1
  fapt           none         -  there is no way to oslo
  packed      1.900 s    -5.0 %  site rome
)"
        "  The best other plan (packed) is predicted to save 5.0 %. A redraw needs 10 %, so the "
        "plan in "
        "force\n  stays.\n");
  Topology t = asked_why();
  t.jobs[0].plans[2].predicted_ns = 1'000'000'000;
  CHECK(has(why_line(t), "save 50.0 %. A redraw needs 10 %, and has to"));
  t.jobs[0].planner = "auto";
  t.jobs[0].decision = "ranks have joined";
  t.jobs[0].decision_age_ns = 12'000'000'000;
  CHECK(has(why_text(t),
            "The coordinator looked at the plan 12 s ago, whose planner is auto: ranks"));
  CHECK(has(why_line(t), "A redraw needs 10 %"));
  t.jobs[0].planner = "fapt";
  CHECK(has(why_line(t), "The plan in force stays, because redraws of this job are by fapt"));
  t.jobs[0].roots = {"p1", "rome"};
  CHECK(has(why_line(t), "replan restricts the roots of all plans of this job to p1, rome, and"));
  t.jobs[0].not_redrawn = "nobody wants it";
  CHECK(has(why_line(t), "save 50.0 %. The plan in force stays: nobody wants it."));
  t.jobs[0].plans[2].predicted_ns = 2'000'000'000;
  CHECK(has(why_text(t), "No planner is predicted to make a faster plan"));
  t.jobs[0].next_kind = "star";
  t.jobs[0].next_epoch = 5;
  t.jobs[0].next_round = 77;
  CHECK(has(why_text(t), "packed, epoch 4; from round 77 on star, epoch 5\n"));
  CHECK(has(topology_text(t), "packed, epoch 4; from round 77 on star, epoch 5\n"));
  t.uses = {{"rome", "paris", 60'000'000, 90'000'000, measured("rome", 50)},
            {"oslo", "rome", 30'000'000, 0, {}}};
  const std::string text = why_text(t);
  CHECK(has(text, "links as planners count on them\n"));
  CHECK(has(text, "60.0 Mbit/s"));
  CHECK(has(text, "90.0 Mbit/s"));
  CHECK(has(text, "50.0 Mbit/s"));
  const auto again = topology_from_json(to_json(t));
  REQUIRE(again.ok());
  CHECK(why_text(again.value()) == text);
  t.uses.clear();
  t.jobs[0].not_compared = "the file says nothing";
  CHECK(has(why_text(t), "The planners were not compared: the file says nothing"));
  CHECK_FALSE(has(why_text(t), "SLOWEST"));
  t.jobs.clear();
  CHECK(why_text(t) == "node p1 has no job with a plan\n");
}

TEST_CASE("graphviz gets nodes by site, links in grey and trees in colours") {
  Topology t = known();
  t.links.resize(2);
  t.jobs[0].trees.resize(1);
  t.nodes[3].name = "os\"lo";
  const std::string trust = "rate 80 % sure, 2 s old; round trip, 1 s old; loss 45 % sure, 3 s old";
  CHECK(topology_dot(t) ==
        R"(digraph topology {
  node [shape=ellipse];
  "rome";
  "os\"lo";
  subgraph cluster_0 {
  label="paris";
  "p1";
  "p2";
  }
  "rome" -> "p1" [color="#999999", label="70.0 Mbit/s, 41.0 ms, 0.12 %\n)" +
            trust + R"("];
  "oslo" -> "p1" [color="#999999", label="at least 20.0 Mbit/s, 41.0 ms, 0.12 %\n)" +
            trust + R"("];
  "p2" -> "p1" [color="#0072b2", fontcolor="#0072b2", penwidth=2, label="100 %"];
  "rome" -> "p1" [color="#0072b2", fontcolor="#0072b2", penwidth=2, label="100 %"];
  "oslo" -> "rome" [color="#0072b2", fontcolor="#0072b2", penwidth=2, label="100 %"];
}
)");
}

TEST_CASE("the picture is well-formed, whatever names say") {
  Topology t = known();
  t.nodes[0].site = "<&\">\x1b";
  t.jobs[0].label = "</svg><script>&";
  for (const Topology& drawn : {known(), by_sites(known()), t, Topology{}}) {
    const std::string svg = topology_svg(drawn);
    INFO(svg);
    CHECK(is_well_formed(svg));
    CHECK_FALSE(has(svg, "<script"));
    CHECK_FALSE(has(svg, "\x1b"));
    CHECK_FALSE(has(svg, "nan"));
  }
  CHECK_FALSE(is_well_formed("<a><b></a></b>"));
  CHECK_FALSE(is_well_formed("<a>&</a>"));
}

TEST_CASE("the picture has each place, link and edge, and says how far links can be believed") {
  const std::string svg = topology_svg(known());
  CHECK(count(svg, "<circle") == 4);
  // There are four links and six edges, and the legend has two trees and two kinds of links.
  CHECK(count(svg, "marker-end") == 4 + 6 + 2 + 2);
  CHECK(count(svg, "stroke-dasharray") == 1 + 1);  // a lower bound and the legend
  const std::string oslo =
      "oslo &gt; p1: at least 20.0 Mbit/s, 41.0 ms, 0.12 % (rate 80 % sure, 2 s old; round trip, 1 "
      "s "
      "old; loss 45 % sure, 3 s old)";
  CHECK(has(svg, "<title>" + oslo + "</title>"));
  CHECK(has(svg, "\">" + oslo + "</text>"));
  CHECK(has(svg, "75 % of the blocks, root p1"));
}

TEST_CASE("the picture is as wide as its longest line") {
  const auto width_of = [](const Topology& drawn) {
    const std::string svg = topology_svg(drawn);
    return std::stod(svg.substr(svg.find(" width=\"") + 8));
  };
  constexpr double kLetter = 6;  // the mean width in DejaVu Sans
  Topology t = known();
  t.links.clear();
  const double narrow = width_of(t);
  t.jobs[0].label = std::string(200, 'x');
  CHECK(width_of(t) > narrow + 100 * kLetter);
  const std::string svg = topology_svg(known());
  for (std::size_t at = svg.find("<text x=\""); at != std::string::npos;
       at = svg.find("<text x=\"", at + 1)) {
    const std::size_t text = svg.find('>', at) + 1;
    const auto letters = static_cast<double>(svg.find('<', text) - text);
    if (svg.find("text-anchor", at) < text) continue;  // not in the legend
    CHECK(std::stod(svg.substr(at + 9)) + letters * kLetter < width_of(known()));
  }
}

TEST_CASE("a topology survives JSON, every field of it") {
  const Topology t = asked_why();
  const std::string text = to_json(t);
  const auto again = topology_from_json(text);
  REQUIRE(again.ok());
  CHECK(to_json(again.value()) == text);
  CHECK(topology_text(again.value()) == topology_text(t));
  CHECK(why_text(again.value()) == why_text(t));
  CHECK_FALSE(topology_from_json("[]").ok());
  CHECK_FALSE(topology_from_json(R"({"jobs": [{"trees": 3}]})").ok());
}

TEST_CASE("a topology that would be too long leaves trees and links out and counts them") {
  constexpr std::size_t kMessageBytes = std::size_t{63} << 10;
  Topology t = known();
  t.nodes.clear();
  for (std::size_t n = 0; n < 200; ++n) t.nodes.push_back({"node" + std::to_string(n), ""});
  t.links.assign(kMaxNodes, t.links[0]);
  std::vector<TopologyEdge> edges(kMaxNodes, {"node100", "node101"});
  t.jobs[0].trees.assign(kMaxTrees, {1, "node100", edges});
  const std::string text = to_json(t, kMessageBytes);
  CHECK(text.size() <= kMessageBytes);
  const auto shorter = topology_from_json(text);
  REQUIRE(shorter.ok());
  CHECK(shorter.value().nodes.size() == 200);
  CHECK(shorter.value().links.size() + shorter.value().links_omitted == kMaxNodes);
  CHECK(shorter.value().jobs[0].trees.size() + shorter.value().jobs[0].trees_omitted == kMaxTrees);
  CHECK(has(topology_text(shorter.value()), "left out here"));
}

TEST_CASE("a topology of many nodes with long names leaves nodes out and counts them") {
  constexpr std::size_t kMessageBytes = std::size_t{63} << 10;
  Topology t = known();
  t.nodes.assign(kMaxNodes, {std::string(100, 'n'), std::string(100, 's')});
  const std::string text = to_json(t, kMessageBytes);
  CHECK(text.size() <= kMessageBytes);
  const auto shorter = topology_from_json(text);
  REQUIRE(shorter.ok());
  CHECK(shorter.value().nodes.size() >= kMaxNodes / 8);
  CHECK(shorter.value().nodes.size() + shorter.value().nodes_omitted == kMaxNodes);
  CHECK(has(topology_text(shorter.value()), std::to_string(kMaxNodes) + " nodes"));
}
