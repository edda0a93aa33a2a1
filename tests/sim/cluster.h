// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/awareness/incoming_links.h"
#include "dataplane/engine/engine.h"
#include "dataplane/model/element_type.h"
#include "dataplane/model/operation.h"
#include "dataplane/model/reduction.h"
#include "tests/sim/crash.h"
#include "tests/sim/network.h"
#include "tests/sim/tolerance.h"

namespace gradplane::sim {

/// One operation that every rank issues.
struct RoundPlan {
  ElementType type = ElementType::kFloat32;
  std::uint32_t elements = 0;
  std::uint16_t bucket = 0;  // index from 1 into Tolerance::buckets; 0: no bucket, an exact round
  Operation operation = Operation::kAllReduce;
  std::uint16_t source = 0;  // source rank of a broadcast, or selection of an exchange
  Reduction reduction = Reduction::kSum;
};

/// The round of a registered bucket.
RoundPlan round_of(const api::BucketBounds& bucket);

/// A whole run. Everything is decided before it starts.
struct Scenario {
  std::uint64_t seed = 0;
  LinkModel link;
  api::Plan plan;
  std::vector<RoundPlan> rounds;
  std::size_t block_bytes = kMinBlockBytes;
  std::size_t round_bytes = 64 << 10;
  std::size_t cores = 1;      // poll cores of each node
  std::size_t in_flight = 2;  // rounds that a rank may have in flight
  // Rounds of one all_reduce. A rank begins the next one when all before are done. 0: no limit.
  std::uint32_t rounds_of_all_reduce = 0;
  Duration compute_max = Duration::ms(2);  // work of a rank before each round, uniform from 0
  // Overrides compute_max for the ranks that have an entry.
  std::vector<Duration> compute_max_of_rank;
  bool authenticate = true;
  bool paced = true;                      // nodes know the rate of their link
  std::vector<std::uint64_t> link_rates;  // per node, if links are unequal
  std::uint32_t staleness_steps = 0;      // staleness bound of exchanges of buckets
  bool multicast = false;                 // results go to groups
  bool grants = false;                    // receivers grant credit to senders
  bool buffer_known = false;              // nodes know the size of the queue before their downlink
  bool forward_order = false;
  CongestionSettings congestion;
  // Minimum round trip time for parity; none: no parity.
  std::optional<Duration> parity_from = hop::kLongPath;
  Duration limit = Duration::seconds(60);  // virtual time after which a run counts as hung
  Duration stall_after = job::kMinStall;   // the shortest that a configuration allows
  Tolerance tolerance;
  std::uint32_t job = 42;      // job id
  std::vector<Crash> crashes;  // one after the other; each strikes the job that runs then
  /// Further plans, in the order of their epochs. Members may join and leave with their ranks. Each
  /// rank is on the same node in all plans, and two successive plans share some member with ranks.
  /// that follow each other have some member with ranks in common.
  std::vector<api::Plan> flips;
  std::uint32_t flip_every = 50;                // rounds for which each plan is in force at least
  Duration flip_message_max = Duration::ms(2);  // longest delay of a message about plans

