// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "dataplane/base/time.h"
#include "dataplane/job/round_pace.h"
#include "dataplane/job/state.h"

namespace gradplane::job {

/// A node that has prepared a plan expects to hear within this time whether it is committed. It
/// covers some round trips between distant nodes, and one lost message. If an agreement takes
/// longer, rounds wait at the horizon.
inline constexpr Duration kAgreementTime = Duration::seconds(1);

/// The answer to a request to prepare a plan.
struct Prepared {
  PlanRefusal refusal = PlanRefusal::kNone;
  /// No round from this one on is opened here until the plan is committed or aborted. The
  /// activation must not be before it.
  std::uint32_t horizon = 0;
};

/// Prepares a further plan of the job, lets it carry the rounds from the activation on, and gives
/// the older plan back when its last round has ended here. Rounds of both plans are open side by
/// side. Nothing waits, unless ranks leave (PlanTable::may_submit()). Allocates nothing.
class PlanSwitch {
 public:
  explicit PlanSwitch(State& state) : state_(state) {}

  /// Takes the plan, or leaves it in `plan` if it is refused.
  Prepared prepare(std::unique_ptr<Plan>& plan);
  /// Rounds from `activation` on belong to the prepared plan. False, and nothing happens, if no
  /// plan of this epoch is prepared or the activation is before the horizon. The plan with which a
  /// job joins (JobConfig::joins) is prepared from the start, and the job begins with the round
  /// `activation`.
  [[nodiscard]] bool commit(std::uint32_t epoch, std::uint32_t activation);
  /// Gives the prepared plan of this epoch back; nullptr if there is none.
  std::unique_ptr<Plan> abort(std::uint32_t epoch);

  /// Every rank has completed all rounds of the older plan, which has this epoch. A node without
  /// ranks cannot know that by itself if it had no block of some of them. Also, ranks may wait for
  /// it with their submissions; see PlanTable::may_submit().
  void end_older(std::uint32_t epoch);

  /// Checks which rounds have begun, and sets the rates of peers. Once the first round of a
  /// committed plan is open, peers have the rates of that plan. Under a plan with selections they
  /// have the rates of the oldest round that this node still sends, because exchanges share a
  /// peer's link among fewer nodes than other rounds do.
  void tick(Instant now);

  /// Whether take_ended() has something to do.
  bool has_ended() const { return ended_ != nullptr || older_has_ended(); }
  /// The older plan, if no round of it is needed here any more; otherwise nullptr. The plan stays
  /// alive until somebody takes it. Each call makes one bucket let go of it, and the last call
  /// returns it.
  std::unique_ptr<Plan> take_ended();

 private:
  void add_buckets(Plan& plan);
  void disconnect(Plan& plan);
  bool older_has_ended() const;
  bool sends_updates() const;
  void retire();

  State& state_;
  RoundPace pace_;
  std::uint32_t horizon_ = 0;
  bool older_is_over_ = false;
  std::unique_ptr<Plan> ended_;              // still known to buckets
  std::size_t next_bucket_ = 0;              // the next bucket that may know it
  std::optional<std::uint32_t> activation_;  // activation whose rates are not applied
  bool has_rates_of_updates_ = false;        // whether peers have the rates of updates
};

}  // namespace gradplane::job
