// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "control/protocol/node_messages.h"

namespace gradplane::session {

/// What to tell the operator when two nodes' settings differ; empty: they are the same. The nodes
/// are named as in "node w1".
std::string difference_text(const protocol::JobSettings& ours, const std::string& our_node,
                            const protocol::JobSettings& theirs, const std::string& their_node);

}  // namespace gradplane::session
