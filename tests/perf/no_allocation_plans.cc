// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The poll loop does not allocate while a job's plan changes: the control thread makes plans before
// and destroys them afterwards.
#include <cstdio>
#include <vector>

#include "dataplane/engine/local_plan.h"
#include "tests/perf/exchange.h"
#include "tests/perf/forbidden_calls.h"

namespace {

using namespace gradplane;

constexpr std::uint32_t kFlips = 6;
constexpr std::uint64_t kPacketsPerLook = 2000;
constexpr int kMaxLooks = 1000;

class Flips {
 public:
  explicit Flips(testing::Exchange& exchange) : exchange_(exchange) {
    for (std::uint16_t n = 0; n < 2; ++n) {
      returned_[n].reserve(kFlips);
      for (std::uint32_t f = 0; f < kFlips; ++f) {
        api::Plan plan = testing::star_of(2);
        plan.epoch += f + 1;
        const auto root = static_cast<api::NodeId>((f + 1) % 2);
        plan.trees[0].root = root;
        plan.trees[0].parent = {root == 0 ? api::kNoNode : root, root == 1 ? api::kNoNode : root};
        // Makes all plans before the count begins. JobRuntime::make_plan() would refuse so many at
        // once.
        plans_[n].push_back(
            new job::Plan(engine::local_plan(plan, n, {}, false), runtime(n).job().config()));
      }
    }
  }
  ~Flips() {
    for (std::uint16_t n = 0; n < 2; ++n) {
      for (job::Plan* plan : returned_[n]) runtime(n).destroy_plan(plan);
    }
  }
  Flips(const Flips&) = delete;
  Flips& operator=(const Flips&) = delete;

  /// Puts the next plan in force on both hosts. Returns false if that takes too long.
  bool flip(std::uint32_t f) {
    for (std::uint16_t n = 0; n < 2; ++n) {
      api::Command prepare = command(api::Command::Kind::kPreparePlan, n, f);
      prepare.plan = plans_[n][f];
      exchange_.host(n).command(prepare);
    }
    if (!wait(api::Event::Kind::kPlanPrepared)) return false;
    for (std::uint16_t n = 0; n < 2; ++n) {
      api::Command commit = command(api::Command::Kind::kCommitPlan, n, f);
      commit.round = latest_horizon_;
      exchange_.host(n).command(commit);
    }
    return wait(api::Event::Kind::kPlanReturned);
  }

 private:
  engine::JobRuntime& runtime(std::uint16_t n) { return *exchange_.job(n).runtime; }

  api::Command command(api::Command::Kind kind, std::uint16_t n, std::uint32_t f) {
    api::Command c;
    c.kind = kind;
    c.job = &runtime(n);
    c.epoch = f + 2;
    return c;
  }

  bool wait(api::Event::Kind kind) {
    std::size_t seen = 0;
    for (int look = 0; look < kMaxLooks && seen < 2; ++look) {
      exchange_.run_packets(kPacketsPerLook);
      for (std::uint16_t n = 0; n < 2; ++n) {
        while (exchange_.host(n).next_event(event_)) {
          if (event_.kind != kind) return false;
          ++seen;
          latest_horizon_ = std::max(latest_horizon_, event_.round);
          if (event_.plan != nullptr) returned_[n].push_back(event_.plan);
        }
      }
    }
    return seen == 2;
  }

  testing::Exchange& exchange_;
  std::array<std::vector<job::Plan*>, 2> plans_;
  std::array<std::vector<job::Plan*>, 2> returned_;
  std::uint32_t latest_horizon_ = 0;
  api::Event event_;
};

}  // namespace

int main() {
  testing::Exchange exchange({.authenticate = true});
  Flips flips(exchange);
  exchange.run_packets(10'000);
  bool right = true;
  testing::count_forbidden_calls();
  for (std::uint32_t f = 0; f < kFlips; ++f) right = right && flips.flip(f);
  const bool none = testing::no_forbidden_calls();
  std::printf("%u plans, every sum %s\n", kFlips, right && exchange.correct() ? "right" : "WRONG");
  return none && right && exchange.correct() ? 0 : 1;
}
