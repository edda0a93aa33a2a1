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
#include "control/daemon/lent_memory.h"
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
  /// Whether the poll loops have the channel, and beat for it. Until then the control thread does.
  bool in_engine = false;
  session::TableCollector tables;  // of its buckets
  bool told_ready = false;         // whether it was told that its job may begin
  bool is_broken = false;          // whether a poll loop has found it broken
  RankDrift drift = {};
};

/// The result of a message about a bucket.
struct TakenBucket {
  std::optional<api::BucketBounds> whole;  // its table; none if more is to come or it is refused
  std::string refusal;                     // why the job has to do without it; given only once
};
/// Takes a message about a bucket of a rank. An Error: no correct rank would send it.
Result<TakenBucket> take_bucket(Rank& rank, const protocol::RegisterBucket& said);

/// A rank's channel, and two descriptors that the daemon passes to the trainer and then closes: the
/// channel's memory, and the listening end of the trainer's doorbell. The daemon does not keep that
/// end, because anybody may send descriptors to it that are slow to close.
struct NewChannel {
  std::shared_ptr<engine::RankChannel> channel;
  ipc::UniqueFd trainer_memory;
  ipc::UniqueFd trainer_listens;
};
/// Makes the shared memory of a rank, and the doorbell of its trainer. `core_count` cores share its
/// job. With `lent` the memory is lent to the port, and unmapped only when that lets go of it.
Result<NewChannel> make_channel(std::size_t round_bytes, std::size_t core_count = 1,
                                const std::shared_ptr<LentMemory>& lent = nullptr);

/// Keeps the memory of ranks that have left until nobody uses it any more, neither a poll loop nor
/// a process of their user. Control thread.
class LeftMemory {
 public:
  void add(session::RankHandle handle, Rank rank);
  /// Frees the memory of the first rank of this user that nobody uses any more. Returns the rank,
  /// or nothing if there is none.
  std::optional<session::RankHandle> free_one_of(std::uint32_t user);
  /// The same for ranks of any user. Each call looks only at the next kLooks ranks.
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
  session::RankHandle looked_at_ = 0;  // the last rank that free_one() has looked at
};

using RankTable = std::map<session::RankHandle, Rank>;

}  // namespace gradplane::daemon
