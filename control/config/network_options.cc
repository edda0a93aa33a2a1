// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/config/draft.h"
#include "control/config/option_table.h"

namespace gradplane::config {
namespace {

using enum OptionType;
using enum OptionScope;

constexpr std::array<std::string_view, 2> kRoutings = {"fewest_links", "fastest"};
constexpr std::int64_t kMaxRate = static_cast<std::int64_t>(plan::kMaxBitsPerSecond);
constexpr std::int64_t kMaxLoss = plan::kMaxLossPpm;
constexpr std::int64_t kMaxRttNs = plan::kMaxRtt.count_ns();
static_assert(kWholeShare == 1000000, "a share is a loss in millionths");

constexpr Option kOptions[] = {
    {.path = "network.routing",
     .type = kChoice,
     .choices = kRoutings,
     .default_text = "fewest_links",
     .summary = "Which way packets take between two sites: the one with the fewest links, or the "
                "one with the least time for a byte.",
     .store = [](const Target& t,
                 const Value& v) { t.references->routing = static_cast<plan::Routing>(v.number); }},
    {.path = "network.bytes",
     .type = kSize,
     .min = 1024,
     .max = std::int64_t{1} << 40,
     .default_text = "96 MiB",
     .summary = "What an all_reduce carries, for predicted times: the gradients of one step.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->network.bytes = static_cast<std::uint64_t>(v.number);
         }},
    {.path = "name",
     .scope = kSite,
     .type = kNodeName,
     .required = true,
     .summary = "Name of the site, as the nodes have it.",
     .store = [](const Target& t, const Value& v) { t.site->name = v.text; }},
    {.path = "up",
     .scope = kSite,
     .type = kRate,
     .min = 0,
     .max = kMaxRate,
     .default_note = "not limited",
     .summary = "What the nodes of the site send to other sites together.",
     .store =
         [](const Target& t, const Value& v) {
           t.site->access.up_bits_per_s = static_cast<std::uint64_t>(v.number);
         }},
    {.path = "down",
     .scope = kSite,
     .type = kRate,
     .min = 0,
     .max = kMaxRate,
     .default_note = "not limited",
     .summary = "What they receive together.",
     .store =
         [](const Target& t, const Value& v) {
           t.site->access.down_bits_per_s = static_cast<std::uint64_t>(v.number);
         }},
    {.path = "rtt",
     .scope = kSite,
     .type = kTime,
     .max = kMaxRttNs,
     .default_text = "0 s",
     .summary = "Round trip of the site's access.",
     .store = [](const Target& t, const Value& v) { t.site->access.rtt = Duration::ns(v.number); }},
    {.path = "loss",
     .scope = kSite,
     .type = kShare,
     .max = kMaxLoss,
     .default_text = "0 %",
     .summary = "Share of the packets that the access loses, in each direction.",
     .store =
         [](const Target& t, const Value& v) {
           t.site->access.loss_ppm = static_cast<std::uint32_t>(v.number);
         }},
    {.path = "from",
     .scope = kLink,
     .type = kNodeName,
     .required = true,
     .summary = "A site.",
     .store = [](const Target& t, const Value& v) { t.link->from = v.text; }},
    {.path = "to",
     .scope = kLink,
     .type = kNodeName,
     .required = true,
     .summary = "Another site.",
     .store = [](const Target& t, const Value& v) { t.link->to = v.text; }},
    {.path = "rate",
     .scope = kLink,
     .type = kRate,
     .max = kMaxRate,
     .required = true,
     .summary = "Rate from `from` to `to`. A rate of 0 is a dead link.",
     .store = [](const Target& t,
                 const Value& v) { t.link->bits_per_s = static_cast<std::uint64_t>(v.number); }},
    {.path = "rate_back",
     .scope = kLink,
     .type = kRate,
     .max = kMaxRate,
     .default_note = "`rate`",
     .summary = "Rate from `to` to `from`.",
     .store =
         [](const Target& t, const Value& v) {
           t.link->back_bits_per_s = static_cast<std::uint64_t>(v.number);
         }},
    {.path = "rtt",
     .scope = kLink,
     .type = kTime,
     .max = kMaxRttNs,
     .default_text = "0 s",
     .summary = "Round trip of the link.",
     .store = [](const Target& t, const Value& v) { t.link->rtt = Duration::ns(v.number); }},
    {.path = "loss",
     .scope = kLink,
     .type = kShare,
     .max = kMaxLoss,
     .default_text = "0 %",
     .summary = "Share of the packets that the link loses, in each direction.",
     .store = [](const Target& t,
                 const Value& v) { t.link->loss_ppm = static_cast<std::uint32_t>(v.number); }},
};

/// Builds the network. Sites get their numbers in the order in which they are first named.
class Builder {
 public:
  explicit Builder(Draft& draft) : draft_(draft) {}

