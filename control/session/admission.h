// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/protocol/job_key.h"
#include "control/session/views.h"
#include "dataplane/base/time.h"
#include "dataplane/model/quotas.h"

/// Which jobs and ranks get room: how much one user may hold, for how long a job may wait for its
/// ranks, and who makes room when all slots are taken. Pure.
namespace gradplane::session {

/// A user as the kernel of the rank's node numbers it.
inline constexpr std::uint32_t kRootUser = 0;
/// Of a job that no rank of this node opened. The kernel gives this number to nobody.
inline constexpr std::uint32_t kNoUser = UINT32_MAX;

/// A node keeps jobs that wait beside those that have slots: as many as there are slots again, so
/// that the coordinator can choose who gives way.
inline constexpr std::size_t kMaxJobsOfNode = 2 * kMaxJobs;

/// Why a rank or a job got no room, or lost it. One counter for each; whoever decides counts.
enum class Refusal : std::uint8_t {
  kUserJobs,       // quotas.jobs
  kUserRanks,      // quotas.ranks
  kNoSlot,         // all slots are taken by others
  kGaveWay,        // it was waiting, and its slot was needed
  kWaitedTooLong,  // quotas.wait
  kNotFitting,     // the rank is not one that its job can take
  kCount,
};
std::string_view refusal_name(Refusal refusal);
using RefusalCounters = std::array<std::uint64_t, static_cast<std::size_t>(Refusal::kCount)>;

struct Denial {
  Refusal why = Refusal::kCount;
  std::string text;
};

/// A job slot that is taken.
struct Slot {
  protocol::JobKey key{};
  std::uint32_t user = kNoUser;
  bool waiting = false;  // not all of its ranks have come
  Instant since;
};

template <typename Jobs>
std::vector<Slot> slots_of(const Jobs& jobs) {
  std::vector<Slot> slots;
  for (const auto& [key, job] : jobs)
    slots.push_back({key, job.user, job.state == JobState::kWaiting, job.since});
  return slots;
}

/// A job that wants a slot.
struct Newcomer {
  std::uint32_t user = kNoUser;
  bool complete = false;  // all of its ranks have come: it will not wait
};

/// Of the jobs that wait and may be displaced, the oldest of the user with the most that wait: it
/// leaves its slot to the newcomer. A newcomer that is complete displaces jobs of its own user, and
/// those of users who hold more slots than its own user does, running ones too. One that will wait
/// displaces only what leaves the other user with at least as many waiting jobs as it will have
/// itself. So no displacement takes users further from equal numbers, and two jobs that wait never
/// displace each other in turns. Nothing: all may stay.
std::optional<protocol::JobKey> who_gives_way(const std::vector<Slot>& slots,
                                              const Newcomer& newcomer);

/// `who` begins the texts: "node w1 serves".
std::optional<Denial> over_quota(const std::vector<Slot>& slots, std::uint32_t user,
                                 const Quotas& quotas, const std::string& who);
Denial no_slot(std::size_t jobs, const std::string& who);

/// For the coordinator, which alone knows all that users hold in the cluster.
/// Either a slot is free, or it will be when `gives_way` has left, or there is a `denial`.
struct Admission {
  std::optional<Denial> denial;
  std::optional<protocol::JobKey> gives_way;
};
Admission admit(const std::vector<Slot>& slots, const Newcomer& newcomer, const Quotas& quotas,
                const std::string& who);

/// Why a job has lost its slot. `waiting` says what it waited for: "waiting for rank 2 of 3 to
/// attach".
std::string gave_way_text(const std::string& who, const Newcomer& to, const std::string& waiting);
std::string waited_text(Duration wait, const std::string& waiting);

}  // namespace gradplane::session