  /// Convert between an index into `rounds` and the round number on the wire, which wraps around.
  std::uint32_t id_of(std::uint32_t index) const { return plan.activation_round + index; }
  std::uint32_t index_of(std::uint32_t id) const { return id - plan.activation_round; }
};

/// What rounds of buckets lacked and why. All but `closes` is read from the sums.
struct ToleranceTotals {
  std::array<std::uint64_t, kCloseReasons> closes{};  // by CloseReason
  std::uint64_t partial_blocks = 0;
  std::uint64_t missing_blocks = 0;    // each host's missing contribution to a block counts once
  std::uint64_t carried_elements = 0;  // elements that came with a later round
  // Rounds with changed bounds from which something was missing.
  std::uint64_t partial_after_change = 0;
  std::uint64_t at(CloseReason r) const { return closes[static_cast<std::size_t>(r)]; }
  void add(const ToleranceTotals& other);
};

/// The outcome of a run. `failure` is empty if every check passed.
struct Outcome {
  std::string failure;
  Instant ended;
  std::uint64_t packets = 0;
  std::uint64_t packets_dropped = 0;
  std::vector<lab::LinkCounters> site_links;    // by link, if there is a network of sites
  hop::Counters counters;                       // summed over all nodes
  std::vector<awareness::IncomingLinks> links;  // measured by each node's engine, by node
  ToleranceTotals tolerance;
  std::uint32_t lost_jobs = 0;  // jobs that a crash has ended
  /// Set when a node has given a round up. The run fails then, but a test may look for it.
  struct GivenUp {
    std::uint16_t by = 0;
    std::uint16_t because_of = 0;
    std::uint32_t round = 0;
    Stall stall;
  };
  std::optional<GivenUp> given_up;
  /// When every rank had completed each round.
  std::vector<Instant> round_ends;
  /// When each rank had completed each round and all before, by rank and round. never() for rounds
  /// in which the rank takes no part.
  std::vector<std::vector<Instant>> rank_ends;
  /// The first round of each further plan.
  std::vector<std::uint32_t> activations;
  std::uint64_t trace = 0;  // a hash of results and times, which is the same for equal scenarios
};

/// Runs the production engines of all nodes against scripted trainers, in virtual time. Checks I1
/// (all replicas have the same bits), I2 (a result is the sum over exactly all ranks, or what one
/// rank gave, bit by bit), I3 (every round ends), and that nothing is left in flight.
/// ToleranceChecker checks the rounds of buckets.
Outcome run(const Scenario& scenario);

/// Rank `rank`'s contribution: small integers, so that every type represents every sum exactly.
double contribution(std::uint32_t round, std::uint32_t rank, std::uint32_t element);
/// A byte that rank `rank` gives in an operation without a reduction. Any bits may occur, also NaN.
std::byte given_byte(std::uint32_t round, std::uint32_t rank, std::size_t index);

/// Changes half of the exact rounds to another operation than all_reduce, and some that reduce to
/// another reduction than a sum.
void mix_operations(Scenario& scenario, std::uint64_t seed);

/// Adds auxiliary routes to a scenario's plans, and makes links between neighbours slow, so that
/// the routes are used.
void add_routes(Scenario& scenario);

/// Draws a scenario of exact rounds from the seed. A third of them mix operations.
Scenario random_scenario(std::uint64_t seed);
/// Draws a scenario with buckets that have loss bounds, and with faults that cause losses.
/// `narrow`: some blocks have wire type bf16 or fp16.
Scenario random_tolerant_scenario(std::uint64_t seed, bool narrow = false);
/// Makes parity follow rounds on paths of any length, and makes all links lose packets.
void add_parity(Scenario& scenario);
/// Draws a scenario with trees of many nodes and small rounds.
Scenario random_large_scenario(std::uint64_t seed);
/// Draws a scenario with several plans, and enough rounds for them.
Scenario random_replanned_scenario(std::uint64_t seed);

/// Sends results to groups. The switch copies for all hosts, for some, or only at some times.
void add_groups(Scenario& scenario);

/// Moves a scenario to a network of sites whose rates change, with trees that planners make.
void put_on_sites(Scenario& scenario);

/// Gives each node `cores` poll cores, if jobs of this kind can be shared among cores.
void share_among_cores(Scenario& scenario, std::size_t cores);

/// A scenario of `rounds` exact rounds, with another plan after every Scenario::flip_every rounds.
Scenario flip_scenario(std::uint64_t seed, std::uint32_t rounds);

/// The members of all plans of a scenario, by node. Node ids begin with 0 and have no gap.
std::vector<api::Member> everybody(const Scenario& scenario);
/// The plan's member with this node or this rank; nullptr if there is none.
const api::Member* member_of(const api::Plan& plan, api::NodeId node);
const api::Member* member_with(const api::Plan& plan, std::uint32_t rank);
/// The ranks of a plan, in the order of its members.
std::vector<std::uint32_t> ranks_of(const api::Plan& plan);

/// Members 0..aggregators+workers-1. Each of the last `workers` has one rank.
std::vector<api::Member> members(std::uint16_t aggregators, std::uint16_t workers);
api::Plan star(std::uint16_t workers);
api::Plan sharded(std::uint16_t workers);
/// A sharded plan over these nodes, in this order. Rank n is on node n.
api::Plan sharded_over(const std::vector<api::NodeId>& nodes);
/// Adds selections to a plan: in selection s, member m sends to the members for which `receives` is
/// true.
api::Plan with_selections(
    api::Plan plan, std::size_t selections,
    const std::function<bool(std::size_t selection, std::size_t from, std::size_t to)>& receives);
/// A plan in which every node with a rank sends to a relay, and relays send to the root.
api::Plan two_level_tree(std::uint16_t relays, std::uint16_t workers_per_relay);

}  // namespace gradplane::sim
