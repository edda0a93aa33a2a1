// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/protocol/socket_messages.h"
#include "control/session/actions.h"
#include "control/session/bucket_tables.h"
#include "dataplane/base/result.h"
#include "dataplane/engine/job_runtime.h"
#include "dataplane/ipc/unique_fd.h"

namespace gradplane::daemon {

/// A rank that is attached here: what it said of itself, and its channel.
struct Rank {
  protocol::Attach attach;
  std::uint32_t pid = 0;
  std::shared_ptr<engine::RankChannel> channel;
  /// The poll loop has the channel, and beats for it; until then the control thread does.
  bool in_engine = false;
  session::TableCollector tables;  // of its buckets
};

/// What the daemon keeps of a rank's channel; and the end of the trainer's doorbell that it passes
/// on and then closes, because a trainer can have descriptors sent to it that are slow to close.
struct NewChannel {
  std::shared_ptr<engine::RankChannel> channel;
  ipc::UniqueFd trainer_listens;
};
/// Makes the shared memory of a rank, and the doorbell of its trainer.
Result<NewChannel> make_channel(std::size_t round_bytes);

using RankTable = std::map<session::RankHandle, Rank>;

}  // namespace gradplane::daemon