  plan::Network run() {
    network_.routing = draft_.references.routing;
    for (std::size_t i = 0; i < draft_.sites.size(); ++i) {
      const plan::Site& site = draft_.sites[i];
      if (site.name.empty()) continue;  // told already
      if (index_.contains(site.name))
        draft_.error(entry_key(kSite, i, "name"), "another entry of network.sites has this name");
      network_.sites[add(site.name)] = site;
    }
    for (const NodeConfig& node : draft_.config.cluster.nodes) {
      plan::Node& out = network_.nodes.emplace_back();
      out.name = node.name;
      out.site = add(node.site.empty() ? node.name : node.site);
      if (!node.port.link_rate_bits_per_s) continue;
      out.access.up_bits_per_s = out.access.down_bits_per_s = *node.port.link_rate_bits_per_s;
    }
    for (std::size_t i = 0; i < draft_.references.links.size(); ++i) add_link(i);
    check_reached();
    return std::move(network_);
  }

 private:
  plan::SiteId add(const std::string& name) {
    const auto [at, fresh] = index_.emplace(name, static_cast<plan::SiteId>(network_.sites.size()));
    if (fresh) network_.sites.push_back({name, {}});
    return at->second;
  }

  plan::SiteId find(std::size_t link, std::string_view end, const std::string& name) {
    const auto found = index_.find(name);
    if (found != index_.end()) return found->second;
    const std::string key = entry_key(kLink, link, end);
    if (!draft_.failed.contains(key) && !name.empty())
      draft_.error(key,
                   "no such site; name one of network.sites, the site of a node, or a node "
                   "without a site");
    return plan::kNoSite;
  }

  void add_link(std::size_t index) {
    const NodeReferences::Link& link = draft_.references.links[index];
    const plan::SiteId from = find(index, "from", link.from);
    const plan::SiteId to = find(index, "to", link.to);
    if (from == plan::kNoSite || to == plan::kNoSite) return;  // told already
    const std::uint64_t back = link.back_bits_per_s.value_or(link.bits_per_s);
    if (from == to) {
      draft_.error(entry_key(kLink, index, "to"), "a link goes to another site");
    } else if (!linked_.insert(std::minmax(from, to)).second) {
      draft_.error(entry_key(kLink, index, "to"),
                   "another entry has a link between the two sites; an entry has both directions");
    } else {
      network_.links.push_back({from, to, link.bits_per_s, link.rtt, link.loss_ppm});
      network_.links.push_back({to, from, back, link.rtt, link.loss_ppm});
    }
  }

  /// Complains of sites without a link if there are links: probably the site's name is misspelt.
  void check_reached() {
    if (network_.links.empty()) return;
    std::set<plan::SiteId> reached;
    for (const plan::Link& link : network_.links) reached.insert(link.from);
    for (std::size_t n = 0; n < network_.nodes.size(); ++n) {
      const plan::SiteId site = network_.nodes[n].site;
      if (reached.contains(site) || !told_.insert(site).second) continue;
      draft_.error(node_key(n, "site"),
                   fmt::format("no link of network.links goes to the site {} of node {}, so nobody "
                               "reaches it; correct the name, or add a link",
                               network_.sites[site].name, network_.nodes[n].name));
    }
  }

