// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "control/protocol/node_messages.h"

namespace gradplane::session {

/// Says to the operator how the settings of this node and the coordinator differ; empty: they do
/// not. The nodes are named as in "node w1". `grants` is what the coordinator has decided for the
/// job; a node with `auto` accepts it, unless it has several cores, because one core alone grants.
std::string difference_text(const protocol::JobSettings& ours, const std::string& our_node,
                            const protocol::JobSettings& theirs, const std::string& their_node,
                            bool grants);

}  // namespace gradplane::session
