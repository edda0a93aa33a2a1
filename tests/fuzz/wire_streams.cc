// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// A job with exchanges under bounded staleness gets arbitrary sequences of packets, submissions,
// pauses, and plans with other members. The input is a list of choices, as for wire_job.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/base/assert.h"
#include "dataplane/engine/local_plan.h"
#include "tests/fuzz/choices.h"
#include "tests/support/core_node.h"
#include "tests/support/packet.h"

using namespace gradplane;
using gradplane::testing::Choices;
using gradplane::testing::CoreNode;
using gradplane::testing::PacketBuilder;

namespace {

constexpr std::size_t kMaxSteps = 512;
constexpr std::uint16_t kNodes = 5;
constexpr std::uint16_t kSelf = 1;
constexpr std::uint16_t kBucket = 7;
constexpr std::uint32_t kElements = 1152;
constexpr std::uint32_t kBlocks = 9;
constexpr std::uint32_t kSelections = 2;
constexpr std::uint32_t kExactEvery = 64;  // one of so many rounds is a sum
// Numbers wrap around; the first round is not a sum.
constexpr std::uint32_t kFirstRound = 0xffff'ffe1;

/// Rank n is on node n. The n-th member is the root of tree n.
api::Plan plan_of(Choices& in, std::uint32_t epoch) {
  api::Plan plan{.epoch = epoch, .activation_round = kFirstRound, .members = {}, .trees = {}};
  for (std::uint16_t n = 0; n < kNodes; ++n) {
    if (n == kSelf || in.below(4) != 0) plan.members.push_back({.node = n, .ranks = {n}});
  }
  for (const api::Member& root : plan.members) {
    api::Tree tree{.weight = 1, .root = root.node, .parent = {}};
    for (const api::Member& member : plan.members)
      tree.parent.push_back(member.node == root.node ? api::kNoNode : root.node);
    plan.trees.push_back(tree);
  }
  for (std::uint32_t s = 0; s < kSelections; ++s) {
    api::Selection& selection = plan.selections.emplace_back();
    for (const api::Member& from : plan.members) {
      std::vector<api::NodeId>& receivers = selection.receivers.emplace_back();
      for (const api::Member& to : plan.members) {
        if (to.node != from.node && in.below(2) == 0) receivers.push_back(to.node);
      }
    }
  }
  return plan;
}

job::JobConfig config_of(const api::Plan& plan) {
  job::JobConfig config;
  config.job = config.epoch = 1;
  config.self = kSelf;
  config.block_bytes = kMinBlockBytes;
  config.round_bytes = kBlocks * kMinBlockBytes;
  config.stall_after = Duration::seconds(2);
  config.staleness_steps = 2;
  config.local_ranks = {{.arena = nullptr, .rank = kSelf}};
  engine::fill_local_plan(config, plan, kSelf, {});
  return config;
}

/// Each child in the tree whose root is this node is a stream.
std::vector<aggregate::GatheredTree> gathered_in(const job::PlanConfig& plan) {
  std::vector<aggregate::GatheredTree> gathered;
  for (std::size_t t = 0; t < plan.trees.size(); ++t) {
    for (const aggregate::ChildConfig& child : plan.trees[t].children) {
      const std::uint16_t host = child.hosts.front();
      gathered.push_back({.tree = static_cast<std::uint8_t>(t),
                          .sources = {{.hosts = {{plan.hosts[host].node, host}}}},
                          .is_stream = true});
    }
  }
  return gathered;
}

aggregate::BucketConfig bucket_of(const job::JobConfig& job) {
  aggregate::BucketConfig c;
  c.epoch = job.epoch;
  c.geometry = Geometry::of(ElementType::kFloat32, kElements, kMinBlockBytes, kBucket);
  c.tensors = {{0, 200, 0}, {200, 900, 0.4F}, {1100, 50, 0.5F}};
  c.gathered = gathered_in(job);
  c.limits = {.floor = 0.1F, .strict_rounds = 1, .absent_after = Duration::ms(20)};
  c.has_inbox = true;
  return c;
}

class Fuzzer {
 public:
  explicit Fuzzer(Choices in)
      : in_(in),
        plans_{plan_of(in_, 1)},
        node_(config_of(plans_[0])),
        bucket_(bucket_of(node_.job().config())),
        knows_bucket_(in_.below(8) != 0) {
    if (knows_bucket_) GP_ASSERT(node_.job().add_bucket(&bucket_));
  }

