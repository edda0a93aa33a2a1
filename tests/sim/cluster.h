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
  std::uint16_t bucket = 0;  // of Tolerance::buckets; 0: none, exact
  Operation operation = Operation::kAllReduce;
  std::uint16_t source = 0;  // of a broadcast; the selection of an exchange
  Reduction reduction = Reduction::kSum;
};

/// The round of a registered bucket.
RoundPlan round_of(const api::BucketBounds& bucket);

/// A whole run, decided before it starts.
struct Scenario {
  std::uint64_t seed = 0;
  LinkModel link;
  api::Plan plan;
  std::vector<RoundPlan> rounds;
  std::size_t block_bytes = kMinBlockBytes;
  std::size_t round_bytes = 64 << 10;
  std::size_t cores = 1;                      // poll cores of each node
  std::size_t in_flight = 2;                  // rounds that a rank submits ahead
  std::uint32_t rounds_of_all_reduce = 0;     // a rank begins so many when it has all before; 0: no
  Duration compute_max = Duration::ms(2);     // a rank's own work before each round, uniform
  std::vector<Duration> compute_max_of_rank;  // instead, where it has an entry for the rank
  bool authenticate = true;
  bool paced = true;                      // nodes know their link's rate
  std::vector<std::uint64_t> link_rates;  // what they know of each node's, where links are unequal
  std::uint32_t staleness_steps = 0;      // of exchanges of buckets
  bool multicast = false;                 // results go to groups
  bool grants = false;                    // who receives says who may send
  bool buffer_known = false;              // nodes know the queue before their downlink
  bool forward_order = false;
  CongestionSettings congestion;
  std::optional<Duration> parity_from = hop::kLongPath;  // round trips; none: there is no parity
  Duration limit = Duration::seconds(60);  // virtual; a run that takes longer has hung
  Duration stall_after = job::kMinStall;   // as short as a configuration can make it
  Tolerance tolerance;
  std::uint32_t job = 42;      // its id
  std::vector<Crash> crashes;  // one after the other: each is of the job that runs then
  /// Further plans, in the order of their epochs, and how many rounds each is in force at least.
  /// Members may come and go, with their ranks. Each rank is always on the same node, and two plans
  /// that follow each other have some member with ranks in common.
  std::vector<api::Plan> flips;
  std::uint32_t flip_every = 50;
  Duration flip_message_max = Duration::ms(2);  // a message about plans takes at most this

  /// The number on the wire of an entry of `rounds`, and back. Numbers wrap around.
  std::uint32_t id_of(std::uint32_t index) const { return plan.activation_round + index; }
  std::uint32_t index_of(std::uint32_t id) const { return id - plan.activation_round; }
};

/// What the rounds of buckets lacked and why. Read from the sums, but for `closes`.
struct ToleranceTotals {
  std::array<std::uint64_t, kCloseReasons> closes{};  // by CloseReason
  std::uint64_t partial_blocks = 0;
  std::uint64_t missing_blocks = 0;        // by source: a host's sum
  std::uint64_t carried_elements = 0;      // that came with a later round's
  std::uint64_t partial_after_change = 0;  // rounds of changed bounds that lacked something
  std::uint64_t at(CloseReason r) const { return closes[static_cast<std::size_t>(r)]; }
  void add(const ToleranceTotals& other);
};

/// What a run showed. `failure` is empty when every checker held.
struct Outcome {
  std::string failure;
  Instant ended;
  std::uint64_t packets = 0;
  std::uint64_t packets_dropped = 0;
  std::vector<lab::LinkCounters> site_links;    // of a network of sites, by link
  hop::Counters counters;                       // of all nodes together
  std::vector<awareness::IncomingLinks> links;  // by node: what its engine has measured
  ToleranceTotals tolerance;
  std::uint32_t lost_jobs = 0;  // to crashes
  /// A node has given a round up. That is a failure; a test may look for it.
  struct GivenUp {
    std::uint16_t by = 0;
    std::uint16_t because_of = 0;
    std::uint32_t round = 0;
    Stall stall;
  };
  std::optional<GivenUp> given_up;
  /// When each round was complete everywhere.
  std::vector<Instant> round_ends;
  /// When each rank had completed each round and all before, by rank and round; never() where it
  /// takes no part.
  std::vector<std::vector<Instant>> rank_ends;
  /// The first round of each further plan.
  std::vector<std::uint32_t> activations;
  std::uint64_t trace = 0;  // the same for the same scenario: hashes results and times
};

