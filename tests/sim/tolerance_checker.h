// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/aggregate/bucket.h"
#include "dataplane/engine/local_plan.h"
#include "dataplane/hop/counters.h"
#include "dataplane/ipc/layout.h"
#include "dataplane/model/round_report.h"
#include "tests/sim/cluster.h"
#include "tests/sim/coding.h"
#include "tests/sim/rounding_checker.h"
#include "tests/sim/stream_checker.h"

namespace gradplane::sim {

/// Reads out of every sum of a bucket whose contributions it holds, and holds that against the
/// invariants of docs/protocol.md, section 1: I2 (a result is the sum over exactly the ranks that
/// it names), I3 (a round that lacks something says why), I4 (bounds), I5 (what did not enter comes
/// later). One for all ranks of a run; I1 is the simulation's own.
class ToleranceChecker {
 public:
  static constexpr std::size_t kMaxRanksInSets = 256;

  ToleranceChecker(const Scenario& scenario, std::uint32_t world);

  /// What `rank` writes at `element` of a bucket's round. Rounds are places in Scenario::rounds.
  double contribution(std::uint32_t round, std::uint32_t rank, std::uint32_t element) const;

  /// A rank has got a round of a bucket. Empty, or the invariant that does not hold.
  std::string on_result(std::uint32_t rank, const ipc::Completion& completion,
                        std::span<const std::byte> slot);

  /// A rank submits a round.
  void on_submit(std::uint32_t round, Instant now);
  /// Rounds from `first` on have this plan. It outlives the checker.
  void on_plan(std::uint32_t first, const api::Plan& plan) {
    plans_.push_back({first, engine::split_trees(plan, scenario_.cores)});
    streams_.on_plan(first, plan);
  }
  /// The plan of a round.
  const api::Plan& plan_at(std::uint32_t round) const;
  /// From now on rounds that begin have this bound.
  void on_change(const BoundChange& change, Instant now);
  /// A node begins to take part in the job, and counts its reports from the start.
  void on_job(std::uint16_t node) {
    std::erase_if(reports_of_part_, [node](const auto& part) { return part.first.first == node; });
  }
  /// A root has closed a round. Empty, or what is wrong with it at first sight.
  std::string on_report(std::uint16_t node, const api::JobRoundReport& heard, Instant now);

  /// At the end of a run in which every rank got every round: what all nodes have counted, and
  /// what each bucket of each of them has. A node that leaves the job says it then.
  void add_counts(const aggregate::Bucket& bucket);
  std::string conclude(const hop::Counters& all_nodes) const;
  /// Of exchanges under bounded staleness.
  StreamChecker& streams() { return streams_; }
  /// Of sums that wire types round.
  RoundingChecker& rounding() { return rounding_; }

  const ToleranceTotals& totals() const { return totals_; }

 private:
  using RankSet = std::bitset<kMaxRanksInSets>;
  struct Decoded {
    bool done = false;
    std::uint32_t contributors = 0;  // the fewest of any block
    std::uint32_t partial_blocks = 0;
    std::vector<RankSet> sets;     // by block
    std::vector<std::byte> bytes;  // until they are checked
  };
  struct BoundSince {
    Instant since;
    float bound = 0;
  };
  /// One bucket: what each rank has submitted and not seen in a sum.
  struct Ledger {
    std::vector<std::int64_t> kept;               // by element, and rank of those that it carries
    std::uint32_t uses = 0;                       // rounds of the scenario
    std::uint32_t checked = 0;                    // rounds of the scenario before this are
    std::vector<std::uint64_t> missing;           // by tensor: blocks that sums lack, by source
    std::vector<std::uint64_t> counted;           // what the roots say of the same
    std::vector<std::uint64_t> excluded;          // and what those say who pushed them
    std::vector<std::vector<BoundSince>> bounds;  // by tensor
  };
  /// The blocks that one root gathers in a round, and why it stopped; no reason: never heard.
  struct Part {
    BlockRange blocks;
    std::optional<CloseReason> reason;
    Instant closed_at;
  };

  const RoundPlan& plan_of(std::uint32_t round) const { return scenario_.rounds[round]; }
  const api::BucketBounds& bounds_of(std::uint32_t round) const;
  const Coding& coding_of(std::uint32_t round) const;
  Geometry geometry_of(std::uint32_t round) const;
  std::int64_t& kept(std::uint32_t round, std::uint32_t rank, std::uint32_t element);
  std::uint32_t pending(std::uint32_t round, std::uint32_t rank, std::uint32_t element);
  const Poison* poison_at(std::uint32_t round, std::uint32_t element) const;

  std::string decode(std::uint32_t round, std::span<const std::byte> slot);
  /// An element of each lane of a block, by lane.
  struct Sample {
    std::uint32_t element = 0;
    double sum = 0;
  };
  std::vector<Sample> sample(std::uint32_t round, std::uint32_t block,
                             std::span<const std::byte> slot) const;
  std::optional<RankSet> set_of(std::uint32_t round, std::span<const Sample> lanes) const;
  std::optional<RankSet> scaled_set_of(std::uint32_t round, std::span<const Sample> lanes) const;
  bool add_scaled(std::uint32_t round, Sample lane, double scale, RankSet& set) const;
  double expected(std::uint32_t round, std::uint32_t element, const RankSet& set);
  std::string check_in_order(std::uint16_t bucket);
  std::string check_block(std::uint32_t round, std::uint32_t block, const RankSet& set,
                          std::span<const std::byte> slot);
  void settle(std::uint32_t round, std::uint32_t block, const RankSet& set);
  std::string describe(std::uint32_t round, std::uint32_t element, double sum);

  std::vector<Part> parts_of(std::uint32_t round) const;
  std::string count_missing(std::uint32_t round);
  void count_tensors(std::uint32_t round, std::uint32_t block);
  std::string check_counts() const;
  bool closed_without_absent(std::uint16_t bucket) const;
  std::string check_reports(std::uint64_t missing) const;
  std::string check_report(std::uint32_t round, const RoundReport& report) const;
  std::string check_bounds(std::uint32_t round);
  std::string check_part(std::uint32_t round, const Part& part) const;
  std::string check_tensors(std::uint32_t round, const std::vector<Part>& parts) const;
  std::string check_tensor(std::uint32_t round, std::size_t tensor,
                           const std::vector<Part>& parts) const;
  std::vector<float> bounds_in(std::uint32_t round, const Part& part, std::size_t tensor) const;
  api::BucketBounds loosest(std::uint32_t round, const Part& part) const;
  bool lacks_after_change(std::uint32_t round, const Part& part) const;

  struct InForce {
    std::uint32_t first = 0;
    api::Plan plan;  // with the trees of all cores
  };

  const Scenario& scenario_;
  std::vector<InForce> plans_;  // in the order of their rounds
  StreamChecker streams_;
  RoundingChecker rounding_;
  std::uint32_t world_;
  RankSet all_;
  std::vector<Coding> codings_;   // by bucket
  std::vector<Ledger> ledgers_;   // by bucket
  std::vector<Decoded> decoded_;  // by round
  std::vector<std::uint32_t> use_of_round_;
  std::map<std::uint16_t, RankSet> ranks_of_node_;
  struct Closed {
    RoundReport report;
    Instant at;
  };
  std::map<std::pair<std::uint32_t, std::uint8_t>, Closed> reports_;  // by round and tree
  std::vector<std::optional<Instant>> submitted_at_;                  // by round: the first rank
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint64_t> reports_of_part_;  // of a node
  ToleranceTotals totals_;
};

}  // namespace gradplane::sim
