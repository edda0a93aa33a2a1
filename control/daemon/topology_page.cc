// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/topology_page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "control/config/plan_request.h"
#include "control/plan/measured.h"
#include "control/plan/planner.h"
#include "control/plan/predict.h"
#include "control/plan/selections.h"

namespace gradplane::daemon {
namespace {

constexpr double kPercent = 100;
constexpr double kMillion = 1e6;

std::string name_of(const config::Config& config, api::NodeId node) {
  return config.cluster.nodes[node].name;
}

std::vector<telemetry::TopologyNode> nodes_of(const config::Config& config) {
  std::vector<telemetry::TopologyNode> out;
  const auto& network = config.network.network;
  for (std::size_t n = 0; n < config.cluster.nodes.size(); ++n) {
    telemetry::TopologyNode& node = out.emplace_back();
    node.name = config.cluster.nodes[n].name;
    if (!network || n >= network->nodes.size()) continue;
    const plan::SiteId site = network->nodes[n].site;
    if (site != plan::kNoSite && network->sites[site].name != node.name)
      node.site = network->sites[site].name;
  }
  return out;
}

std::vector<telemetry::TopologyTree> trees_of(const config::Config& config, const api::Plan& plan) {
  std::vector<telemetry::TopologyTree> out;
  for (const api::Tree& tree : plan.trees) {
    telemetry::TopologyTree& shown = out.emplace_back();
    shown.weight = tree.weight;
    shown.root = name_of(config, tree.root);
    for (std::size_t m = 0; m < plan.members.size(); ++m) {
      if (tree.parent[m] == api::kNoNode) continue;
      shown.edges.push_back(
          {name_of(config, plan.members[m].node), name_of(config, tree.parent[m])});
    }
  }
  return out;
}

std::uint64_t ns_of(Duration time) {
  return static_cast<std::uint64_t>(time.count_ns());
}

/// The members of the plan with ranks. Each planner chooses anew which nodes without ranks sum.
std::vector<api::Member> ranks_of(const api::Plan& plan) {
  std::vector<api::Member> members;
  for (const api::Member& member : plan.members) {
    if (!member.ranks.empty()) members.push_back(member);
  }
  return members;
}

/// The predicted time of the operation that most rounds of the job have, and its bottleneck.
struct Taken {
  Duration time;
  std::string bottleneck;
};

Result<Taken> taken_by(const plan::PlanRequest& request, const api::Plan& plan) {
  if (!request.selections) {
    const auto prediction = plan::predict(*request.network, plan, request.traffic);
    if (!prediction.ok()) return prediction.error();
    return Taken{prediction.value().time, prediction.value().bottleneck};
  }
  const auto prediction = plan::predict_exchanges(plan, request);
  if (!prediction) return Error{"no rate of a link of its nodes is known"};
  return Taken{prediction->time, prediction->bottleneck};
}

Result<Taken> taken_by_best(const plan::PlanRequest& request) {
  const auto plan = plan::make_plan(request);
  if (!plan.ok()) return plan.error();
  return taken_by(request, plan.value());
}

/// Compares the plan in force with the plan that each planner would make, with the samples that the
/// coordinator uses for that. `roots` are the only roots that these plans may have; empty: those of
/// the configuration.
void compare(const config::Config& config, plan::PlanRequest request, const api::Plan& in_force,
             const std::vector<api::NodeId>& roots, telemetry::TopologyJob& job) {
  request.sampled_under = in_force;
  const auto now = taken_by(request, in_force);
  if (!now.ok()) {
    job.not_compared = now.error().message;
    return;
  }
  job.predicted_ns = ns_of(now.value().time);
  job.bottleneck = now.value().bottleneck;
  job.exchanges = request.selections.has_value();
  job.traffic_bytes = request.traffic.bytes;
  job.gain_needed_percent =
      static_cast<std::uint32_t>(std::lround(config.plan.redraw.gain_ppm / kMillion * kPercent));
  request.members = ranks_of(in_force);
  for (std::size_t k = 0; k < kPlanKindNames.size(); ++k) {
    const auto kind = static_cast<PlanKind>(k);
    if (kind == PlanKind::kAuto || (kind == PlanKind::kManual && request.trees.empty())) continue;
    request.planner = kind;
    request.root_candidates = roots.empty() ? config::root_candidates(config, kind) : roots;
    telemetry::TopologyPlan& shown = job.plans.emplace_back();
    shown.planner = plan_kind_name(kind);
    const auto planned = taken_by_best(request);
    shown.why = planned.ok() ? planned.value().bottleneck : planned.error().message;
    if (planned.ok()) shown.predicted_ns = ns_of(planned.value().time);
  }
}

telemetry::LinkStatus status_of(const config::Config& config, const protocol::LinkSample& sample) {
  const auto from_ms = [](std::uint32_t ms) { return ns_of(Duration::ms(ms)); };
  telemetry::LinkStatus link;
  link.node = name_of(config, sample.from);
  link.rate_bits_per_second = sample.bits_per_s;
  link.rate_is_lower_bound = sample.is_lower_bound;
  link.rate_confidence_percent = sample.rate_confidence;
  link.rate_age_ns = from_ms(sample.rate_age_ms);
  link.rtt_ns = ns_of(Duration::us(sample.rtt_us));
  link.rtt_age_ns = from_ms(sample.rtt_age_ms);
  link.loss_ppm = sample.loss_ppm;
  link.loss_confidence_percent = sample.loss_confidence;
  link.loss_age_ns = from_ms(sample.loss_age_ms);
  return link;
}

using SitePair = std::pair<plan::SiteId, plan::SiteId>;  // from, to

/// The fastest sample between nodes of two sites.
std::map<SitePair, const protocol::LinkSample*> samples_by_sites(
    const plan::Network& network, const std::vector<protocol::LinkSample>& samples) {
  std::map<SitePair, const protocol::LinkSample*> fastest;
  for (const protocol::LinkSample& sample : samples) {
    const bool is_known = sample.from < network.nodes.size() && sample.to < network.nodes.size();
    if (!is_known || plan::weight_of(sample.rate_confidence, sample.rate_age_ms) == 0) continue;
    const SitePair sites{network.nodes[sample.from].site, network.nodes[sample.to].site};
    const protocol::LinkSample*& best = fastest[sites];
    if (best == nullptr || sample.bits_per_s > best->bits_per_s) best = &sample;
  }
  return fastest;
}

std::map<SitePair, std::uint64_t> rates_of_file(const config::Config& config) {
  std::map<SitePair, std::uint64_t> rates;
  if (!config.network.network) return rates;
  for (const plan::Link& link : config.network.network->links)
    rates[{link.from, link.to}] = link.bits_per_s;
  return rates;
}

std::vector<telemetry::TopologyUse> uses_of(const config::Config& config,
                                            const plan::Network& network,
                                            const std::vector<protocol::LinkSample>& samples) {
  std::vector<telemetry::TopologyUse> uses;
  const auto in_file = rates_of_file(config);
  const auto measured = samples_by_sites(network, samples);
  for (const plan::Link& link : network.links) {
    telemetry::TopologyUse& use = uses.emplace_back();
    use.from = network.sites[link.from].name;
    use.to = network.sites[link.to].name;
    use.bits_per_second = link.bits_per_s;
    const SitePair sites{link.from, link.to};
    if (const auto rate = in_file.find(sites); rate != in_file.end())
      use.configured_bits_per_second = rate->second;
    if (const auto sample = measured.find(sites); sample != measured.end())
      use.measured = status_of(config, *sample->second);
  }
  return uses;
}

/// Adds what the coordinator decided last about another plan.
void add_decision(const config::Config& config, const session::PlanView& view,
                  telemetry::TopologyJob& shown) {
  for (const api::NodeId root : view.roots) shown.roots.push_back(name_of(config, root));
  if (!view.outlook) return;
  const std::string planner(plan_kind_name(view.outlook->planner));
  shown.planner = planner;
  shown.decision = view.outlook->decision;
  shown.decision_age_ns = ns_of(view.outlook_age);
  if (!config::plan_follows_network(config, view.outlook->planner))
    shown.not_redrawn = "plans of " + planner + " do not follow the network";
  else if (!config.plan.redraw.enabled)
    shown.not_redrawn = "plan.redraw.enabled is false";
}

void add_installed(const config::Config& config, const InstalledJob& job,
                   telemetry::Topology& page) {
  const api::Plan& in_force = job.plan_before ? *job.plan_before : job.plan;
  telemetry::TopologyJob& shown = page.jobs.emplace_back();
  shown.id = job.id;
  shown.label = job.label;
  shown.plan_kind = plan_kind_name(in_force.kind);
  shown.epoch = in_force.epoch;
  shown.trees = trees_of(config, in_force);
  if (!job.plan_before) return;
  shown.next_kind = plan_kind_name(job.plan.kind);
  shown.next_epoch = job.plan.epoch;
  shown.next_round = job.plan.activation_round;
}

/// The coordinator's view of a job; null at other nodes.
const session::PlanView* told_of(const KnownTopology& known, std::uint32_t job) {
  if (known.told == nullptr) return nullptr;
  for (const session::PlanView& view : known.told->plans)
    if (view.job_id == job) return &view;
  return nullptr;
}

/// The jobs that this node coordinates without a part in them, as many as a page has room for.
std::vector<const session::PlanView*> others_of(const KnownTopology& known) {
  std::vector<const session::PlanView*> others;
  if (known.told == nullptr) return others;
  for (const session::PlanView& view : known.told->plans) {
    const auto is_it = [&view](const InstalledJob& job) {
      return job.id == view.job_id && job.state == InstalledJob::State::kRunning;
    };
    const auto& installed = known.jobs.installed();
    if (installed.size() + others.size() >= kMaxJobs) break;
    if (std::none_of(installed.begin(), installed.end(), is_it)) others.push_back(&view);
  }
  return others;
}

}  // namespace

telemetry::Topology topology_page(const config::Config& config, const KnownTopology& known) {
  telemetry::Topology out;
  out.node = config.self_node().name;
  out.nodes = nodes_of(config);
  for (const telemetry::LinkStatus& link : known.links) out.links.push_back({out.node, link});
  for (std::size_t l = 0; known.told != nullptr && l < known.told->links.size(); ++l) {
    const protocol::LinkSample& sample = known.told->links[l];
    if (sample.to == config.self) continue;  // known.links has newer values of these
    out.links.push_back({name_of(config, sample.to), status_of(config, sample)});
  }
  for (const InstalledJob& job : known.jobs.installed()) {
    if (job.state != InstalledJob::State::kRunning) continue;
    add_installed(config, job, out);
    if (const session::PlanView* view = told_of(known, job.id))
      add_decision(config, *view, out.jobs.back());
  }
  for (const session::PlanView* view : others_of(known)) {
    telemetry::TopologyJob& shown = out.jobs.emplace_back();
    shown.id = view->job_id;
    shown.label = view->label;
    shown.plan_kind = plan_kind_name(view->plan.kind);
    shown.epoch = view->plan.epoch;
    shown.trees = trees_of(config, view->plan);
    add_decision(config, *view, shown);
  }
  return out;
}

WhyQuestion why_question(const config::Config& config, const KnownTopology& known) {
  WhyQuestion question;
  question.page = topology_page(config, known);
  for (const InstalledJob& job : known.jobs.installed()) {
    if (job.state != InstalledJob::State::kRunning) continue;
    const session::PlanView* view = told_of(known, job.id);
    question.plans.push_back(job.plan);
    question.roots.push_back(view == nullptr ? std::vector<api::NodeId>{} : view->roots);
    question.alone_for.push_back(view == nullptr ? std::nullopt : std::optional(view->alone_for));
  }
  for (const session::PlanView* view : others_of(known)) {
    question.plans.push_back(view->plan);
    question.roots.push_back(view->roots);
    question.alone_for.push_back(view->alone_for);
  }
  if (known.told == nullptr) return question;
  question.samples = known.told->links;
  question.silent = known.told->silent;
  return question;
}

Reasons::Reasons(const config::Config& config, WhyQuestion question)
    : config_(config), question_(std::move(question)), request_(config::plan_request_of(config)) {
  request_.network_is_of_file = request_.network.has_value();
  request_.network =
      plan::measured_network(request_.network, request_.node_names, question_.samples);
  request_.samples = question_.samples;
  for (const api::NodeId node : question_.silent) std::erase(request_.summing, node);
}

std::optional<telemetry::Topology> Reasons::step() {
  std::vector<telemetry::TopologyJob>& jobs = question_.page.jobs;
  if (next_ < jobs.size()) {
    // To compare selections, the rates of the nodes' links are enough.
    const bool knows_rates = request_.selections && !request_.link_rates.empty();
    if (request_.network || knows_rates) {
      request_.sampled_for = question_.alone_for[next_].value_or(plan::kMeasuredForgottenAfter);
      compare(config_, request_, question_.plans[next_], question_.roots[next_], jobs[next_]);
    } else {
      jobs[next_].not_compared =
          "the file of this node says nothing of the network, and nothing was measured; write a "
          "section network, or ask again while the job runs";
    }
    ++next_;
  }
  if (next_ < jobs.size()) return std::nullopt;
  if (request_.network)
    question_.page.uses = uses_of(config_, *request_.network, question_.samples);
  return std::move(question_.page);
}

telemetry::Topology without_reasons(telemetry::Topology page, const std::string& coordinator) {
  for (telemetry::TopologyJob& job : page.jobs) {
    job.not_compared = "only the coordinator is told what all nodes measure; ask on node " +
                       coordinator + ": gradplane topology --why";
  }
  return page;
}

}  // namespace gradplane::daemon
