// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "control/plan/planner.h"
#include "control/plan/selections.h"
#include "tests/property/fair_links.h"
#include "tests/support/catch.h"

namespace gradplane::testing {

/// Exchanges over one big switch, without packets. All updates of a selection are sent at once and
/// share the accesses fairly. Receivers measure them, and the plan is redrawn when that is worth
/// it.
class ExchangeLab {
 public:
  using Accesses = std::vector<plan::RankCapacity>;

  /// Node n has rank n and the n-th access. The request has no rates.
  ExchangeLab(Accesses accesses, std::uint32_t receivers_ppm, std::uint32_t freshness)
      : accesses_(std::move(accesses)) {
    request_.planner = PlanKind::kSharded;
    for (std::size_t n = 0; n < accesses_.size(); ++n)
      request_.members.push_back({static_cast<api::NodeId>(n), {static_cast<std::uint16_t>(n)}});
    request_.selections =
        plan::SelectionsWanted{.receivers_ppm = receivers_ppm, .freshness = freshness};
    request_.samples.reserve(accesses_.size() * accesses_.size());
  }

  plan::PlanRequest& request() { return request_; }
  const api::Plan& plan() const { return plan_; }
  void set_access(std::size_t node, plan::RankCapacity access) { accesses_[node] = access; }

  /// Makes the first plan, or replaces the plan by a new one.
  void begin() { plan_ = made(request_); }

  /// Runs all selections once. Receivers' measurements are wrong by up to `noise`.
  void exchange(std::mt19937_64& random, double noise) {
    for (const api::Selection& selection : plan_.selections) {
      for (const LinkFlow& flow : shared(selection)) {
        std::uniform_real_distribution<double> error(1 - noise, 1 + noise);
        note(flow.from, flow.receivers.front(), flow.bits_per_s * error(random));
      }
    }
    request_.sampled_under = plan_;
    request_.sampled_for = Duration::seconds(1);
  }

  /// Redraws the plan if a coordinator would. Returns whether it did.
  bool redraw(double gain = 0.1) {
    const api::Plan next = made(request_);
    const auto before = plan::predict_exchanges(plan_, request_);
    const auto then = plan::predict_exchanges(next, request_);
    REQUIRE(before);
    REQUIRE(then);
    if (!before->is_measured || next.selections == plan_.selections) return false;
    if (then->time.to_seconds() > (1 - gain) * before->time.to_seconds()) return false;
    plan_ = next;
    for (protocol::LinkSample& sample : request_.samples) sample.rate_age_ms = 10'000;
    return true;
  }

  /// The mean time of an exchange over the selections of a plan.
  double seconds_of(const api::Plan& plan) const {
    plan::PlanRequest truth = request_;
    truth.samples.clear();
    truth.network = network();
    const auto taken = plan::predict_exchanges(plan, truth);
    REQUIRE(taken);
    return taken->time.to_seconds();
  }
  double seconds() const { return seconds_of(plan_); }
  /// The same for a plan that is made with the true accesses.
  double best_seconds() const {
    plan::PlanRequest truth = request_;
    truth.samples.clear();
    truth.network = network();
    return seconds_of(made(truth));
  }

  std::size_t sent_by(std::size_t node) const {
    std::size_t sent = 0;
    for (const api::Selection& selection : plan_.selections)
      sent += selection.receivers[node].size();
    return sent;
  }
  std::size_t received_by(api::NodeId node) const {
    std::size_t received = 0;
    for (const api::Selection& selection : plan_.selections)
      for (const auto& receivers : selection.receivers)
        received += static_cast<std::size_t>(std::count(receivers.begin(), receivers.end(), node));
    return received;
  }

 private:
  static api::Plan made(const plan::PlanRequest& request) {
    auto plan = plan::make_plan(request);
    REQUIRE(plan.ok());
    return std::move(plan.value());
  }

  plan::Network network() const {
    std::vector<plan::Access> accesses;
    for (const plan::RankCapacity& access : accesses_)
      accesses.push_back({access.up_bits_per_s, access.down_bits_per_s, {}, 0});
    return plan::network_of_accesses(accesses);
  }

  std::vector<LinkFlow> shared(const api::Selection& selection) const {
    std::vector<LinkFlow> flows;
    for (std::size_t from = 0; from < accesses_.size(); ++from)
      for (const api::NodeId to : selection.receivers[from]) flows.push_back({from, {to}, 0});
    FairLinks links(accesses_);
    links.share(flows);
    return flows;
  }

  void note(std::size_t from, std::size_t to, double bits_per_s) {
    const auto is_it = [&](const protocol::LinkSample& sample) {
      return sample.from == from && sample.to == to;
    };
    auto& samples = request_.samples;
    auto found = std::find_if(samples.begin(), samples.end(), is_it);
    if (found == samples.end()) {
      found = samples.insert(samples.end(), protocol::LinkSample{});
      found->from = static_cast<api::NodeId>(from);
      found->to = static_cast<api::NodeId>(to);
    }
    found->bits_per_s = static_cast<std::uint64_t>(bits_per_s);
    found->rate_confidence = protocol::kFullConfidence;
    found->rate_age_ms = 0;
  }

  Accesses accesses_;
  plan::PlanRequest request_;
  api::Plan plan_;
};

}  // namespace gradplane::testing
