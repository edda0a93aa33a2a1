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

/// A rank's end of the rings that it shares with the poll cores of its daemon. A rank submits each
/// round to all cores, and the round is complete when each has completed its part. One thread.
class CoreRings {
 public:
  /// `channel` and `doorbells` (by core) must outlive this and must not move. At most
  /// `rounds_in_flight` rounds are in flight.
  CoreRings(const ipc::ChannelView& channel, const std::vector<ipc::UniqueFd>& doorbells,
            std::uint32_t rounds_in_flight);

  /// Sets the number of the first round. Call it before the first submission.
  void begin_at(std::uint32_t round);
  /// Submits the next round, and rings the doorbell of each core that sleeps. False: a ring is
  /// broken, or full, which can only be if the daemon has written wrong indexes.
  bool submit(const ipc::Submission& submission);

  enum class Took { kNothing, kRound, kImpossible };
  /// Takes the next round that all cores have completed. kImpossible: `out` is a completion that no
  /// correct daemon writes.
  Took take(ipc::Completion& out, std::uint32_t world_size);
  /// Whether something can be taken, or broken() is true, after which no core gives anything.
  bool has_news() noexcept;
  bool broken() const noexcept;

 private:
  struct Core {
    ipc::RingProducer<ipc::Submission> submissions;
    ipc::RingConsumer<ipc::Completion> completions;
    ipc::RoundsInFlight rounds;
  };
  struct Part {
    std::size_t cores = 0;  // how many have completed the round
    ipc::Completion sum;    // their completions, joined
  };
  bool add(Part& part, const ipc::Completion& completion) const;

  const ipc::ChannelView& channel_;
  const std::vector<ipc::UniqueFd>& doorbells_;
  std::uint32_t rounds_in_flight_;
  std::vector<Core> cores_;
  std::array<Part, kRoundSlots> parts_{};  // by round; rounds in flight never share one
};

}  // namespace gradplane::client
