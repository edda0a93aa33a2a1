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

/// Decides which jobs and ranks are admitted: how much one user may hold, how long a job may wait
/// for its ranks, and which job gives way when all slots are taken. Pure.
namespace gradplane::session {

/// Users have the uid that the kernel of the rank's node gives them.
inline constexpr std::uint32_t kRootUser = 0;
/// The user of a job that no rank of this node opened. The kernel gives no user this number.
inline constexpr std::uint32_t kNoUser = UINT32_MAX;

/// A node keeps as many waiting jobs as there are slots, in addition to the jobs that have slots.
/// So the coordinator can choose which job gives way.
inline constexpr std::size_t kMaxJobsOfNode = 2 * kMaxJobs;

/// The reason why a rank or a job was refused or displaced. Each has a counter on the node that
/// decides.
enum class Refusal : std::uint8_t {
  kUserJobs,       // quotas.jobs
  kUserRanks,      // quotas.ranks
  kNoSlot,         // all slots are taken by others
  kGaveWay,        // it was waiting, and another job needed its slot
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
  bool waiting = false;  // some of its ranks have not come
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
  bool complete = false;  // all of its ranks have come, so it will not wait
};

/// Chooses the waiting job that leaves its slot to the newcomer, or nothing when all jobs may stay.
/// Running jobs always stay. Among the jobs that may be displaced, it is the oldest one of the user
/// with the most waiting jobs. These jobs may be displaced:
///
/// - By a newcomer that is complete: waiting jobs of its own user, and of users who hold more slots
///   than its own user, counting running jobs too.
/// - By a newcomer that will wait: a waiting job of a user who then still has at least as many
///   waiting jobs as the newcomer's user will have.
///
/// So no displacement makes the numbers of two users more unequal, and two waiting jobs never
/// displace each other in turns.
std::optional<protocol::JobKey> who_gives_way(const std::vector<Slot>& slots,
                                              const Newcomer& newcomer);

/// `who` begins the texts: "node w1 serves".
std::optional<Denial> over_quota(const std::vector<Slot>& slots, std::uint32_t user,
                                 const Quotas& quotas, const std::string& who);
Denial no_slot(std::size_t jobs, const std::string& who);

/// What the coordinator decides, which alone knows the slots of all users in the cluster. Either a
/// slot is free, or one will be free when `gives_way` has left, or there is a `denial`.
struct Admission {
  std::optional<Denial> denial;
  std::optional<protocol::JobKey> gives_way;
};
Admission admit(const std::vector<Slot>& slots, const Newcomer& newcomer, const Quotas& quotas,
                const std::string& who);

/// Says why a job has lost its slot. `waiting` says for what it waited: "waiting for rank 2 of 3 to
/// attach".
std::string gave_way_text(const std::string& who, const Newcomer& to, const std::string& waiting);
std::string waited_text(Duration wait, const std::string& waiting);

}  // namespace gradplane::session