  Draft& draft_;
  plan::Network network_;
  std::set<plan::SiteId> told_;  // sites without a link that have an error already
  std::map<std::string, plan::SiteId> index_;
  std::set<std::pair<plan::SiteId, plan::SiteId>> linked_;
};

/// The sites that `start` reaches over links whose rate is not 0, or, with `towards`, the sites
/// that reach `start` so.
std::set<plan::SiteId> connected(const plan::Network& network, plan::SiteId start, bool towards) {
  std::vector<std::vector<plan::SiteId>> next(network.sites.size());
  for (const plan::Link& link : network.links) {
    if (link.bits_per_s == 0) continue;
    next[towards ? link.to : link.from].push_back(towards ? link.from : link.to);
  }
  std::set<plan::SiteId> found = {start};
  std::vector<plan::SiteId> open = {start};
  while (!open.empty()) {
    const plan::SiteId at = open.back();
    open.pop_back();
    for (const plan::SiteId site : next[at])
      if (found.insert(site).second) open.push_back(site);
  }
  return found;
}

/// The key of the first link of rate 0 between the sites of `one_side` and the others.
std::string cut_by(const Draft& draft, const plan::Network& network,
                   const std::set<plan::SiteId>& one_side) {
  for (std::size_t l = 0; l < network.links.size(); ++l) {
    const plan::Link& link = network.links[l];
    if (link.bits_per_s > 0 || one_side.contains(link.from) == one_side.contains(link.to)) continue;
    const std::string back = entry_key(kLink, l / 2, "rate_back");
    return l % 2 == 1 && draft.has(back) ? back : entry_key(kLink, l / 2, "rate");
  }
  return "network.links";
}

/// Warns of nodes that packets cannot reach over the links. It is no error, because a rate may be
/// 0 for a time.
void warn_of_islands(Draft& draft, const plan::Network& network) {
  if (network.links.empty()) return;
  const std::set<plan::SiteId> there = connected(network, network.nodes[0].site, false);
  std::set<plan::SiteId> both = connected(network, network.nodes[0].site, true);
  std::erase_if(both, [&there](plan::SiteId site) { return !there.contains(site); });
  std::size_t count = 0;
  std::string first;
  for (const plan::Node& node : network.nodes) {
    if (both.contains(node.site)) continue;
    if (++count == 1) first = node.name;
  }
  if (count == 0) return;
  const std::string more = count == 1 ? "" : fmt::format(" (and to {} more)", count - 1);
  draft.warn(cut_by(draft, network, both),
             fmt::format("no way over links with a rate leads from node {} to node {}{} and back, "
                         "so no planner that needs the network has a plan for ranks on both sides; "
                         "add a link between them, or correct the rate that is 0",
                         network.nodes[0].name, first, more));
}

/// Complains of planners that need to know the network, when the file says nothing of it.
void check_need(Draft& draft) {
  constexpr const char* kReason =
      "needs to know the network: write a section network, or port.link_rate of every node";
  const PlanConfig& plan = draft.config.plan;
  if (plan_needs_network(plan.kind) && !draft.failed.contains("plan.kind"))
    draft.error("plan.kind", kReason);
  for (const JobPlan& job : plan.jobs) {
    if (plan_needs_network(job.kind))
      draft.error("plan.jobs", fmt::format("{} {}", plan_kind_name(job.kind), kReason));
  }
  // It is no error, because a later plan, which is made with measured links, has routes.
  if (plan.auxiliary) {
    draft.warn("plan.auxiliary",
               "a job begins without auxiliary routes, because the file says nothing of the "
               "network; write a section network, or port.link_rate of every node");
  }
}

}  // namespace

std::span<const Option> network_options() {
  return kOptions;
}

void resolve_network(Draft& draft) {
  const auto& nodes = draft.config.cluster.nodes;
  const bool named = draft.site_count > 0 || draft.link_count > 0 ||
                     std::any_of(nodes.begin(), nodes.end(),
                                 [](const NodeConfig& node) { return !node.site.empty(); });
  const bool rated = std::all_of(nodes.begin(), nodes.end(), [](const NodeConfig& node) {
    return node.port.link_rate_bits_per_s.has_value();
  });
  if (nodes.empty() || (!named && !rated)) {
    check_need(draft);
    return;
  }
  plan::Network network = Builder(draft).run();
  if (const Status good = plan::validate(network); !good.ok())
    draft.error("network", good.error().message);
  if (draft.errors.empty()) warn_of_islands(draft, network);
  draft.config.network.network = std::move(network);
}

}  // namespace gradplane::config
