// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/draft.h"
#include "control/config/option_table.h"

namespace gradplane::config {
namespace {

using enum OptionType;

// One row per option, in the order of the reference page.
constexpr Option kOptions[] = {
    {.path = "multicast.enabled",
     .type = kBoolean,
     .default_text = "false",
     .summary =
         "Whether a node that has several children in a tree sends each result once, to a group of "
         "them, and with selected receivers each update once, to a group of these, and the network "
         "copies it. Those that the network does not copy to get it by unicast. Only for networks "
         "whose switches snoop IGMP and have a querier: other switches flood groups, so that the "
         "links of hosts that are no members carry them too. `gradplane status` tells in the line "
         "`groups` of a job how many blocks went once for a group, and of trials that nobody has "
         "heard; metrics: "
         "`gradplane_job_blocks_to_groups_total` and `gradplane_job_group_trials_total`.",
     .store = [](const Target& t, const Value& v) { t.config->multicast.enabled = v.number != 0; }},
    {.path = "multicast.range",
     .type = kGroupRange,
     .default_text = "239.71.0.0/16",
     .summary = "The addresses of groups; nobody else on the network should use them. The same on "
                "every node: a node with another range gets everything by unicast.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->multicast.range = {.first = {static_cast<std::uint32_t>(v.number)},
                                        .prefix_length = v.prefix_length};
         }},
};

}  // namespace

std::span<const Option> multicast_options() {
  return kOptions;
}

void check_multicast(Draft& draft) {
  if (draft.failed.contains("multicast.enabled")) return;
  const MulticastConfig& multicast = draft.config.multicast;
  if (!multicast.enabled && is_set(draft, "multicast.range")) {
    draft.error("multicast.range", "means nothing without multicast.enabled: true; remove it");
  }
  if (multicast.enabled && draft.config.grants.enabled == GrantChoice::kTrue) {
    draft.error("multicast.enabled",
                "means nothing with grants.enabled: true, because credit is given to one sender "
                "for one receiver; remove one of them");
  }
}

}  // namespace gradplane::config
