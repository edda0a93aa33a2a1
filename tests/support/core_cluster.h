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
  std::uint32_t in_flight = 4;  // how many rounds a rank may have in flight
  bool authenticate = false;
  Instant start = Instant::from_ns(1'000'000'000);
  Duration limit = Duration::seconds(30);  // in virtual time
  Duration delay = Duration::us(50);
  Duration jitter;
  double loss = 0;
  double duplication = 0;
  /// The network sends a copy of each ack and each grant to all nodes that are not its receiver.
  bool readdress = false;
  /// If set, results go to groups, and this says for which nodes the network makes copies at this
  /// time.
  std::function<bool(std::uint16_t node, Instant now)> copies_for;
};

/// A further plan for the nodes of a cluster, with another epoch. Each rank is on the same node in
/// all plans. The first member of the first plan that has ranks is in all plans.
struct PlanFlip {
  api::Plan plan;
  // It is prepared when the first rank has completed so many rounds.
  std::uint32_t after_rounds = 0;
  bool abort = false;  // the coordinator aborts it when some or all nodes have prepared it
};

/// Runs the production jobs of all members of a plan in virtual time. The network between them may
/// lose, repeat and reorder packets. Rounds begin at plan.activation_round. tests/sim simulates
/// whole engines; this class has only the protocol core, and can start at any round number and
/// clock value.
class CoreCluster {
 public:
  CoreCluster(const api::Plan& plan, const ClusterOptions& options);

  /// Runs one round for each entry, which is its number of elements. Returns an empty string if
  /// every rank got every sum and nothing is left in flight; otherwise a text that says what went
  /// wrong.
  std::string run(const std::vector<std::uint32_t>& elements);

  /// Makes run() change to these plans one after the other. Each change begins when the plan before
  /// has ended everywhere. Orders of the coordinator take random times. Nodes join and leave with
  /// their ranks. Call it before run().
  void flip(std::vector<PlanFlip> flips);
  /// The number of plans that nodes have given back because they had ended.
  std::size_t ended_plans() const { return ended_plans_; }
  std::size_t finished_flips() const { return next_flip_; }
  std::size_t joined() const { return joined_; }
  std::size_t left() const { return left_; }

  /// `member` is an index of the first plan's members with ranks.
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
    // All rounds before this one are done; rounds may end in another order.
    std::uint32_t completed = 0;
    std::vector<bool> done;
  };

  /// An order of the coordinator on its way to a node.
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
  std::vector<api::Member> members_;  // of all plans
  // By index into elements_ of the first round.
  std::vector<std::pair<std::uint32_t, api::Plan>> plans_;
  // By index into members_; null: not in the job now.
  std::vector<std::unique_ptr<CoreNode>> nodes_;
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
  std::size_t awaited_ = 0;                  // nodes that have not yet prepared this flip's plan
  std::optional<std::uint32_t> activation_;  // the latest horizon that a node has answered
  std::size_t ending_ = 0;                   // nodes that still have the plan before
  std::size_t ending_with_ranks_ = 0;
  std::size_t ended_plans_ = 0;
  std::size_t joined_ = 0;
  std::size_t left_ = 0;
};

}  // namespace gradplane::testing
