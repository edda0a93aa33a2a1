// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/client/core_rings.h"

#include <algorithm>

#include "dataplane/ipc/doorbell.h"
#include "dataplane/model/limits.h"

namespace gradplane::client {

static_assert(kMaxInFlightRounds <= kRoundSlots);

CoreRings::CoreRings(const ipc::ChannelView& channel, const std::vector<ipc::UniqueFd>& doorbells,
                     std::uint32_t rounds_in_flight)
    : channel_(channel), doorbells_(doorbells), rounds_in_flight_(rounds_in_flight) {
  for (std::size_t c = 0; c < channel.sizes().core_count; ++c) {
    cores_.push_back({ipc::RingProducer<ipc::Submission>(channel.submissions(c)),
                      ipc::RingConsumer<ipc::Completion>(channel.completions(c)),
                      ipc::RoundsInFlight(rounds_in_flight)});
  }
}

void CoreRings::begin_at(std::uint32_t round) {
  for (Core& core : cores_) core.rounds = ipc::RoundsInFlight(rounds_in_flight_, round);
}

bool CoreRings::submit(const ipc::Submission& submission) {
  for (std::size_t c = 0; c < cores_.size(); ++c) {
    if (!cores_[c].submissions.push(submission)) return false;
    cores_[c].rounds.submit();
    if (ipc::is_asleep(channel_.daemon_sleeps(c))) ipc::ring_doorbell(doorbells_[c].get());
  }
  return true;
}

CoreRings::Took CoreRings::take(ipc::Completion& out, std::uint32_t world_size) {
  for (Core& core : cores_) {
    while (core.completions.pop(out)) {
      const bool is_known =
          out.status == ipc::CompletionStatus::kFailed ||
          (out.status == ipc::CompletionStatus::kOk && out.contributors <= world_size &&
           out.partial_blocks <= kMaxBlocksPerRound);
      if (!is_known || !core.rounds.complete(out.round)) return Took::kImpossible;
      Part& part = parts_[out.round % kRoundSlots];
      if (!add(part, out)) continue;
      out = part.sum;
      part = {};
      return out.partial_blocks <= kMaxBlocksPerRound ? Took::kRound : Took::kImpossible;
    }
  }
  return Took::kNothing;
}

/// Adds a core's completion of a round. Returns whether all cores have completed it.
bool CoreRings::add(Part& part, const ipc::Completion& completion) const {
  if (part.cores++ == 0) {
    part.sum = completion;
  } else {
    if (completion.status == ipc::CompletionStatus::kFailed) part.sum.status = completion.status;
    part.sum.contributors = std::min(part.sum.contributors, completion.contributors);
    part.sum.partial_blocks += completion.partial_blocks;
  }
  return part.cores == cores_.size();
}

bool CoreRings::has_news() noexcept {
  return broken() || std::any_of(cores_.begin(), cores_.end(),
                                 [](Core& core) { return !core.completions.empty(); });
}

bool CoreRings::broken() const noexcept {
  return std::any_of(cores_.begin(), cores_.end(),
                     [](const Core& core) { return core.completions.broken(); });
}

}  // namespace gradplane::client
