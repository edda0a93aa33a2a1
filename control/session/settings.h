// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "control/protocol/node_messages.h"

namespace gradplane::session {

/// Says to the operator how the settings of two nodes differ; empty: they do not. The nodes are
/// named as in "node w1".
std::string difference_text(const protocol::JobSettings& ours, const std::string& our_node,
                            const protocol::JobSettings& theirs, const std::string& their_node);

}  // namespace gradplane::session