  void run() {
    for (std::size_t step = 0; step < kMaxSteps && !in_.empty(); ++step) {
      switch (in_.below(16)) {
        case 0:
        case 1:
        case 2:
          submit();
          break;
        case 3:
          now_ = now_ + Duration::us(in_.below(4) == 0 ? in_.number() : 50 * in_.byte());
          node_.node().tick(now_);
          break;
        case 4:
        case 5:
        case 6:
          answer();
          break;
        case 7:
        case 8:
        case 9:
          deliver_round();
          break;
        case 10:
          change_plan();
          break;
        default:
          deliver();
      }
      settle();
    }
  }

 private:
  /// The statement of a round in most of its packets and submissions.
  static Statement said_of(std::uint32_t round) {
    if (round % kExactEvery == 0) return {.elements = kElements};
    return {.elements = kElements,
            .bucket = kBucket,
            .operation = Operation::kExchange,
            .source = static_cast<std::uint16_t>(round % kSelections)};
  }

  std::uint32_t some_round() {
    if (in_.below(16) == 0) return in_.number();
    return next_ + in_.below(in_.below(4) == 0 ? 40 : 4) - 2;
  }

  void submit() {
    const std::uint32_t round = in_.below(8) == 0 ? some_round() : next_;
    Statement said = said_of(round);
    if (in_.below(16) == 0) said.elements = in_.number();
    if (in_.below(16) == 0) said.bucket = static_cast<std::uint16_t>(in_.below(9));
    const bool is_next = round == next_;
    if (node_.job().submit(0, round, said) == job::SubmitResult::kAccepted && is_next) ++next_;
  }

  /// All other members send their blocks of a round.
  void deliver_round() {
    const std::uint32_t id = next_ - in_.below(4) + in_.below(2);
    const api::Plan& plan = plan_of_round(id);
    for (std::size_t from = 0; from < plan.members.size(); ++from) {
      if (plan.members[from].node == kSelf || in_.below(8) == 0) continue;
      // Index of the lost block; beyond the blocks, none is lost.
      const std::uint32_t lost = in_.below(4 * kBlocks);
      for (std::uint32_t block = 0; block < kBlocks; ++block) {
        if (block == lost) continue;
        node_.deliver(plan.members[from].node,
                      push(plan, from, id, block).number(++number_).bytes(), now_);
      }
    }
  }

  const api::Plan& plan_of_round(std::uint32_t round) const {
    const bool is_new = is_committed_ && !job::is_older(round, activation_);
    return plans_.size() == 1 || is_new ? plans_.back() : plans_[plans_.size() - 2];
  }

  /// A push of a member in the tree whose root is this node. A member that has no update for this
  /// node sends an empty push.
  PacketBuilder push(const api::Plan& plan, std::size_t from, std::uint32_t id,
                     std::uint32_t block) {
    const Statement said = said_of(id);
    const auto& receivers = plan.selections[id % kSelections].receivers[from];
    const bool sends = said.operation != Operation::kExchange ||
                       std::count(receivers.begin(), receivers.end(), kSelf) > 0;
    std::size_t own = 0;
    while (plan.members[own].node != kSelf) ++own;
    PacketBuilder push =
        PacketBuilder::block(wire::PacketType::kPush, round_of(plan, id), sends ? block : 0)
            .sender(plan.members[from].node)
            .tree(static_cast<std::uint8_t>(own))
            .flags(in_.below(4) == 0 ? wire::kFlagLast | wire::kFlagBounded : wire::kFlagBounded);
    if (!sends) push.empty();
    return push;
  }

  static PacketBuilder::Round round_of(const api::Plan& plan, std::uint32_t id) {
    const auto members = static_cast<std::uint16_t>(plan.members.size());
    return {.job = 1,
            .epoch = plan.epoch,
            .id = id,
            .geometry = Geometry::of(said_of(id), kMinBlockBytes, members)};
  }

  /// A packet of a member in one of the last two plans, in this node's tree or in another one.
  PacketBuilder valid() {
    const std::uint32_t id = some_round();
    const bool is_other = plans_.size() > 1 && in_.below(8) == 0;
    const api::Plan& plan = is_other ? plans_[plans_.size() - 1 - in_.below(2)] : plan_of_round(id);
    const std::size_t members = plan.members.size();
    const std::size_t from = in_.below(static_cast<std::uint32_t>(members));
    const PacketBuilder::Round round = round_of(plan, id);
    const std::uint16_t sender = plan.members[from].node;
    if (in_.below(4) == 0) return ack(round).sender(sender).tree(static_cast<std::uint8_t>(from));
    if (round.geometry.operation != Operation::kExchange && in_.below(2) == 0) {
      return PacketBuilder::block(wire::PacketType::kResult, round, in_.below(kBlocks))
          .sender(sender)
          .tree(static_cast<std::uint8_t>(from))
          .contributors(static_cast<std::uint16_t>(members));
    }
    return push(plan, from, id, in_.below(kBlocks));
  }

