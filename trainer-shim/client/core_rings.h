// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/ipc/channel_view.h"
#include "dataplane/ipc/ring.h"
#include "dataplane/ipc/rounds_in_flight.h"
#include "dataplane/ipc/unique_fd.h"

namespace gradplane::client {

/// A rank's end of the rings that it shares with the poll cores of its daemon. It submits each
/// round to all of them, and the round is complete when all have completed their part. One thread.
class CoreRings {
 public:
  /// `channel` and `doorbells` (by core) outlive this, and stay where they are. At most so many
  /// rounds are in flight.
  CoreRings(const ipc::ChannelView& channel, const std::vector<ipc::UniqueFd>& doorbells,
            std::uint32_t rounds_in_flight);

  /// Nothing was submitted yet: the first round is this one.
  void begin_at(std::uint32_t round);
  /// The next round. Rings the doorbell of each core that sleeps. False: a ring is full or broken,
  /// and it is full only if its other end lies.
  bool submit(const ipc::Submission& submission);

  enum class Took { kNothing, kRound, kImpossible };
  /// Takes the next round that all cores have completed. kImpossible: `out` is a completion that
  /// cannot be. `world_size`: of the job.
  Took take(ipc::Completion& out, std::uint32_t world_size);
  /// Something can be taken, or broken() is true: no core gives anything any more.
  bool has_news() noexcept;
  bool broken() const noexcept;

 private:
  struct Core {
    ipc::RingProducer<ipc::Submission> submissions;
    ipc::RingConsumer<ipc::Completion> completions;
    ipc::RoundsInFlight rounds;
  };
  struct Part {
    std::size_t cores = 0;  // that have completed the round
    ipc::Completion sum;    // of what they say
  };
  bool add(Part& part, const ipc::Completion& completion) const;

  const ipc::ChannelView& channel_;
  const std::vector<ipc::UniqueFd>& doorbells_;
  std::uint32_t rounds_in_flight_;
  std::vector<Core> cores_;
  std::array<Part, kRoundSlots> parts_{};  // by round; rounds in flight never share one
};

}  // namespace gradplane::client