/// Runs the production engines of all nodes against scripted trainers, in virtual time. Checks I1
/// (all replicas have the same bits), I2 (a result is the sum over exactly all ranks, or what one
/// rank gave, bit by bit), I3 (every round ends) and that nothing is left in flight; for rounds of
/// buckets what ToleranceChecker says.
Outcome run(const Scenario& scenario);

/// What rank `rank` contributes: small integers, so that every type holds every sum exactly.
double contribution(std::uint32_t round, std::uint32_t rank, std::uint32_t element);
/// A byte of what rank `rank` gives alone: any bits, with all that are no number.
std::byte given_byte(std::uint32_t round, std::uint32_t rank, std::size_t index);

/// Gives half of the exact rounds another operation than all_reduce, and some that reduce another
/// reduction than a sum.
void mix_operations(Scenario& scenario, std::uint64_t seed);

/// Gives the plans of a scenario auxiliary routes, and makes links between neighbours slow, so that
/// they are used.
void add_routes(Scenario& scenario);

/// A scenario in which everything is drawn from the seed; exact rounds alone. A third of them mix
/// operations.
Scenario random_scenario(std::uint64_t seed);
/// The same for buckets that may lose something, with faults that make them. `narrow`: some of
/// their blocks go in bf16 or fp16.
Scenario random_tolerant_scenario(std::uint64_t seed, bool narrow = false);
/// Parity follows rounds on paths of any length, and all links lose something.
void add_parity(Scenario& scenario);
/// The same in trees of many nodes, with small rounds.
Scenario random_large_scenario(std::uint64_t seed);
/// The same with plans that follow each other, and enough rounds for them.
Scenario random_replanned_scenario(std::uint64_t seed);

/// Lets results go to groups, on a switch that copies for all, for some, or now and then.
void add_groups(Scenario& scenario);

/// Moves a scenario that was drawn without to a network of sites whose rates change, with the trees
/// of planners.
void put_on_sites(Scenario& scenario);

/// Gives each node so many poll cores, where a job of this kind can be shared.
void share_among_cores(Scenario& scenario, std::size_t cores);

/// So many exact rounds, with another plan every Scenario::flip_every of them.
Scenario flip_scenario(std::uint64_t seed, std::uint32_t rounds);

/// The members of all plans of a scenario, by node. Nodes are numbered from 0 on without a gap.
std::vector<api::Member> everybody(const Scenario& scenario);
/// The member that is this node, or has this rank; nullptr when the plan has none.
const api::Member* member_of(const api::Plan& plan, api::NodeId node);
const api::Member* member_with(const api::Plan& plan, std::uint32_t rank);
/// The ranks of a plan, in its order.
std::vector<std::uint32_t> ranks_of(const api::Plan& plan);

/// Members 0..aggregators+workers-1, one rank on each of the last `workers` of them.
std::vector<api::Member> members(std::uint16_t aggregators, std::uint16_t workers);
api::Plan star(std::uint16_t workers);
api::Plan sharded(std::uint16_t workers);
/// The same over these nodes alone, in this order. Rank n is on node n.
api::Plan sharded_over(const std::vector<api::NodeId>& nodes);
/// The same with selections: in selection s, member m sends to those that `receives` names.
api::Plan with_selections(
    api::Plan plan, std::size_t selections,
    const std::function<bool(std::size_t selection, std::size_t from, std::size_t to)>& receives);
/// Every rank host sends to relays that send to the root.
api::Plan two_level_tree(std::uint16_t relays, std::uint16_t workers_per_relay);

}  // namespace gradplane::sim
