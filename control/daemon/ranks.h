// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/daemon/drift.h"
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
  std::uint32_t user = 0;
  std::shared_ptr<engine::RankChannel> channel;
  /// The poll loops have the channel, and beat for it; until then the control thread does.
  bool in_engine = false;
  session::TableCollector tables;  // of its buckets
  bool told_ready = false;         // that its job may begin
  bool is_broken = false;          // some poll loop has said so
  RankDrift drift = {};
};

/// What has come of a message about a bucket.
struct TakenBucket {
  std::optional<api::BucketBounds> whole;  // its table; nothing: more is to come, or it is refused
  std::string refusal;                     // why the job has to do without the bucket; told once
};
/// An Error: no correct rank says so.
Result<TakenBucket> take_bucket(Rank& rank, const protocol::RegisterBucket& said);

/// What the daemon keeps of a rank's channel; and what it passes on and then closes: its memory,
/// and the end of the trainer's doorbell, because a trainer can have descriptors sent to it that
/// are slow to close.
struct NewChannel {
  std::shared_ptr<engine::RankChannel> channel;
  ipc::UniqueFd trainer_memory;
  ipc::UniqueFd trainer_listens;
};
/// Makes the shared memory of a rank whose job so many cores share, and the doorbell of its
/// trainer.
Result<NewChannel> make_channel(std::size_t round_bytes, std::size_t core_count = 1);

/// The memory of ranks that have left, until nobody has it any more: neither the poll loop nor a
/// process of their user. Control thread.
class LeftMemory {
 public:
  void add(session::RankHandle handle, Rank rank);
  /// Frees the memory of one rank of this user; of all ranks that have left it looks at those of
  /// this user, until it finds one. The rank, or nothing where all is still held.
  std::optional<session::RankHandle> free_one_of(std::uint32_t user);
  /// The same for ranks of any user; looks at the next kLooks of them.
  std::optional<session::RankHandle> free_one();

 private:
  /// A look costs about a microsecond, and to free 64 MiB some 20 ms.
  static constexpr std::size_t kLooks = 64;

  struct Left {
    std::uint32_t user = 0;
    std::shared_ptr<engine::RankChannel> channel;
  };
  using Table = std::map<session::RankHandle, Left>;
  std::optional<session::RankHandle> free(Table::iterator left);

  Table left_;
  session::RankHandle looked_at_ = 0;  // last
};

using RankTable = std::map<session::RankHandle, Rank>;

}  // namespace gradplane::daemon
