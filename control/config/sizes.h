// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/config/draft.h"

/// Lengths of packets, blocks and rounds that follow from each other and from the kinds of ports.
namespace gradplane::config {

/// Gives an MTU to the nodes whose file leaves it to us. check_block() comes later.
void choose_mtu(Config& config);
/// Chooses the payload of a packet where the file does not, and says what does not fit.
void check_block(Draft& draft);
void choose_round_bytes(Config& config);

}  // namespace gradplane::config
