// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "control/config/draft.h"

/// Chooses the lengths of packets, blocks and rounds where the file does not. They follow from each
/// other and from the kinds of ports.
namespace gradplane::config {

/// Gives an MTU to the nodes for which the file sets none. Call it before check_block().
void choose_mtu(Config& config);
/// Chooses the payload of a block where the file does not, and complains of one that does not fit.
void check_block(Draft& draft);
void choose_round_bytes(Config& config);

}  // namespace gradplane::config
