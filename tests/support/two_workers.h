// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>

#include "dataplane/hop/peer_table.h"
#include "dataplane/job/job_config.h"

namespace gradplane::testing {

/// Job 1 with epoch 1, as node `self` of three sees it. Node 0 is the root of a star and has no
/// rank, node 1 has rank 0, and node 2 has rank 1. A round has at most `blocks` blocks of the
/// smallest size.
inline job::JobConfig two_workers(std::uint16_t self, std::uint32_t blocks) {
  job::JobConfig config;
  config.job = config.epoch = 1;
  config.self = self;
  config.world_size = 2;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = blocks * kMinBlockBytes;
  aggregate::TreeConfig tree{
      .member = true, .parent = hop::PeerIndex(0), .children = {}, .share = {0, 1}};
  if (self == 0) {
    config.peers = {{.node = 1}, {.node = 2}};
    tree.parent = hop::kNoPeer;
    tree.children = {{.peer = hop::PeerIndex(0), .ranks = 1},
                     {.peer = hop::PeerIndex(1), .ranks = 1}};
  } else {
    config.peers = {{.node = 0}};
    config.local_ranks = {{.arena = nullptr, .rank = static_cast<std::uint16_t>(self - 1)}};
  }
  config.trees = {tree};
  return config;
}

}  // namespace gradplane::testing
