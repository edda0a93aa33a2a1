// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

#include "control/telemetry/status.h"
#include "control/telemetry/table.h"
#include "control/telemetry/topology.h"

/// Texts and tables of measured links for a person. "-" stands for a value that is not known.
namespace gradplane::telemetry {

/// "187.5 Mbit/s", or "at least 187.5 Mbit/s" where the link has not been filled.
std::string link_rate_text(const LinkStatus& link);
/// "0.12 %".
std::string link_loss_text(const LinkStatus& link);

/// "at least 70.4 Mbit/s, 41.0 ms, 0.12 %", without values that are not known.
std::string link_label(const LinkStatus& link);
/// "rate 80 % sure, 2 s old; round trip, 1 s old; loss 45 % sure, 3 s old", without values that are
/// not known.
std::string link_trust_text(const LinkStatus& link);

/// A row for each link to this node.
Table links_table(const std::vector<LinkStatus>& links);
/// A row for each link that planners use, with its rate and where the rate comes from.
Table uses_table(const std::vector<TopologyUse>& uses);
/// A row for each link between any two nodes.
Table links_table(const std::vector<TopologyLink>& links);

}  // namespace gradplane::telemetry
