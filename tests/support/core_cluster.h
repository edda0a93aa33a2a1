// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/api/plan.h"
#include "tests/support/core_node.h"

namespace gradplane::testing {

struct ClusterOptions {
  std::uint64_t seed = 1;
  std::size_t block_bytes = kMinBlockBytes;
  std::size_t round_bytes = 16 << 10;
  std::uint32_t in_flight = 4;  // rounds that a rank submits ahead
  bool authenticate = false;
  Instant start = Instant::from_ns(1'000'000'000);
  Duration limit = Duration::seconds(30);  // virtual
  Duration delay = Duration::us(50);
  Duration jitter;
  double loss = 0;
  double duplication = 0;
  /// Somebody on the way sends a copy of each ack and each grant to all nodes that it is not for.
  bool readdress = false;
  /// Results go to groups, where this says that the network copies for a node now.
  std::function<bool(std::uint16_t node, Instant now)> copies_for;
};

/// A further plan for the nodes of a cluster, with another epoch. Each rank is always on the same
/// node, and the first member with ranks of the first plan is in all plans.
struct PlanFlip {
  api::Plan plan;
  std::uint32_t after_rounds = 0;  // that the first rank has completed when it is prepared
  bool abort = false;              // after some of the nodes have prepared it, or all
};

/// Production jobs of all members of a plan, joined by a network that may lose, repeat and reorder,
/// in virtual time. Rounds begin at plan.activation_round. The whole engine has its own simulator
/// (tests/sim); this one can start anywhere in the space of rounds and clocks.
class CoreCluster {
 public:
  CoreCluster(const api::Plan& plan, const ClusterOptions& options);

  /// Runs one round for each entry, which is its number of elements. Empty when every rank got
  /// every sum, and nothing was left in flight; else what went wrong.
  std::string run(const std::vector<std::uint32_t>& elements);

  /// During run() these plans are put in force one after the other, each when the one before has
  /// ended everywhere. Messages to nodes take random times. Nodes join and leave, with their
  /// ranks. Call it before run().
  void flip(std::vector<PlanFlip> flips);
  /// Plans that nodes have given back because they had ended.
  std::size_t ended_plans() const { return ended_plans_; }
  std::size_t finished_flips() const { return next_flip_; }
  std::size_t joined() const { return joined_; }
  std::size_t left() const { return left_; }

  /// Of a member of the first plan with ranks.
  CoreNode& node(std::size_t member) { return *nodes_[member]; }
  Instant now() const { return now_; }

 private:
  struct Flight {
    Instant at;
    std::uint64_t order = 0;
    std::uint16_t from = 0;
    Sent packet;
    bool operator<(const Flight& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  struct Rank {
    std::size_t member = 0;
    std::size_t local = 0;
    bool is_here = false;
    std::uint32_t submitted = 0;
    std::uint32_t completed = 0;  // without a gap: rounds may end in another order
    std::vector<bool> done;
  };

  /// A message of the coordinator on its way to a node.
  struct Order {
    enum class Kind : std::uint8_t { kPrepare, kCommit, kAbort, kEndOlder, kDismiss };
    Instant at;
    std::size_t member = 0;
    Kind kind = Kind::kPrepare;
  };

  std::unique_ptr<CoreNode> make_node(const api::Plan& plan, std::size_t member, bool joins);
  bool has_part(const api::Plan& plan, std::size_t member) const;
  bool has_ranks(std::size_t member) const { return !members_[member].ranks.empty(); }
  void coordinate();
  void begin_flip();
  void end_flip();
  void order(std::size_t member, Order::Kind kind);
  void order_all(Order::Kind kind);
  void obey(const Order& order);
  void prepare(std::size_t member);
  void commit(std::size_t member);
  void on_ended(std::size_t member);
  bool turn(std::size_t member);
  void send(std::uint16_t from, const Sent& packet);
  void send_to_group(const Sent& packet);
  bool is_in(std::uint16_t node, const GroupName& group) const;
  void use_groups(job::PlanConfig& config) const;
  void readdress(std::uint16_t from, const Sent& packet);
  void arrive_all();
  void submit_all();
  void add_ranks(std::size_t member);
  void join_at(std::size_t member, std::uint32_t index);
  void leave(std::size_t member);
  const api::Plan& plan_of(std::uint32_t index) const;
  bool is_too_far_ahead(std::uint32_t index) const;
  void complete(std::size_t member, const job::Event& event);
  bool settled() const;
  bool chance(double p) { return p > 0 && std::uniform_real_distribution<>(0, 1)(random_) < p; }

  ClusterOptions options_;
  std::mt19937_64 random_;
  std::uint32_t first_round_;
  std::vector<api::Member> members_;                        // of all plans
  std::vector<std::pair<std::uint32_t, api::Plan>> plans_;  // from which index of elements_ on
  std::vector<std::unique_ptr<CoreNode>> nodes_;            // of members_; null: has no part now
  std::vector<Rank> ranks_;
  std::vector<std::uint32_t> elements_;
  std::priority_queue<Flight> flights_;
  std::uint64_t order_ = 0;
  Instant now_;
  std::string failure_;
  std::vector<PlanFlip> flips_;
  std::size_t next_flip_ = 0;
  std::vector<Order> orders_;
  bool flip_runs_ = false;
  bool flip_is_decided_ = false;
  std::size_t awaited_ = 0;                  // nodes that have not prepared the plan of this flip
  std::optional<std::uint32_t> activation_;  // the latest of their horizons
  std::size_t ending_ = 0;                   // nodes that have the plan before
  std::size_t ending_with_ranks_ = 0;
  std::size_t ended_plans_ = 0;
  std::size_t joined_ = 0;
  std::size_t left_ = 0;
};

}  // namespace gradplane::testing
