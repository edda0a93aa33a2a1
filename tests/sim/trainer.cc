// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/trainer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "dataplane/base/siphash.h"
#include "dataplane/reduce/kernels.h"

namespace gradplane::sim {
namespace {

/// So many different contributions there are. What one rank gives to an element tells what all the
/// others do.
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
      return reduce::scalar_kernels_for(type).finish(at, accumulator, 1);
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
      reduce::scalar_kernels_for(type).set(accumulator, at, 1);
      return get<float>(accumulator);
    }
  }
  return 0;
}

double contribution(std::uint32_t round, std::uint32_t rank, std::uint32_t element) {
  // Below 8: the sum of 32 ranks stays exact in bf16, which holds integers up to 256.
  return (round * 5 + rank * 3 + element * 7 + (element >> 5)) % kContributions;
}

std::byte given_byte(std::uint32_t round, std::uint32_t rank, std::size_t index) {
  const auto word = static_cast<std::uint32_t>(index / 2);
  if (word % 64 == rank % 64) return std::byte{static_cast<unsigned char>(index % 2 * 0x80)};  // -0
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
      submissions_(channel_->channel.submissions()),
      completions_(channel_->channel.completions()),
      random_(scenario.seed * 1000003 + rank),
      round_done_(scenario.rounds.size()),
      results_(scenario.rounds.size()),
      held_(scenario.rounds.size()) {}

bool Trainer::may_submit() const {
  if (has_left_ || submitted_ >= gate_ || submitted_ - completed_ >= scenario_.in_flight)
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
  while (completions_.pop(completion)) {
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
  if (scenario_.rounds[round].bucket == 0) return contribution(round, rank_, element);
  return checker_.contribution(round, rank_, element);
}

void Trainer::submit_next(Instant now) {
  const std::uint32_t round = submitted_++;
  const RoundPlan& plan = scenario_.rounds[round];
  const std::uint32_t id = scenario_.id_of(round);
  checker_.on_submit(round, now);
  const std::span<std::byte> slot = channel_->channel.slot(id);
  fill(round, slot);
  const bool pushed = submissions_.push({.round = id,
                                         .elements = plan.elements,
                                         .element_type = static_cast<std::uint8_t>(plan.type),
                                         .operation = static_cast<std::uint8_t>(plan.operation),
                                         .source = plan.source,
                                         .bucket = plan.bucket});
  if (!pushed) failure_ = "rank " + std::to_string(rank_) + " found its submission ring full";
}

/// What the rank has; where it has nothing, bytes that nobody may get.
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

/// The rank that has this byte of a round in which one rank alone has each.
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
  const std::span<const std::byte> slot =
      channel_->channel.slot(completion.round).first(plan.elements * element_bytes(plan.type));
  std::string wrong;
  if (plan.bucket != 0) {
    wrong = checker_.on_result(rank_, completion, slot);
  } else if (completion.contributors != (all_contribute(plan.operation) ? world_ : 1) ||
             completion.partial_blocks != 0) {
    wrong = "I2: a contribution is missing";
  } else {
    wrong = check_result(round, slot);
  }
  if (!wrong.empty()) return fail(wrong);
  held_[round] = hash_of_slot(round);
  // What each rank gets for itself is checked above, and is no replica.
  if (all_receive(plan.operation)) results_[round] = held_[round];
}

std::uint64_t Trainer::hash_of_slot(std::uint32_t round) const {
  const RoundPlan& plan = scenario_.rounds[round];
  const std::size_t bytes = plan.elements * element_bytes(plan.type);
  return siphash24({}, channel_->channel.slot(scenario_.id_of(round)).first(bytes));
}

bool Trainer::holds_result(std::uint32_t round) const {
  return round_done_[round] && hash_of_slot(round) == held_[round];
}

/// Of a round without a bucket.
std::string Trainer::check_result(std::uint32_t round, std::span<const std::byte> slot) const {
  const RoundPlan& plan = scenario_.rounds[round];
  if (!all_contribute(plan.operation)) return check_given(round, slot);
  if (all_receive(plan.operation)) return check_sums(round, slot, 0, plan.elements);
  const std::uint32_t shard = plan.elements / world_;
  return check_sums(round, slot, rank_ * shard, (rank_ + 1) * shard);
}

/// All ranks are in every sum.
std::string Trainer::check_sums(std::uint32_t round, std::span<const std::byte> slot,
                                std::uint32_t begin, std::uint32_t end) const {
  const RoundPlan& plan = scenario_.rounds[round];
  const std::size_t width = element_bytes(plan.type);
  // Contributions repeat themselves, so a few elements have all the sums that there are.
  std::array<double, kContributions> sums{};
  for (std::uint32_t e = 0; e < kContributions; ++e) {
    double& sum = sums[static_cast<std::size_t>(contribution(round, 0, e))];
    for (std::uint32_t r = 0; r < world_; ++r) sum += contribution(round, r, e);
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