  PacketBuilder ack(const PacketBuilder::Round& round) {
    std::vector<std::uint64_t> words(in_.below(3));
    for (std::uint64_t& w : words) w = in_.byte();
    return PacketBuilder::ack(wire::PacketType::kPushAck, round)
        .words(0, words)
        .echo_us(in_.below(3) == 0 ? in_.number() : hop::clock_us(now_))
        .flags(in_.below(2) != 0   ? wire::kFlagComplete
               : in_.below(2) == 0 ? std::uint8_t{0}
                                   : wire::kFlagClosed);
  }

  void deliver() {
    int via = -1;
    PacketBuilder packet = valid().number(++number_);
    for (std::uint32_t n = in_.below(4); n > 2; --n) testing::change(packet, in_, number_, via);
    node_.deliver(via < 0 ? packet.sender() : static_cast<std::uint16_t>(via), packet.bytes(),
                  now_);
  }

  /// Acks all blocks that the node has sent.
  void answer() {
    for (const testing::Sent& sent : sent_) {
      const testing::SeenPacket h = sent.seen();
      if (!wire::is_block(h.type)) continue;
      const PacketBuilder::Round round{.job = 1, .epoch = h.epoch, .id = h.round, .geometry = {}};
      const auto type = h.type == wire::PacketType::kPush ? wire::PacketType::kPushAck
                                                          : wire::PacketType::kResultAck;
      node_.deliver(sent.to,
                    PacketBuilder::ack(type, round)
                        .sender(sent.to)
                        .tree(h.tree)
                        .flags(wire::kFlagComplete)
                        .echo_us(h.timestamp_us)
                        .number(++number_)
                        .bytes(),
                    now_);
      (void)node_.events();
    }
    sent_.clear();
  }

  /// Prepares a plan with other members, commits or aborts it, or ends the plan before.
  void change_plan() {
    const std::uint32_t epoch = plans_.back().epoch;
    switch (in_.below(4)) {
      case 0: {
        api::Plan next = plan_of(in_, epoch + 1);
        const job::PlanConfig config = engine::local_plan(next, kSelf, {}, false);
        auto plan = std::make_unique<job::Plan>(config, node_.job().config());
        if (knows_bucket_) {
          plan->add_bucket({.bucket = &bucket_,
                            .gathers = bucket_.make_gathers(config.epoch, gathered_in(config)),
                            .residual = nullptr});
        }
        const job::Prepared answer = node_.node().prepare(&node_.job(), plan);
        if (answer.refusal != PlanRefusal::kNone) return;
        horizon_ = answer.horizon;
        is_committed_ = false;
        plans_.push_back(std::move(next));
        return;
      }
      case 1:
        if (in_.below(8) != 0 || node_.job().abort(epoch) == nullptr) return;
        plans_.pop_back();
        is_committed_ = true;  // the plan before carries all rounds from its own activation on
        activation_ = horizon_ - (std::uint32_t{1} << 16);
        return;
      case 2: {
        const std::uint32_t activation = horizon_ + in_.below(4) - 1;
        if (!node_.job().commit(epoch, activation)) return;
        activation_ = activation;
        is_committed_ = true;
        return;
      }
      default:
        if (plans_.size() > 1) node_.job().end_older_plan(plans_[plans_.size() - 2].epoch);
    }
  }

  /// Does what the engine does after every burst.
  void settle() {
    for (testing::Sent& packet : node_.drain(now_)) sent_.push_back(std::move(packet));
    (void)node_.events();
    while (node_.job().has_ended_plan()) (void)node_.job().take_ended_plan();
    (void)node_.job().waiting();
    (void)node_.node().next_deadline(now_);
    GP_ASSERT(node_.job().broken_invariant() == nullptr);
  }

  Choices in_;
  std::vector<api::Plan> plans_;
  CoreNode node_;
  aggregate::Bucket bucket_;  // the job points to it only while it handles packets and submissions
  bool knows_bucket_;
  std::uint64_t number_ = 0;  // of the last packet of any sender
  std::uint32_t next_ = kFirstRound;
  std::uint32_t horizon_ = 0;
  std::uint32_t activation_ = 0;  // of the newest plan, if it is committed
  bool is_committed_ = false;
  Instant now_ = Instant::from_ns(((std::int64_t{1} << 32) - 5000) * 1000);
  std::vector<testing::Sent> sent_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fuzzer(Choices({data, size})).run();
  return 0;
}
