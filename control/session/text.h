// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

#include "control/session/actions.h"

namespace gradplane::session {

/// "node w1", or "node 7" for a node without a name.
std::string node_text(const SessionConfig& config, api::NodeId node);
/// "rank 3", "ranks 0, 1 and 2", "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more".
std::string ranks_text(const std::vector<std::uint16_t>& ranks);
/// "node w1", "nodes w1, w2 and w3", "nodes w1, w2, w3, w4, w5, w6, w7, w8 and 12 more".
std::string nodes_text(const SessionConfig& config, const std::vector<api::NodeId>& nodes);
/// "waiting for rank 1 of 2 to attach", and why that may not be seen if some nodes are `unheard`.
std::string waiting_text(const SessionConfig& config, const std::vector<std::uint16_t>& missing,
                         std::uint32_t world_size, const std::vector<api::NodeId>& unheard);
/// "star, root agg", "sharded, predicted 2 s, roots w0 and w1", "packed, 5 trees, root agg". Each
/// root is named once. `note` may be empty.
std::string plan_text(const SessionConfig& config, const api::Plan& plan, const std::string& note);
/// "3 ranks on 4 nodes", or "2 of 3 ranks on 3 nodes" under a plan that lacks ranks of the job.
std::string size_text(const std::vector<api::Member>& members, std::uint32_t world_size);
/// "job train.py (1a2b3c4d)".
std::string job_text(const std::string& label, std::uint32_t job_id);

}  // namespace gradplane::session
