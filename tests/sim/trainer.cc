// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/trainer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "dataplane/base/siphash.h"
#include "dataplane/model/geometry.h"
#include "dataplane/reduce/kernels.h"

namespace gradplane::sim {
namespace {

/// There are so many different contributions. A rank's contribution to an element determines those
/// of all other ranks.
constexpr std::uint32_t kContributions = 8;

template <typename T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <typename T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

void store(ElementType type, std::byte* at, double value) {
  switch (type) {
    case ElementType::kFloat32:
      return put(at, static_cast<float>(value));
    case ElementType::kFloat64:
      return put(at, value);
    case ElementType::kInt32:
      return put(at, static_cast<std::int32_t>(value));
    case ElementType::kInt64:
      return put(at, static_cast<std::int64_t>(value));
    case ElementType::kFloat16:
    case ElementType::kBfloat16: {
      std::byte accumulator[4];
      put(accumulator, static_cast<float>(value));
      return reduce::kScalar.kernels_for(type).finish(at, accumulator, 1);
    }
  }
}

double load(ElementType type, const std::byte* at) {
  switch (type) {
    case ElementType::kFloat32:
      return get<float>(at);
    case ElementType::kFloat64:
      return get<double>(at);
    case ElementType::kInt32:
      return get<std::int32_t>(at);
    case ElementType::kInt64:
      return static_cast<double>(get<std::int64_t>(at));
    case ElementType::kFloat16:
    case ElementType::kBfloat16: {
      std::byte accumulator[4];
      reduce::kScalar.kernels_for(type).set(accumulator, at, 1);
      return get<float>(accumulator);
    }
  }
  return 0;
}

double contribution(std::uint32_t round, std::uint32_t rank, std::uint32_t element) {
  // Below 8, so that sums of 32 ranks are exact in bf16, which has all integers up to 256.
  return (round * 5 + rank * 3 + element * 7 + (element >> 5)) % kContributions;
}

/// The value that a rank with this contribution gives. Products are small and exact in each type.
double given_to(Reduction reduction, double contribution) {
  if (reduction != Reduction::kProduct) return contribution;
  const bool is_odd = static_cast<std::uint32_t>(contribution) % 2 != 0;
  return (contribution == 0 ? 2 : 1) * (is_odd ? -1 : 1);
}

double reduced(Reduction reduction, double a, double b) {
  switch (reduction) {
    case Reduction::kSum:
      return a + b;
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kMin:
      return std::min(a, b);
    case Reduction::kProduct:
      return a * b;
  }
  return a;
}

std::byte given_byte(std::uint32_t round, std::uint32_t rank, std::size_t index) {
  const auto word = static_cast<std::uint32_t>(index / 2);
  // The bytes of -0.
  if (word % 64 == rank % 64) return std::byte{static_cast<unsigned char>(index % 2 * 0x80)};
  const std::uint32_t mixed =
      (static_cast<std::uint32_t>(index) + 1) * 2654435761U ^ (round * 40503U + rank * 9973U + 7U);
  return static_cast<std::byte>(mixed * 2246822519U >> 24);
}

Trainer::Trainer(const Scenario& scenario, std::uint32_t rank, std::uint32_t world,
                 std::shared_ptr<engine::RankChannel> channel, ToleranceChecker& checker)
    : scenario_(scenario),
      rank_(rank),
      world_(world),
      gate_(scenario.rounds.size() - scenario.tolerance.closing_rounds),
      channel_(std::move(channel)),
      checker_(checker),
      rings_(channel_->channel),
      random_(scenario.seed * 1000003 + rank),
      round_done_(scenario.rounds.size()),
      results_(scenario.rounds.size()),
      held_(scenario.rounds.size()) {}

namespace {

/// A rank's contribution to all elements of an exchange. It is a power of two, so a mean shows
/// which ranks are in it.
double exchanged(std::uint32_t rank) {
  return static_cast<double>(1U << rank);
}

/// The ranks whose updates a rank receives. In a plan with selections each member has one rank.
std::vector<std::uint32_t> senders_to(const api::Plan& plan, std::size_t selection,
                                      std::uint32_t rank) {
  const api::NodeId node = member_with(plan, rank)->node;
  std::vector<std::uint32_t> senders;
  for (std::size_t m = 0; m < plan.members.size(); ++m) {
    const auto& receivers = plan.selections[selection].receivers[m];
    if (std::count(receivers.begin(), receivers.end(), node) > 0)
      senders.push_back(plan.members[m].ranks[0]);
  }
  return senders;
}

/// One bit for each sender that is in a mean besides the rank itself. Nothing if the value is no
/// such mean.
std::optional<std::uint32_t> found_in(double value, ElementType type,
                                      const std::vector<std::uint32_t>& senders, std::uint32_t rank,
                                      std::uint32_t world) {
  // The last bit may be rounded differently here.
  const double tolerance = value * (type == ElementType::kFloat64 ? 1e-15 : 1e-7);
  for (std::uint32_t bits = 0; bits < 1U << senders.size(); ++bits) {
    double sum = exchanged(rank);
    for (std::size_t s = 0; s < senders.size(); ++s) {
      if ((bits >> s & 1) != 0) sum += exchanged(senders[s]);
    }
    const double mean = sum / (std::popcount(bits) + 1);
    if (std::abs(value - mean * world) <= tolerance) return bits;
  }
  return std::nullopt;
}

}  // namespace

bool Trainer::may_submit() const {
  if (!has_begun_ || has_left_ || submitted_ >= gate_ ||
      submitted_ - completed_ >= scenario_.in_flight)
    return false;
  const std::uint32_t group = scenario_.rounds_of_all_reduce;
  if (group != 0 && submitted_ % group == 0 && completed_ < submitted_) return false;
  const std::uint16_t bucket = scenario_.rounds[submitted_].bucket;
  if (bucket == 0 || scenario_.tolerance.overlap) return true;
  for (std::uint32_t r = completed_; r < submitted_; ++r) {
    if (!round_done_[r] && scenario_.rounds[r].bucket == bucket) return false;
  }
  return true;
}

Instant Trainer::next_deadline() const {
  return may_submit() ? ready_at_ : Instant::never();
}

bool Trainer::step(Instant now) {
  bool any = false;
  ipc::Completion completion;
  while (rings_.pop(completion)) {
    any = true;
    check(completion);
  }
  while (next_deadline() <= now) {
    any = true;
    submit_next(now);
    const bool own = rank_ < scenario_.compute_max_of_rank.size();
    const Duration most = own ? scenario_.compute_max_of_rank[rank_] : scenario_.compute_max;
    const auto span = static_cast<std::uint64_t>(most.count_ns()) + 1;
    ready_at_ = now + Duration::ns(static_cast<std::int64_t>(random_() % span));
  }
  return any;
}

double Trainer::value_of(std::uint32_t round, std::uint32_t element) const {
  const RoundPlan& plan = scenario_.rounds[round];
  if (StreamChecker::checks(scenario_, plan))
    return checker_.streams().contribution(round, rank_, element);
  if (plan.operation == Operation::kExchange) return exchanged(rank_);
  if (RoundingChecker::checks(scenario_, plan))
    return RoundingChecker::contribution(rank_, element);
  if (plan.bucket == 0) return given_to(plan.reduction, contribution(round, rank_, element));
  return checker_.contribution(round, rank_, element);
}

void Trainer::submit_next(Instant now) {
  const std::uint32_t round = submitted_++;
  const RoundPlan& plan = scenario_.rounds[round];
  const std::uint32_t id = scenario_.id_of(round);
  checker_.on_submit(round, now);
  if (StreamChecker::checks(scenario_, plan)) checker_.streams().on_submit(round, rank_);
  const std::span<std::byte> slot = channel_->channel.slot(id);
  fill(round, slot);
  const bool pushed = rings_.push({.round = id,
                                   .elements = plan.elements,
                                   .element_type = static_cast<std::uint8_t>(plan.type),
                                   .operation = static_cast<std::uint8_t>(plan.operation),
                                   .source = plan.source,
                                   .bucket = plan.bucket,
                                   .reduction = static_cast<std::uint8_t>(plan.reduction)});
  if (!pushed) failure_ = "rank " + std::to_string(rank_) + " found its submission ring full";
}

/// Writes the rank's contribution. Bytes that it does not contribute get a value that must not come
/// out anywhere.
void Trainer::fill(std::uint32_t round, std::span<std::byte> slot) const {
  const RoundPlan& plan = scenario_.rounds[round];
  const std::size_t width = element_bytes(plan.type);
  if (all_contribute(plan.operation)) {
    for (std::uint32_t e = 0; e < plan.elements; ++e) {
      store(plan.type, slot.data() + e * width, value_of(round, e));
    }
    return;
  }
  for (std::size_t b = 0; b < plan.elements * width; ++b) {
    slot[b] = given_byte(round, giver(round, b) == rank_ ? rank_ : ~rank_, b);
  }
}

/// The number of ranks that take part in a round.
std::uint32_t Trainer::world_at(std::uint32_t round) const {
  return static_cast<std::uint32_t>(ranks_of(checker_.plan_at(round)).size());
}

/// The rank that gives this byte, in a round in which one rank gives each byte.
std::uint32_t Trainer::giver(std::uint32_t round, std::size_t byte) const {
  const RoundPlan& plan = scenario_.rounds[round];
  if (!has_shards(plan.operation)) return plan.source;
  return static_cast<std::uint32_t>(byte / (plan.elements / world_ * element_bytes(plan.type)));
}

void Trainer::check(const ipc::Completion& completion) {
  const std::uint32_t round = scenario_.index_of(completion.round);
  const auto fail = [&](const std::string& what) {
    if (failure_.empty()) {
      failure_ = "rank " + std::to_string(rank_) + ", round " + std::to_string(round) + ": " + what;
    }
  };
  if (round >= submitted_ || round_done_[round]) return fail("completed twice or never submitted");
  round_done_[round] = true;
  completed_end_ = std::max(completed_end_, round + 1);
  while (completed_ < submitted_ && round_done_[completed_]) ++completed_;
  if (completion.status != ipc::CompletionStatus::kOk) return fail("failed");
  const RoundPlan& plan = scenario_.rounds[round];
  if (plan.operation != Operation::kExchange) checker_.streams().on_exact(round, rank_);
  const std::span<const std::byte> slot =
      channel_->channel.slot(completion.round).first(plan.elements * element_bytes(plan.type));
  std::string wrong;
  if (StreamChecker::checks(scenario_, plan)) {
    wrong = checker_.streams().on_result(round, rank_, slot);
  } else if (plan.operation == Operation::kExchange) {
    wrong = check_exchange(completion, slot);
  } else if (RoundingChecker::checks(scenario_, plan)) {
    wrong = checker_.rounding().on_result(round, completion, slot);
  } else if (plan.bucket != 0) {
    wrong = checker_.on_result(rank_, completion, slot);
  } else if (completion.contributors != (all_contribute(plan.operation) ? world_at(round) : 1) ||
             completion.partial_blocks != 0) {
    wrong = "I2: a contribution is missing";
  } else {
    wrong = check_result(round, slot);
  }
  if (!wrong.empty()) return fail(wrong);
  held_[round] = hash_of_slot(round);
  // A result for this rank alone was checked above, and is no replica.
  if (results_leave_root(plan.operation)) results_[round] = held_[round];
}

std::uint64_t Trainer::hash_of_slot(std::uint32_t round) const {
  const RoundPlan& plan = scenario_.rounds[round];
  const std::size_t bytes = plan.elements * element_bytes(plan.type);
  return siphash24({}, channel_->channel.slot(scenario_.id_of(round)).first(bytes));
}

bool Trainer::holds_result(std::uint32_t round) const {
  return round_done_[round] && hash_of_slot(round) == held_[round];
}

/// Checks the result of a round without a bucket.
std::string Trainer::check_result(std::uint32_t round, std::span<const std::byte> slot) const {
  const RoundPlan& plan = scenario_.rounds[round];
  if (!all_contribute(plan.operation)) return check_given(round, slot);
  if (all_receive(plan.operation)) return check_sums(round, slot, 0, plan.elements);
  const std::uint32_t shard = plan.elements / world_;
  const std::string wrong = check_own(round, slot, rank_ * shard, (rank_ + 1) * shard);
  return wrong.empty() ? check_sums(round, slot, rank_ * shard, (rank_ + 1) * shard) : wrong;
}

/// Around the rank's result the slot must still hold its contribution, because a recovery sums that
/// again.
std::string Trainer::check_own(std::uint32_t round, std::span<const std::byte> slot,
                               std::uint32_t begin, std::uint32_t end) const {
  const RoundPlan& plan = scenario_.rounds[round];
  const std::size_t width = element_bytes(plan.type);
  for (std::uint32_t e = 0; e < plan.elements; ++e) {
    if (e >= begin && e < end) continue;
    if (load(plan.type, slot.data() + e * width) == value_of(round, e)) continue;
    return "element " + std::to_string(e) + " of another rank's shard is not as it was submitted";
  }
  return {};
}

/// All ranks must be in every sum.
std::string Trainer::check_sums(std::uint32_t round, std::span<const std::byte> slot,
                                std::uint32_t begin, std::uint32_t end) const {
  const RoundPlan& plan = scenario_.rounds[round];
  const std::size_t width = element_bytes(plan.type);
  // Contributions are periodic, so a few elements have all different sums.
  std::array<double, kContributions> sums{};
  const std::vector<std::uint32_t> ranks = ranks_of(checker_.plan_at(round));
  for (std::uint32_t e = 0; e < kContributions; ++e) {
    double& sum = sums[static_cast<std::size_t>(contribution(round, 0, e))];
    for (const std::uint32_t r : ranks) {
      const double given = given_to(plan.reduction, contribution(round, r, e));
      sum = r == ranks[0] ? given : reduced(plan.reduction, sum, given);
    }
  }
  for (std::uint32_t e = begin; e < end; ++e) {
    const double expected = sums[static_cast<std::size_t>(contribution(round, 0, e))];
    const double got = load(plan.type, slot.data() + e * width);
    if (got == expected) continue;
    return "I2: element " + std::to_string(e) + " is " + std::to_string(got) + " and not " +
           std::to_string(expected);
  }
  return {};
}

/// Every block must be the mean over this rank and some of its senders, times the number of ranks.
/// If nothing may be missing, all senders must be in it.
std::string Trainer::check_exchange(const ipc::Completion& completion,
                                    std::span<const std::byte> slot) const {
  const std::uint32_t round = scenario_.index_of(completion.round);
  const RoundPlan& plan = scenario_.rounds[round];
  const std::vector<std::uint32_t> senders =
      senders_to(checker_.plan_at(round), plan.source, rank_);
  const std::uint32_t world = world_at(round);
  const Geometry g = Geometry::of({plan.type, plan.elements, plan.bucket, plan.operation},
                                  scenario_.block_bytes, static_cast<std::uint16_t>(world));
  auto fewest = static_cast<std::uint32_t>(senders.size() + 1);
  std::uint32_t partial_blocks = 0;
  for (std::uint32_t block = 0; block < g.blocks; ++block) {
    const std::byte* at = slot.data() + g.offset_bytes(block);
    const auto bits = found_in(load(plan.type, at), plan.type, senders, rank_, world);
    if (!bits) return "I2: block " + std::to_string(block) + " is no mean of selected ranks";
    for (std::uint32_t e = 0; e < g.elements_in(block); ++e) {
      if (std::memcmp(at, at + e * element_bytes(plan.type), element_bytes(plan.type)) != 0) {
        return "I2: ranks differ within block " + std::to_string(block);
      }
    }
    const auto contributors = static_cast<std::uint32_t>(std::popcount(*bits) + 1);
    if (contributors <= senders.size()) ++partial_blocks;
    fewest = std::min(fewest, contributors);
  }
  if (plan.bucket == 0 && partial_blocks > 0) return "I2: a selected rank is missing";
  if (completion.contributors != fewest || completion.partial_blocks != partial_blocks) {
    return "I2: the completion says other ranks than the blocks hold";
  }
  return {};
}

std::string Trainer::check_given(std::uint32_t round, std::span<const std::byte> slot) const {
  for (std::size_t b = 0; b < slot.size(); ++b) {
    if (slot[b] == given_byte(round, giver(round, b), b)) continue;
    return "I2: byte " + std::to_string(b) + " of a " +
           std::string(operation_name(scenario_.rounds[round].operation)) +
           " is not what its rank has given";
  }
  return {};
}

}  // namespace gradplane::sim
