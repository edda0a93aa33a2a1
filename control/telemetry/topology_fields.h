// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/telemetry/fields.h"
#include "control/telemetry/topology.h"

/// The JSON members of a topology; see fields.h.
namespace gradplane::telemetry {

template <typename Archive>
void fields(Archive& a, Of<TopologyNode> auto& s) {
  a("name", s.name);
  a("site", s.site);
}

template <typename Archive>
void fields(Archive& a, Of<TopologyLink> auto& s) {
  a("to", s.to);
  a("measured", s.measured);
}

template <typename Archive>
void fields(Archive& a, Of<TopologyEdge> auto& s) {
  a("from", s.from);
  a("to", s.to);
}

template <typename Archive>
void fields(Archive& a, Of<TopologyTree> auto& s) {
  a("weight", s.weight);
  a("root", s.root);
  a("edges", s.edges);
}

template <typename Archive>
void fields(Archive& a, Of<TopologyPlan> auto& s) {
  a("planner", s.planner);
  a("predicted_ns", s.predicted_ns);
  a("why", s.why);
}

template <typename Archive>
void fields(Archive& a, Of<TopologyJob> auto& s) {
  a("id", s.id);
  a("label", s.label);
  a("plan_kind", s.plan_kind);
  a("epoch", s.epoch);
  a("next_kind", s.next_kind);
  a("next_epoch", s.next_epoch);
  a("next_round", s.next_round);
  a("trees", s.trees);
  a("trees_omitted", s.trees_omitted);
  a("predicted_ns", s.predicted_ns);
  a("bottleneck", s.bottleneck);
  a("traffic_bytes", s.traffic_bytes);
  a("exchanges", s.exchanges);
  a("gain_needed_percent", s.gain_needed_percent);
  a("planner", s.planner);
  a("decision", s.decision);
  a("decision_age_ns", s.decision_age_ns);
  a("roots", s.roots);
  a("not_redrawn", s.not_redrawn);
  a("plans", s.plans);
  a("not_compared", s.not_compared);
}

template <typename Archive>
void fields(Archive& a, Of<TopologyUse> auto& s) {
  a("from", s.from);
  a("to", s.to);
  a("bits_per_second", s.bits_per_second);
  a("configured_bits_per_second", s.configured_bits_per_second);
  a("measured", s.measured);
}

template <typename Archive>
void fields(Archive& a, Of<Topology> auto& s) {
  a("version", s.version);
  a("node", s.node);
  a("nodes", s.nodes);
  a("nodes_omitted", s.nodes_omitted);
  a("links", s.links);
  a("links_omitted", s.links_omitted);
  a("jobs", s.jobs);
  a("uses", s.uses);
  a("uses_omitted", s.uses_omitted);
}

}  // namespace gradplane::telemetry
