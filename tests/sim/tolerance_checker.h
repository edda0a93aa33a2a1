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

/// Reads out of every sum of a bucket which contributions are in it, and checks the invariants of
/// docs/protocol.md, section 1: I2 (a result is the sum over exactly the ranks that it names), I3
/// (a round from which something is missing says why), I4 (bounds), I5 (what did not enter comes
/// later). One object checks all ranks of a run. The simulation itself checks I1.
class ToleranceChecker {
 public:
  static constexpr std::size_t kMaxRanksInSets = 256;

  ToleranceChecker(const Scenario& scenario, std::uint32_t world);

  /// Rank `rank`'s contribution to `element` of a round. Here rounds are indices into
  /// Scenario::rounds.
  double contribution(std::uint32_t round, std::uint32_t rank, std::uint32_t element) const;

  /// A rank has got a round of a bucket. Returns the invariant that is broken, or an empty string.
  std::string on_result(std::uint32_t rank, const ipc::Completion& completion,
                        std::span<const std::byte> slot);

  /// A rank submits a round.
  void on_submit(std::uint32_t round, Instant now);
  /// Rounds from `first` on have this plan, which must outlive the checker.
  void on_plan(std::uint32_t first, const api::Plan& plan) {
    plans_.push_back({first, engine::split_trees(plan, scenario_.cores)});
    streams_.on_plan(first, plan);
  }
  /// The plan of a round.
  const api::Plan& plan_at(std::uint32_t round) const;
  /// Rounds that begin from now on have this bound.
  void on_change(const BoundChange& change, Instant now);
  /// A node begins to take part in the job, so it counts its reports from 0 again.
  void on_job(std::uint16_t node) {
    std::erase_if(reports_of_part_, [node](const auto& part) { return part.first.first == node; });
  }
  /// A root has closed a round. Returns what the report alone shows to be wrong, or an empty
  /// string.
  std::string on_report(std::uint16_t node, const api::JobRoundReport& heard, Instant now);

  /// Adds what a node has counted for a bucket, for each bucket of each node. Called at the end of
  /// a run in which every rank got every round, or when a node leaves the job.
  void add_counts(const aggregate::Bucket& bucket);
  std::string conclude(const hop::Counters& all_nodes) const;
  /// Checks exchanges under bounded staleness.
  StreamChecker& streams() { return streams_; }
  /// Checks sums of wire types that round.
  RoundingChecker& rounding() { return rounding_; }

  const ToleranceTotals& totals() const { return totals_; }

 private:
  using RankSet = std::bitset<kMaxRanksInSets>;
  struct Decoded {
    bool done = false;
    std::uint32_t contributors = 0;  // the smallest number in any block
    std::uint32_t partial_blocks = 0;
    std::vector<RankSet> sets;     // by block
    std::vector<std::byte> bytes;  // until they are checked
  };
  struct BoundSince {
    Instant since;
    float bound = 0;
  };
  /// One bucket: what each rank has submitted and not yet seen in a sum.
  struct Ledger {
    std::vector<std::int64_t> kept;  // by element, and by rank of the element's lane
    std::uint32_t uses = 0;          // number of rounds in the scenario with this bucket
    std::uint32_t checked = 0;       // the rounds before this one are checked
    // By tensor: blocks missing from sums, each source by itself.
    std::vector<std::uint64_t> missing;
    std::vector<std::uint64_t> counted;           // the same as counted by the roots
    std::vector<std::uint64_t> excluded;          // the same as counted by those that pushed them
    std::vector<std::vector<BoundSince>> bounds;  // by tensor
  };
  /// The blocks that one root gathers in a round, and why it closed. No reason: no report has come.
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
  /// One element of each lane of a block, by lane.
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
    api::Plan plan;  // contains the trees of all cores
  };

  const Scenario& scenario_;
  std::vector<InForce> plans_;  // in the order of their first rounds
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
  std::vector<std::optional<Instant>> submitted_at_;  // by round: when the first rank submitted it
  // By node and part.
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint64_t> reports_of_part_;
  ToleranceTotals totals_;
};

}  // namespace gradplane::sim
